"""What is coming, and the words for the days on which a wall clock skips an hour or shows one twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from awa_cron import InvalidArgument, UnknownTimezone, coming_fires, cronexpr
from awa_cron.preview import GAPS_SHOWN, ComingFire, Oddity, reading
from tests.unit import cron_strategies
from tests.unit.cron_strategies import DAY, HOUR, Window

BERLIN = "Europe/Berlin"


def coming(cron_expr: str, after: str, count: int, timezone: str = BERLIN) -> list[ComingFire]:
    return coming_fires(cron_expr, timezone, after=datetime.fromisoformat(after), count=count)


def shown(*fires: ComingFire) -> list[tuple[str, Oddity | None]]:
    return [(each.local, each.oddity) for each in fires]


def test_a_gap_that_begins_at_midnight_is_of_the_day_that_lacks_it() -> None:
    words = [each.words for each in coming("0 0 * * *", "2026-03-08T00:00Z", 1, "America/Havana")]
    assert ["00:00:00 does not exist on 2026-03-08: fires at the first instant after, 01:00:00 CDT"] == words


def test_a_fixed_time_in_a_gap_is_moved_to_the_first_instant_after_it() -> None:
    moved, plain = coming("30 2 * * *", "2026-03-28T12:00Z", 2)
    assert [("2026-03-29T03:00:00+02:00", Oddity.MOVED), ("2026-03-30T02:30:00+02:00", None)] == shown(moved, plain)
    assert datetime(2026, 3, 29, 1, tzinfo=UTC) == moved.fire
    assert "02:30:00 does not exist on 2026-03-29: fires at the first instant after, 03:00:00 CEST" == moved.words
    assert plain.words is None


def test_several_fixed_times_in_a_gap_are_one_fire_beside_its_own_time() -> None:
    [moved] = coming("15,45 2 * * *", "2026-03-28T12:00Z", 1)
    assert moved.words is not None
    assert moved.words.startswith("02:15:00, 02:45:00 do not exist")
    [moved] = coming("0 2,3 * * *", "2026-03-28T12:00Z", 1)
    assert moved.words is not None
    assert moved.words.endswith("03:00:00 CEST (its own time too)")


def test_a_fixed_time_that_comes_twice_fires_at_the_first_copy() -> None:
    first, plain = coming("30 2 * * *", "2026-10-24T12:00Z", 2)
    assert [("2026-10-25T02:30:00+02:00", Oddity.FIRST_COPY), ("2026-10-26T02:30:00+01:00", None)] == shown(
        first, plain
    )
    assert "02:30:00 comes twice on 2026-10-25: fires at the first, not again at 02:30:00 CET" == first.words


def test_an_interval_skips_what_does_not_exist_and_says_so() -> None:
    fires = coming("*/15 * * * *", "2026-03-29T00:40Z", 2)
    assert [
        ("2026-03-29T01:45:00+01:00", None),
        ("2026-03-29T02:00:00", Oddity.SKIPPED),
        ("2026-03-29T03:00:00+02:00", None),
    ] == shown(*fires)
    assert fires[1].fire is None
    assert (
        "02:00:00, 02:15:00, 02:30:00, 02:45:00 do not exist on 2026-03-29: the clock goes from 02:00:00 to "
        "03:00:00"
    ) == fires[1].words
    [skipped, _] = coming("* 2 * * *", "2026-03-29T00:40Z", 1)
    assert skipped.words is not None
    assert "02:03:00, … do not exist" in skipped.words


def test_an_interval_fires_at_both_copies() -> None:
    fires = coming("*/30 * * * *", "2026-10-24T23:45Z", 5)
    assert [
        ("2026-10-25T02:00:00+02:00", Oddity.DOUBLED),
        ("2026-10-25T02:30:00+02:00", Oddity.DOUBLED),
        ("2026-10-25T02:00:00+01:00", Oddity.DOUBLED),
        ("2026-10-25T02:30:00+01:00", Oddity.DOUBLED),
        ("2026-10-25T03:00:00+01:00", None),
    ] == shown(*fires)
    assert "02:00:00 comes twice on 2026-10-25: this is the first" == fires[0].words
    assert "02:00:00 comes twice on 2026-10-25: this is the second" == fires[2].words


def test_an_interval_inside_the_gap_of_every_year_never_fires_and_the_answer_ends() -> None:
    fires = coming("* 2 * 3 SUN#2", "2026-01-01T00:00Z", 5, "America/New_York")
    assert [Oddity.SKIPPED] * GAPS_SHOWN == [each.oddity for each in fires]


def test_the_ends_of_time_and_unusable_arguments() -> None:
    assert [] == coming("*/5 * * * *", "9999-12-31T23:00Z", 3)
    assert 1 == len(coming("*/5 * * * *", "0001-01-01T00:00Z", 1))
    with pytest.raises(InvalidArgument, match="naive"):
        coming("*/5 * * * *", "2026-01-01T00:00", 1)
    with pytest.raises(UnknownTimezone):
        coming("*/5 * * * *", "2026-01-01T00:00Z", 1, "Mars/Phobos")


@pytest.mark.parametrize(
    ("wall", "instants", "said"),
    [
        ("2026-03-28T02:30", ["2026-03-28T01:30Z"], None),
        (
            "2026-03-29T02:30",
            ["2026-03-29T01:00Z"],
            (
                "02:30:00 does not exist on 2026-03-29 in Europe/Berlin: the clock goes from 02:00:00 to 03:00:00, "
                "the first instant after"
            ),
        ),
        (
            "2026-10-25T02:30",
            ["2026-10-25T00:30Z", "2026-10-25T01:30Z"],
            "02:30:00 comes twice on 2026-10-25 in Europe/Berlin",
        ),
        ("2026-10-25T03:00", ["2026-10-25T02:00Z"], None),
    ],
)
def test_a_wall_time_is_read_as_the_instants_that_it_means(
    wall: str, instants: list[str], said: str | None
) -> None:
    found = reading(datetime.fromisoformat(wall), BERLIN)
    assert (tuple(map(datetime.fromisoformat, instants)), said) == (found.instants, found.words)


@given(cron_strategies.expressions(), cron_strategies.windows(-DAY, HOUR, DAY))
def test_the_fires_are_those_of_cronexpr_and_every_oddity_is_one(expression: str, window: Window) -> None:
    zone, fixed = cronexpr.zone(window.timezone), cronexpr.parse(expression).fixed_time
    found = coming_fires(expression, window.timezone, after=window.after, count=20)
    fires = cronexpr.next_fires(expression, window.timezone, after=window.after, count=20)
    assert fires == [each.fire for each in found if each.fire is not None]
    for each in found:
        local = datetime.fromisoformat(each.local)
        if each.fire is None:
            assert (Oddity.SKIPPED, False) == (each.oddity, fixed)
            assert not exists(local, zone)
            continue
        assert local == each.fire
        again = (
            local.replace(tzinfo=zone, fold=1).astimezone(UTC),
            local.replace(tzinfo=zone, fold=0).astimezone(UTC),
        )
        if again[0] > again[1]:
            assert (Oddity.FIRST_COPY if fixed else Oddity.DOUBLED) is each.oddity
        elif each.oddity is not None:
            before = (each.fire - timedelta(seconds=1)).astimezone(zone).replace(tzinfo=None)
            assert (Oddity.MOVED, True) == (each.oddity, fixed)
            assert local.replace(tzinfo=None) - before > timedelta(seconds=1)


def exists(wall: datetime, zone: ZoneInfo) -> bool:
    return wall == wall.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None)
