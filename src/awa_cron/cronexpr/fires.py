"""The instants at which an expression fires in a time zone.

Debian cron's rule for changes of the clock. An expression whose minute and hour do not start with ``*`` is
**fixed-time**: it fires once for each wall time that matches, at the first copy where the time is repeated,
at the first instant after the gap where it is skipped. Any other is **interval**: it fires at every real
instant whose wall time matches, so not for skipped times, and twice for repeated ones.

All instants are aware UTC datetimes of whole seconds. Every walk ends: at the years 53 and 9947, or when 100
years hold no fire (an interval inside a gap of every year, such as ``* 2 * 3 SUN#2`` in New York).
"""

from __future__ import annotations

from datetime import MINYEAR, UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from awa_cron.cronexpr.dialect import CronExpression, parse
from awa_cron.cronexpr.fields import shown
from awa_cron.cronexpr.wallclock import first_match, last_match
from awa_cron.cronexpr.zones import clock_change, zone
from awa_cron.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

MAX_COUNT: Final = 10_000

_SECOND: Final = timedelta(seconds=1)
_FIRST: Final = datetime(52, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9948, 12, 31, tzinfo=UTC)
_GIVE_UP: Final = timedelta(days=36525)
# Shorter than the 6.9 days between the two closest clock changes of any zone, so a stride holds at most one;
# longer than the 2 days by which two UTC offsets can differ, so no change moves a wall time by more.
_STRIDE: Final = timedelta(days=3)


def next_fires(cron_expr: str | CronExpression, timezone: str, *, after: datetime, count: int) -> list[datetime]:
    """The next fires strictly after an instant, earliest first.

    Args:
        cron_expr: the expression.
        timezone: the IANA zone whose wall clock it is read on.
        after: any aware datetime.
        count: how many, 1 to 10,000.

    Returns:
        Aware UTC datetimes, strictly increasing. Fewer than `count` only where the walk ends.

    Raises:
        InvalidCronExpression: see `parse`.
        UnknownTimezone: see `zone`.
        InvalidArgument: a naive datetime, or a count out of bounds.
    """
    expression, tz, instant = parse(cron_expr), zone(timezone), _instant("after", after)
    fires: list[datetime] = []
    for _ in range(_count(count)):
        fire = _first_after(expression, tz, instant)
        if fire is None:
            break
        fires.append(fire)
        instant = fire
    return fires


def previous_fires(
    cron_expr: str | CronExpression, timezone: str, *, before: datetime, count: int
) -> list[datetime]:
    """The previous fires strictly before an instant, latest first; otherwise as `next_fires`."""
    expression, tz = parse(cron_expr), zone(timezone)
    instant = _instant("before", before, nudge=-datetime.resolution)
    fires: list[datetime] = []
    for _ in range(_count(count)):
        fire = _last_until(expression, tz, instant)
        if fire is None:
            break
        fires.append(fire)
        instant = fire - _SECOND
    return fires


def due_fires(
    cron_expr: str | CronExpression, timezone: str, *, after: datetime, until: datetime
) -> Iterator[datetime]:
    """The fires with ``after < fire <= until``, earliest first, computed as they are asked for.

    Arguments are checked at the call, not at the first fire.

    Args:
        cron_expr: the expression.
        timezone: the IANA zone whose wall clock it is read on.
        after: any aware datetime.
        until: any aware datetime; before `after` means no fires.

    Raises:
        InvalidCronExpression: see `parse`.
        UnknownTimezone: see `zone`.
        InvalidArgument: a naive datetime.
    """
    return _due(parse(cron_expr), zone(timezone), _instant("after", after), _instant("until", until))


def latest_due(
    cron_expr: str | CronExpression, timezone: str, *, after: datetime, until: datetime
) -> datetime | None:
    """The last of `due_fires`, found by one search backward from `until`, however long the span."""
    start, end = _instant("after", after), _instant("until", until)
    fire = _last_until(parse(cron_expr), zone(timezone), end)
    return fire if fire is not None and fire > start else None


def _due(expression: CronExpression, tz: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    fire = _first_after(expression, tz, after)
    while fire is not None and fire <= until:
        yield fire
        fire = _first_after(expression, tz, fire)


def _first_after(expression: CronExpression, tz: ZoneInfo, instant: datetime) -> datetime | None:
    if not expression.fixed_time:
        return _interval_from(expression, tz, instant + _SECOND)
    wall = first_match(expression, _wall_reached(tz, instant) + _SECOND)
    return None if wall is None else _fixed_instant(tz, wall)


def _last_until(expression: CronExpression, tz: ZoneInfo, instant: datetime) -> datetime | None:
    if not expression.fixed_time:
        return _interval_until(expression, tz, instant)
    wall = last_match(expression, _wall_reached(tz, instant))
    return None if wall is None else _fixed_instant(tz, wall)


def _wall_reached(tz: ZoneInfo, instant: datetime) -> datetime:
    """The latest wall time that the zone's clock has shown by this instant, or skipped."""
    local = instant.astimezone(tz)
    if local.fold:
        # The clock was put back before this instant: it had then shown all of what is now repeated.
        change = _change_at(tz, local)
        local = (change - _SECOND).astimezone(tz)
    return local.replace(tzinfo=None)


def _fixed_instant(tz: ZoneInfo, wall: datetime) -> datetime:
    """The first instant at which the zone's clock shows this wall time or, in a gap, has passed it."""
    instant = wall.replace(tzinfo=tz).astimezone(UTC)
    if instant.astimezone(tz).replace(tzinfo=None) == wall:
        return instant
    return _change_at(tz, wall.replace(tzinfo=tz))


def _change_at(tz: ZoneInfo, local: datetime) -> datetime:
    """The clock change that repeats or skips this wall time: it lies between the two readings of it."""
    readings = [local.replace(fold=fold).astimezone(UTC) for fold in (0, 1)]
    change = clock_change(tz, min(readings), max(readings))
    assert change is not None, f"{local} is neither repeated nor skipped"
    return change


def _interval_from(expression: CronExpression, tz: ZoneInfo, start: datetime) -> datetime | None:
    """The first instant from `start` on whose wall time matches.

    The match by the present offset is right if the clock does not change before it, which is looked at one
    stride at a time. A match further off is approached to a stride: no other offset can bring it nearer.
    """
    at = start
    while at - start < _GIVE_UP:
        local = at.astimezone(tz)
        wall = first_match(expression, local.replace(tzinfo=None))
        if wall is None:
            return None
        fire = at + (wall - local.replace(tzinfo=None))
        change = clock_change(tz, at, min(fire, at + _STRIDE))
        if change is not None:
            at = change
        elif fire <= at + _STRIDE:
            return fire
        else:
            at = max(at + _STRIDE, fire - _STRIDE)
    return None


def _interval_until(expression: CronExpression, tz: ZoneInfo, end: datetime) -> datetime | None:
    """The last instant until `end` whose wall time matches; the mirror image of `_interval_from`."""
    at = end
    while end - at < _GIVE_UP:
        local = at.astimezone(tz)
        wall = last_match(expression, local.replace(tzinfo=None))
        if wall is None:
            return None
        fire = at - (local.replace(tzinfo=None) - wall)
        change = clock_change(tz, max(fire, at - _STRIDE), at)
        if change is not None:
            at = change - _SECOND
        elif fire >= at - _STRIDE:
            return fire
        else:
            at = min(at - _STRIDE, fire + _STRIDE)
    return None


def _instant(name: str, value: object, *, nudge: timedelta = timedelta(0)) -> datetime:
    """An argument as a whole second of UTC, within the years that a walk covers."""
    if not isinstance(value, datetime):
        raise InvalidArgument(f"{name}={shown(value)}: pass an aware datetime, not {type(value).__name__}")
    if value.utcoffset() is None:
        raise InvalidArgument(
            f"{name}={value!r} is naive and could be any of 24 hours; pass an aware datetime such as"
            f" datetime.now(UTC), or attach the zone it was meant in"
        )
    try:
        instant = value.astimezone(UTC)
    except OverflowError:
        instant = _FIRST if value.year == MINYEAR else _LAST
    return (min(max(instant, _FIRST), _LAST) + nudge).replace(microsecond=0)


def _count(count: object) -> int:
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_COUNT:
        raise InvalidArgument(f"count={shown(count)}: pass an integer from 1 to {MAX_COUNT}")
    return count
