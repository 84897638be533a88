"""The wall times that an expression matches: a search without zones, in both directions.

A wall time is read as six wheels, year to second. Which values a wheel has depends at most on the wheels
before it, so the nearest match is the first hit of a depth-first search that starts at the given time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from calendar import monthrange
from datetime import datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from awa_cron.cronexpr.dialect import CronExpression

# Two years from the ends of datetime, so that a zone's offset cannot carry a match over them.
YEARS: Final = range(3, 9998)


def first_match(expression: CronExpression, wall: datetime) -> datetime | None:
    """The earliest match at or after a naive wall time; None when the years have ended."""
    return _search(expression, (), _reading(wall), ahead=True)


def last_match(expression: CronExpression, wall: datetime) -> datetime | None:
    """The latest match at or before a naive wall time; None when the years have ended."""
    return _search(expression, (), _reading(wall), ahead=False)


def _reading(wall: datetime) -> tuple[int, ...]:
    return wall.year, wall.month, wall.day, wall.hour, wall.minute, wall.second


def _search(
    expression: CronExpression, reading: tuple[int, ...], limit: tuple[int, ...] | None, *, ahead: bool
) -> datetime | None:
    """The match nearest to `limit` among those that begin with `reading`.

    `limit` is None once the reading has moved past it: then every value of the wheels that follow will do.
    The only wheel that can be empty is the day, and a valid expression has a day within forty years.
    """
    depth = len(reading)
    if depth == 6:
        year, month, day, hour, minute, second = reading
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001
    values = _wheel(expression, reading)
    if limit is not None:
        if ahead:
            values = values[bisect_left(values, limit[depth]) :]
        else:
            values = values[: bisect_right(values, limit[depth])]
    for value in values if ahead else reversed(values):
        still = limit if limit is not None and value == limit[depth] else None
        found = _search(expression, (*reading, value), still, ahead=ahead)
        if found is not None:
            return found
    return None


def _wheel(expression: CronExpression, reading: tuple[int, ...]) -> Sequence[int]:
    match reading:
        case ():
            return YEARS
        case (_,):
            return expression.months
        case (year, month):
            first, length = monthrange(year, month)
            return expression.days[first][length - 28]
        case (_, _, _):
            return expression.hours
        case (_, _, _, _):
            return expression.minutes
        case _:
            return expression.seconds
