"""The results as tables, written between markers, and as a plot of how the cost grows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import plot

OURS = frozenset({"awa_cron", "floor", "floor, with the log"})
BEGIN, END = "<!-- begin: written by scripts/bench -->", "<!-- end: written by scripts/bench -->"
CITED_AWA_PER_S = 380
BUSY = 0.1
"""A larger share of the processors' time, just before a run or just after it, is that of others at work."""

Result = dict[str, Any]


def write(docs: Path, results: Result) -> None:
    """Write the three files."""
    (docs / "benchmarks.json").write_text(as_json(results), encoding="utf-8")
    (docs / "benchmarks.svg").write_text(plot.growth(results["results"]), encoding="utf-8")
    page = docs / "benchmarks.md"
    page.write_text(replaced(page.read_text(encoding="utf-8"), tables(results)), encoding="utf-8")


def as_json(results: Result) -> str:
    """Return the results as text."""
    return json.dumps(results, indent=1, default=str) + "\n"


def replaced(text: str, body: str) -> str:
    """Put the tables between the markers of a page."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{body}\n{END}{after}"


def tables(results: Result) -> str:
    """Return everything in Markdown."""
    found = results["results"]
    parts = [_machine(results)]
    makers = (_herd, _idle, _outage, _steady, _sync, _jobs)
    for maker in makers:
        case = maker.__name__[1:]
        part = [each for each in found if each["case"] == case]
        if part:
            parts.append(maker(part))
    return "\n\n".join(parts)


def _machine(results: Result) -> str:
    machine = results["machine"]
    settings = ", ".join(f"`{name}` {value}" for name, value in machine["settings"].items())
    where = (
        f"{results['at']}: {machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"{machine['system']}, Python {machine['python']}, Postgres {machine['postgres']} on the same machine "
        f"({settings})."
    )
    lines = [where]
    if results.get("quick"):
        lines.append(
            "**A quick run: small numbers, each measured once. `scripts/bench --write` measures the real ones.**"
        )
    shares = [machine[when] for when in ("busy_before", "busy_after") if machine.get(when) is not None]
    if max(shares, default=0.0) > BUSY:
        lines.append(
            "**Others were at work on this machine: the seconds below are too long, and only what was measured "
            "side by side may be compared.**"
        )
    return "\n\n".join(lines)


def _herd(found: Sequence[Result]) -> str:
    floors = {each["arguments"]["count"]: _value(each, "seconds") for each in found if each["subject"] == "floor"}
    rows = []
    for each in sorted(found, key=lambda one: one["arguments"]["count"]):
        count, seconds = each["arguments"]["count"], _value(each, "seconds")
        floor = floors.get(count)
        rows.append(
            (
                f"{count:,}",
                each["subject"],
                each["variant"],
                _told(each, seconds, "{:.3g}"),
                "" if not seconds else f"{count / seconds:,.0f}",
                "" if not (seconds and floor) else f"{seconds / floor:.2f}",
                _number(each, "loop_blocked_ms", "{:.0f}"),
                _number(each, "memory_mb", "{:.0f}"),
            )
        )
    heads = ("schedules", "", "", "seconds", "jobs a second", "times the floor", "loop blocked, ms", "memory, MB")
    note = (
        f"The full Awa was measured once before, on this kind of machine, at {CITED_AWA_PER_S} fires a second for "
        "1,000 schedules (cited, not of this run)."
    )
    title = "### A herd: all due in one second, until the last job is committed"
    return "\n\n".join((title, _table(heads, rows), note))


def _idle(found: Sequence[Result]) -> str:
    heads = ("schedules", "tick, ms", "p99, ms", "processor of the leader, ms", "of the server, ms")
    names = ("tick_ms", "tick_p99_ms", "cpu_ms", "server_cpu_ms")
    rows = [
        (f"{each['arguments']['count']:,}", *(_number(each, name, "{:.2f}") for name in names)) for each in found
    ]
    return "\n\n".join(("### An idle tick: nothing is due", _table(heads, rows)))


def _outage(found: Sequence[Result]) -> str:
    rows = [
        (each["variant"], _number(each, "first_pass_ms", "{:.1f}"), _number(each, "jobs", "{:.0f}"))
        for each in found
    ]
    title = "### After an outage: the first pass of a schedule that fires each minute"
    return "\n\n".join((title, _table(("", "first pass, ms", "jobs"), rows)))


def _steady(found: Sequence[Result]) -> str:
    heads = ("fires a second", "for", "late p50, ms", "p99, ms", "most, ms", "loop blocked, ms", "share of a core")
    names = ("late_p50_ms", "late_p99_ms", "late_max_ms", "loop_blocked_ms")
    rows = [
        (
            f"{each['arguments']['count']:,}",
            each["variant"],
            *(_number(each, name, "{:.0f}") for name in names),
            _number(each, "cpu_share", "{:.2f}"),
        )
        for each in found
    ]
    return "\n\n".join(("### Lateness in steady state, until the event of a fire is written", _table(heads, rows)))


def _sync(found: Sequence[Result]) -> str:
    heads = (
        "schedules",
        "first sync, s",
        "unchanged, s",
        "rows written",
        "loop blocked: first, ms",
        "unchanged, ms",
    )
    names = {
        "first_s": "{:.1f}",
        "unchanged_s": "{:.2f}",
        "unchanged_rows_written": "{:.0f}",
        "first_loop_blocked_ms": "{:.0f}",
        "unchanged_loop_blocked_ms": "{:.0f}",
    }
    rows = [
        (f"{each['arguments']['count']:,}", *(_number(each, name, form) for name, form in names.items()))
        for each in found
    ]
    return "\n\n".join(("### A sync of one process's schedules", _table(heads, rows)))


def _jobs(found: Sequence[Result]) -> str:
    rows = [
        (
            each["subject"],
            each["variant"],
            f"{each['arguments']['count']:,}",
            _told(each, _value(each, "jobs_per_s"), "{:,.0f}"),
        )
        for each in found
    ]
    title = "### Jobs that do nothing, run by one process"
    return "\n\n".join((title, _table(("", "", "jobs", "jobs a second"), rows)))


def _told(result: Result, value: float | None, form: str) -> str:
    if value is None:
        return f"not measured: {result['problem']}"
    return form.format(value)


def _number(result: Result, name: str, form: str) -> str:
    value = _value(result, name)
    return "" if value is None else form.format(value)


def _value(result: Result, name: str) -> float | None:
    value = result["values"].get(name)
    return None if value is None else float(value)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def lines() -> Iterator[str]:
        yield "| " + " | ".join(heads) + " |"
        yield "|" + "|".join("---" if not head else "---:" for head in heads) + "|"
        for row in rows:
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"

    return "\n".join(lines())
