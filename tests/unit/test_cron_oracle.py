"""Fires compared with independent evaluators, over zones whose clocks change in unusual ways."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from cronsim import CronSim
from hypothesis import assume, given
from hypothesis import strategies as st

from awa_cron.cronexpr import due_fires, latest_due, next_fires, parse, previous_fires, zone
from awa_cron.cronexpr.zones import zone_names
from tests.unit.cron_oracle import Oracle
from tests.unit.cron_strategies import DAY, HOUR, MINUTE, SECOND, ZONES, Window, changes, expressions, windows

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_REPEAT = HOUR * 3  # Troll repeats two hours
DAYS = windows(early=-30 * HOUR, late=3 * HOUR, length=40 * HOUR)
MINUTES = windows(early=-HOUR, late=3 * HOUR, length=40 * MINUTE)


def agrees_with_oracle(cron_expr: str, window: Window) -> None:
    timezone, after, until = window
    expected = Oracle(cron_expr).fires(zone(timezone), after, until, lead=LONGEST_REPEAT)

    assert expected == list(due_fires(cron_expr, timezone, after=after, until=until))
    assert (expected[-1] if expected else None) == latest_due(cron_expr, timezone, after=after, until=until)
    if expected:
        assert expected == next_fires(cron_expr, timezone, after=after, count=len(expected))
        assert expected[::-1] == previous_fires(cron_expr, timezone, before=until + SECOND, count=len(expected))


@given(expressions(), DAYS)
def test_five_fields_fire_as_a_daemon_that_looks_every_minute(cron_expr: str, window: Window) -> None:
    agrees_with_oracle(cron_expr, window)


@given(expressions(seconds=True), MINUTES)
def test_six_fields_fire_as_a_daemon_that_looks_every_second(cron_expr: str, window: Window) -> None:
    agrees_with_oracle(cron_expr, window)


@pytest.mark.parametrize("cron_expr", ["*/20 * * * *", "10-50/20 0-23 * * *", "0 */2 * * *"])
def test_every_zone_fires_as_the_daemon_does_at_its_clock_changes(cron_expr: str) -> None:
    clocks = {tuple((change, _shown(name, change)) for change in changes(name)): name for name in zone_names()}

    for name in clocks.values():
        for change in changes(name):
            for begin in (change - 4 * HOUR, change - SECOND, change, change + 10 * MINUTE):
                agrees_with_oracle(cron_expr, Window(name, begin, change + 2 * HOUR))


def _shown(timezone: str, change: datetime) -> tuple[datetime, datetime]:
    """What the zone's clock shows where it changes: the time not reached any more, and the one instead of it."""
    before, after = (
        (change - nudge).astimezone(zone(timezone)).replace(tzinfo=None) for nudge in (SECOND, 0 * SECOND)
    )
    return before + SECOND, after


@given(
    st.booleans().flatmap(lambda seconds: expressions(seconds=seconds)),
    st.sampled_from(ZONES),
    st.datetimes(datetime(1850, 1, 1), datetime(2150, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_forward_and_backward_find_the_same_fires(cron_expr: str, timezone: str, after: datetime) -> None:
    fires = next_fires(cron_expr, timezone, after=after, count=4)

    assert all(earlier < later for earlier, later in itertools.pairwise([after, *fires]))
    assert all(fire.tzinfo is UTC and fire.microsecond == 0 for fire in fires)
    for number, fire in enumerate(fires):
        assert previous_fires(cron_expr, timezone, before=fire, count=number or 1)[:number] == fires[:number][::-1]
        assert latest_due(cron_expr, timezone, after=after, until=fire) == fire
        assert latest_due(cron_expr, timezone, after=after, until=fire - SECOND) == (
            fires[number - 1] if number else None
        )
    if fires:
        assert list(due_fires(cron_expr, timezone, after=after, until=fires[-1])) == fires


# Where cronsim is wrong or follows another rule. Each has its demonstration; nothing else may differ.

SINGLE_RANGE = "a range of one value with a step, 7-7/10, is read as 7/10"
SIX_FIELDS = "six fields are never fixed-time"
SECOND_COPY = "begun in the second copy of a repeated time, a fixed time finds or misses the first copy"
ODD_CHANGE = "where the clock does not change at a full hour, or changes at midnight, an interval loses its place"


def known_difference(cron_expr: str, window: Window) -> str | None:
    tz, fixed_time = zone(window.timezone), parse(cron_expr).fixed_time
    near = [each for each in changes(window.timezone) if window.after - DAY < each < window.until + DAY]
    if re.search(r"\b(\d+)-\1/", cron_expr):
        return SINGLE_RANGE
    if fixed_time and near and len(cron_expr.split()) == 6:
        return SIX_FIELDS
    if fixed_time and any(instant.astimezone(tz).fold for instant in (window.after, window.until + SECOND)):
        return SECOND_COPY
    if not fixed_time and any(_is_odd(*_shown(window.timezone, change)) for change in near):
        return ODD_CHANGE
    return None


def _is_odd(before: datetime, after: datetime) -> bool:
    at_midnight = before.hour == 0 or (before < after and after.hour == 0)
    return at_midnight or before.minute != 0 or after.minute != 0


def cronsim_fires(cron_expr: str, timezone: str, start: datetime, *, reverse: bool = False) -> Iterator[datetime]:
    for fire in CronSim(cron_expr, start.astimezone(zone(timezone)), reverse=reverse):
        yield fire.astimezone(UTC)


def agrees_with_cronsim(cron_expr: str, window: Window) -> None:
    timezone, after, until = window
    ours = list(due_fires(cron_expr, timezone, after=after, until=until))

    forward = itertools.takewhile(lambda fire: fire <= until, cronsim_fires(cron_expr, timezone, after))
    assert list(forward) == ours
    backward = itertools.takewhile(
        lambda fire: fire > after, cronsim_fires(cron_expr, timezone, until + SECOND, reverse=True)
    )
    assert list(backward) == ours[::-1]


@given(expressions(), DAYS)
def test_five_fields_fire_as_in_cronsim(cron_expr: str, window: Window) -> None:
    assume(not known_difference(cron_expr, window))
    agrees_with_cronsim(cron_expr, window)


@given(expressions(seconds=True), MINUTES)
def test_six_fields_fire_as_in_cronsim(cron_expr: str, window: Window) -> None:
    assume(not known_difference(cron_expr, window))
    agrees_with_cronsim(cron_expr, window)


@pytest.mark.parametrize(
    ("difference", "cron_expr", "timezone", "after", "fires"),
    [
        (SINGLE_RANGE, "7-7/10 9 * * *", "UTC", "2026-01-01T09:10Z", "01-01 09:17, not 01-02 09:07"),
        (SIX_FIELDS, "0 30 1 * * *", "America/New_York", "2026-11-01T06:00Z", "11-01 06:30, not 11-02 06:30"),
        (SIX_FIELDS, "0 30 2 * * *", "America/New_York", "2026-03-08T05:00Z", "03-09 06:30, not 03-08 07:00"),
        (SECOND_COPY, "43 2 * * *", "Europe/Berlin", "2026-10-25T01:00Z", "10-25 00:43, not 10-26 01:43"),
        (ODD_CHANGE, "0 */3 * * *", "Australia/Lord_Howe", "2026-10-03T15:00Z", "10-03 19:00, not 10-03 16:00"),
        (ODD_CHANGE, "* 0 6 * *", "America/Santiago", "2026-09-05T12:00Z", "09-06 04:00, not 10-06 03:00"),
    ],
)
def test_cronsim_is_known_to_differ(difference: str, cron_expr: str, timezone: str, after: str, fires: str) -> None:
    start = datetime.fromisoformat(after)
    theirs = next(cronsim_fires(cron_expr, timezone, start))
    [ours] = next_fires(cron_expr, timezone, after=start, count=1)

    assert difference == known_difference(cron_expr, Window(timezone, start, start + DAY))
    assert fires == f"{theirs:%m-%d %H:%M}, not {ours:%m-%d %H:%M}"


def test_cronsim_is_known_not_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class StuckError(Exception):
        pass

    moves = itertools.count()
    tick = CronSim.tick

    def watched(simulation: CronSim, seconds: int = 1) -> None:
        if next(moves) > 20_000:
            raise StuckError
        tick(simulation, seconds)

    monkeypatch.setattr(CronSim, "tick", watched)
    cron_expr, timezone, before = "* 23 * * 6", "America/Scoresbysund", datetime(2026, 3, 29, 12, tzinfo=UTC)

    assert known_difference(cron_expr, Window(timezone, before - DAY, before)) == ODD_CHANGE
    with pytest.raises(StuckError):
        next(cronsim_fires(cron_expr, timezone, before, reverse=True))
    assert previous_fires(cron_expr, timezone, before=before, count=1) == [datetime(2026, 3, 22, 1, 59, tzinfo=UTC)]
