"""What is coming: the next fires of a definition, and what a change of the clock does to them. Pure.

The instants are those of ``cronexpr``; here they get the words that people need on the days when a wall clock skips
an hour or shows one twice.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo

from awa_cron import cronexpr
from awa_cron.cronexpr.wallclock import FIRST, LAST, first_match

GAPS_SHOWN: Final = 10
"""The most gaps between two fires that are told."""

WALLS_SHOWN: Final = 4
"""The most wall times of one gap that are told one by one."""

_SECOND: Final = timedelta(seconds=1)


class Oddity(enum.StrEnum):
    """What a change of the clock does to a fire."""

    MOVED = "moved"
    """Its wall time does not exist; a fixed time fires at the first instant after the gap."""
    SKIPPED = "skipped"
    """Wall times that do not exist; an interval does not fire there."""
    FIRST_COPY = "first copy"
    """Its wall time comes twice; a fixed time fires at the first only."""
    DOUBLED = "doubled"
    """Its wall time comes twice; an interval fires at both."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ComingFire:
    """A fire, or wall times at which there is none.

    Attributes:
        fire: The instant, in UTC; None for ``Oddity.SKIPPED``.
        local: What the zone's clock shows then, ISO 8601 with its offset; without one where it never shows it.
        oddity: What a change of the clock does; None on all other days.
        words: What happens, in a sentence; None where nothing odd does.
    """

    fire: datetime | None
    local: str
    oddity: Oddity | None = None
    words: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a wall time means in a zone.

    Attributes:
        instants: In UTC, ascending: one, or two where the clock shows the time twice.
        words: What is odd about it, in a sentence; None on all other days.
    """

    instants: tuple[datetime, ...]
    words: str | None = None


def reading(wall: datetime, timezone: str) -> Reading:
    """Return the instants at which a zone's clock shows a wall time.

    Where it never does, that is the first instant after the gap, at which a fixed-time schedule fires.

    Args:
        wall: A datetime without a zone.
        timezone: The IANA zone.

    Raises:
        UnknownTimezone: The zone is not known here.
    """
    zone = cronexpr.zone(timezone)
    first, second = (wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if _in_gap(wall, zone):
        before, upto = _gap(wall, zone)
        words = (
            f"{wall:%H:%M:%S} does not exist on {wall:%Y-%m-%d} in {timezone}: the clock goes from "
            f"{before:%H:%M:%S} to {upto:%H:%M:%S}, the first instant after"
        )
        return Reading(instants=(upto.replace(tzinfo=zone).astimezone(UTC),), words=words)
    if _comes_twice(first):
        words = f"{wall:%H:%M:%S} comes twice on {wall:%Y-%m-%d} in {timezone}"
        return Reading(instants=(first.astimezone(UTC), second.astimezone(UTC)), words=words)
    return Reading(instants=(first.astimezone(UTC),))


def coming_fires(
    cron_expr: str | cronexpr.CronExpression, timezone: str, *, after: datetime, count: int
) -> list[ComingFire]:
    """Return the next fires after an instant, and between them the wall times that are skipped.

    Args:
        cron_expr: The expression.
        timezone: The IANA zone whose wall clock it is read on.
        after: Any aware datetime.
        count: How many fires, 1 to 10,000; what is skipped comes on top.

    Raises:
        InvalidSchedule: The expression or the zone is not known here.
        InvalidArgument: A naive datetime, or a count out of bounds.
    """
    expression, zone = cronexpr.parse(cron_expr), cronexpr.zone(timezone)
    fires = cronexpr.next_fires(expression, timezone, after=after, count=count)
    if expression.fixed_time or not FIRST.year < after.year < LAST.year:
        return [described(expression, timezone, fire) for fire in fires]
    start = after.astimezone(UTC).replace(microsecond=0)
    coming: list[ComingFire] = []
    awaited: list[datetime] | list[None] = fires or [None]
    for fire in awaited:  # an interval may fall into the gap of every year
        coming += islice(_skipped(expression, zone, start, fire), GAPS_SHOWN)
        if fire is not None:
            coming.append(_interval(zone, fire))
            start = fire
    return coming


def described(cron_expr: str | cronexpr.CronExpression, timezone: str, fire: datetime) -> ComingFire:
    """Return one fire of a definition, with what a change of the clock does to it.

    Args:
        cron_expr: The expression.
        timezone: Its zone.
        fire: An instant at which it fires.

    Raises:
        InvalidSchedule: The expression or the zone is not known here.
    """
    expression, zone = cronexpr.parse(cron_expr), cronexpr.zone(timezone)
    return _fixed(expression, zone, fire) if expression.fixed_time else _interval(zone, fire)


def _fixed(expression: cronexpr.CronExpression, zone: ZoneInfo, fire: datetime) -> ComingFire:
    local = fire.astimezone(zone)
    last = (fire - _SECOND).astimezone(zone).replace(tzinfo=None)
    shown = local.replace(tzinfo=None)
    if shown - last > _SECOND:
        told = _told(expression, last + _SECOND, shown)
        if told:
            also = " (its own time too)" if first_match(expression, shown) == shown else ""
            words = f"{told} on {last + _SECOND:%Y-%m-%d}: fires at the first instant after, {_of(local)}{also}"
            return ComingFire(fire=fire, local=local.isoformat(), oddity=Oddity.MOVED, words=words)
    if _comes_twice(local):
        second = local.replace(fold=1)
        words = f"{shown:%H:%M:%S} comes twice on {shown:%Y-%m-%d}: fires at the first, not again at {_of(second)}"
        return ComingFire(fire=fire, local=local.isoformat(), oddity=Oddity.FIRST_COPY, words=words)
    return ComingFire(fire=fire, local=local.isoformat())


def _interval(zone: ZoneInfo, fire: datetime) -> ComingFire:
    local = fire.astimezone(zone)
    if not _comes_twice(local):
        return ComingFire(fire=fire, local=local.isoformat())
    words = f"{local:%H:%M:%S} comes twice on {local:%Y-%m-%d}: this is the {'second' if local.fold else 'first'}"
    return ComingFire(fire=fire, local=local.isoformat(), oddity=Oddity.DOUBLED, words=words)


def _skipped(
    expression: cronexpr.CronExpression, zone: ZoneInfo, after: datetime, fire: datetime | None
) -> Iterator[ComingFire]:
    """Yield, gap by gap, the matching wall times that the clock does not show before the next fire."""
    wall: datetime | None = after.astimezone(zone).replace(tzinfo=None) + _SECOND
    end = None if fire is None else fire.astimezone(zone).replace(tzinfo=None)
    while wall is not None:
        wall = first_match(expression, wall)
        if wall is None or (end is not None and wall >= end) or not _in_gap(wall, zone):
            return  # a wall time that exists is the fire, or lies behind a clock that was put back
        before, upto = _gap(wall, zone)
        words = f"{_told(expression, wall, upto)} on {wall:%Y-%m-%d}: "
        words += f"the clock goes from {before:%H:%M:%S} to {upto:%H:%M:%S}"
        yield ComingFire(fire=None, local=wall.isoformat(), oddity=Oddity.SKIPPED, words=words)
        wall = upto


def _told(expression: cronexpr.CronExpression, wall: datetime, upto: datetime) -> str:
    """Say that the matching wall times of a gap do not exist; nothing if there is none."""
    walls = list(islice(_matches(expression, wall, upto), WALLS_SHOWN + 1))
    if not walls:
        return ""
    more = ", …" if len(walls) > WALLS_SHOWN else ""
    told = ", ".join(f"{each:%H:%M:%S}" for each in walls[:WALLS_SHOWN]) + more
    return f"{told} do{'' if len(walls) > 1 else 'es'} not exist"


def _matches(expression: cronexpr.CronExpression, wall: datetime, upto: datetime) -> Iterator[datetime]:
    match = first_match(expression, wall)
    while match is not None and match < upto:
        yield match
        match = first_match(expression, match + _SECOND)


def _comes_twice(local: datetime) -> bool:
    first, second = local.replace(fold=0).utcoffset(), local.replace(fold=1).utcoffset()
    return first is not None and second is not None and first > second


def _in_gap(wall: datetime, zone: ZoneInfo) -> bool:
    local = wall.replace(tzinfo=zone)
    return local.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != wall


def _gap(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return the wall times between which the clock jumps: the first that does not exist, and the first after."""
    early, late = sorted(wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    change = cronexpr.clock_change(zone, early, late)
    assert change is not None, f"{wall} exists in {zone}"
    before = (change - _SECOND).astimezone(zone).replace(tzinfo=None) + _SECOND
    return before, change.astimezone(zone).replace(tzinfo=None)


def _of(local: datetime) -> str:
    return f"{local:%H:%M:%S %Z}"
