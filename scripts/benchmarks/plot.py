"""How the cost grows with the number of schedules: two panels, both axes logarithmic, drawn without a library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 480, 330, 62, 40, 40, 46
COLOURS = ("#1f5fbf", "#c2410c", "#555555", "#999999", "#15803d", "#7e22ce", "#b45309", "#be185d")
STYLE = (
    "text{font:12px sans-serif;fill:#222} .t{font-weight:bold} .g{stroke:#ddd} "
    "@media (prefers-color-scheme:dark){svg{background:#111} text{fill:#ddd} .g{stroke:#333}}"
)


class Line(NamedTuple):
    """A subject's points, each the number of schedules and what they cost."""

    name: str
    points: list[tuple[float, float]]


def growth(results: Sequence[dict[str, Any]]) -> str:
    """Return the plot as SVG."""
    panels = (
        ("A herd: seconds until the last job", _lines(results, "herd", "seconds")),
        ("An idle tick: milliseconds", _lines(results, "idle", "tick_ms")),
    )
    drawn = [
        f'<g transform="translate({number * WIDTH},0)">{_panel(title, lines)}</g>'
        for number, (title, lines) in enumerate(panels)
        if lines
    ]
    width = WIDTH * max(1, len(drawn))
    size = f'viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>Cost by number of schedules</title>'
    return f"{head}<style>{STYLE}</style>{''.join(drawn)}</svg>\n"


def _lines(results: Sequence[dict[str, Any]], case: str, value: str) -> list[Line]:
    lines: dict[str, list[tuple[float, float]]] = {}
    for each in results:
        if each["case"] == case and each["values"].get(value):
            name = f"{each['subject']}, {each['variant']}" if each["subject"] == "awa_cron" else each["subject"]
            lines.setdefault(name, []).append((each["arguments"]["count"], each["values"][value]))
    return [Line(name, sorted(points)) for name, points in lines.items()]


def _panel(title: str, lines: Sequence[Line]) -> str:
    every = [point for line in lines for point in line.points]
    across = _decades([x for x, _ in every])
    upward = _decades([y for _, y in every])

    def place(x: float, y: float) -> tuple[float, float]:
        wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        right = (math.log10(x) - across[0]) / (across[-1] - across[0])
        up = (math.log10(y) - upward[0]) / (upward[-1] - upward[0])
        return round(LEFT + right * wide, 1), round(HEIGHT - BOTTOM - up * high, 1)

    parts = [f'<text class="t" x="{LEFT}" y="20">{title}</text>']
    for decade in across:
        x, _ = place(10**decade, 10.0 ** upward[0])
        parts.append(f'<line class="g" x1="{x}" x2="{x}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{x}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{10**decade:,}</text>')
    for decade in upward:
        _, y = place(10.0 ** across[0], 10.0**decade)
        parts.append(f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{10.0**decade:g}</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">schedules</text>')
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        spots = [place(x, y) for x, y in line.points]
        path = " ".join(f"{x},{y}" for x, y in spots)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in spots]
        at = TOP + 14 * number + 6
        parts.append(f'<rect x="{LEFT + 8}" y="{at}" width="9" height="9" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + 22}" y="{at + 9}">{line.name}</text>')
    return "".join(parts)


def _decades(values: Sequence[float]) -> range:
    """Return the powers of ten that enclose the values; at least two."""
    first = math.floor(math.log10(min(values)))
    last = math.ceil(math.log10(max(values)))
    return range(first, max(last, first + 1) + 1)
