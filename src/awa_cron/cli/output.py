"""How results look: tables and lines for people, JSON for scripts. Times are UTC unless a zone is named."""

from __future__ import annotations

import dataclasses
import enum
import json
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import click
from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from awa_cron import cronexpr

LONGEST_VALUE = 500
LAST_COLUMN = 24
"""A last column of this width can be read, whatever is in it."""


def json_of(value: object) -> None:
    """Print a value as JSON: datetimes as ISO 8601 in UTC with a ``Z``, records as objects."""
    click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def moment(value: datetime | None) -> str:
    """Return a time as people read it, in UTC and to the second; a dash for none."""
    return "-" if value is None else _utc(value).strftime("%Y-%m-%d %H:%M:%SZ")


def _utc(value: datetime) -> datetime:
    """Return a time in UTC; only those for which Python has no year come without a zone."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def local(value: datetime, timezone: str | None) -> str:
    """Return what a zone's clock shows, with its name; nothing for a zone that is not known here."""
    try:
        shown = value.astimezone(cronexpr.zone(timezone or ""))
    except (ValueError, OverflowError):
        return ""
    return f"{shown:%a %Y-%m-%d %H:%M:%S %Z} in {timezone}"


def printable(text: str) -> str:
    """Return text with its control characters escaped: rows written by hand may hold any."""
    if text.isprintable():
        return text
    return "".join(
        character if unicodedata.category(character)[0] != "C" else character.encode("unicode_escape").decode()
        for character in text
    )


def compact(value: object) -> str:
    """Return a JSON value on one line, cut to what one can read."""
    return cut(json.dumps(value, ensure_ascii=False))


def cut(text: str) -> str:
    """Return text, or as much of it as one can read."""
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({len(text)} characters; see --json)"


def table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print a table; in a pipe it has neither colours nor a width to fit in.

    In a terminal that is too narrow for it, each line is a block of names and values instead.
    """
    cells = [[printable(cut(cell)) for cell in line] for line in lines]
    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        click.echo(_plain_table(columns, cells))
        return
    if _wanted(columns, cells) > console.width:
        for line in cells:
            console.print(Text(line[0], style="bold"), soft_wrap=True)
            fields({f"  {column}": cell for column, cell in zip(columns[1:], line[1:], strict=True)})
        return
    shown = Table(box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False)
    for column in columns:
        shown.add_column(column, overflow="fold")
    for line in cells:
        shown.add_row(*map(Text, line))
    console.print(shown)


def _wanted(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> int:
    """Return how wide a table has to be; its last column may be broken into lines."""
    *widths, last = (max(map(cell_len, column)) for column in zip(columns, *lines, strict=True))
    return sum(widths) + 2 * len(widths) + min(last, LAST_COLUMN)


def _plain_table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table as text; rich would take a minute for the schedules that a database may have."""
    widths = [max(map(cell_len, column)) for column in zip(columns, *lines, strict=True)]
    rows = [columns, ["─" * width for width in widths], *lines]
    return "\n".join("   ".join(map(set_cell_size, row, widths)).rstrip() for row in rows)


def fields(pairs: Mapping[str, str]) -> None:
    """Print names and values, one pair a line, values in one column."""
    width = max(map(len, pairs))
    for name, value in pairs.items():
        click.echo(f"{name:<{width}}  {printable(cut(value))}")


def _plain(value: object) -> object:
    match value:
        case datetime():
            return _utc(value).isoformat().replace("+00:00", "Z")
        case enum.Enum():
            return value.value
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case _ if dataclasses.is_dataclass(value):
            return {
                field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value) if field.repr
            }
        case _:
            return value
