"""The functions that list fires: their arguments, their ends, and what they cost."""

from __future__ import annotations

import inspect
import time
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from awa_cron import cronexpr
from awa_cron.cronexpr import due_fires, latest_due, next_fires, parse, previous_fires
from awa_cron.errors import InvalidArgument, InvalidCronExpression, UnknownTimezone

if TYPE_CHECKING:
    from collections.abc import Callable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

CALLS: dict[str, Callable[..., object]] = {
    "next_fires after": lambda cron, tz, at: next_fires(cron, tz, after=at, count=1),
    "previous_fires before": lambda cron, tz, at: previous_fires(cron, tz, before=at, count=1),
    "due_fires after": lambda cron, tz, at: due_fires(cron, tz, after=at, until=NOON),
    "due_fires until": lambda cron, tz, at: due_fires(cron, tz, after=NOON, until=at),
    "latest_due after": lambda cron, tz, at: latest_due(cron, tz, after=at, until=NOON),
    "latest_due until": lambda cron, tz, at: latest_due(cron, tz, after=NOON, until=at),
}
call_each = pytest.mark.parametrize("name", CALLS)


def test_exported_names() -> None:
    expected = [
        "CronExpression",
        "clock_change",
        "due_fires",
        "latest_due",
        "next_fires",
        "parse",
        "previous_fires",
        "zone",
    ]

    assert expected == cronexpr.__all__


@call_each
@pytest.mark.parametrize("at", [datetime(2026, 1, 1), NOON.date(), 0, None, "2026-01-01T00:00Z"], ids=repr)  # noqa: DTZ001
def test_what_is_no_aware_datetime_is_refused(name: str, at: Any) -> None:
    argument = name.split()[1]

    with pytest.raises(InvalidArgument, match=f"^{argument}=.*pass an aware datetime"):
        CALLS[name]("0 9 * * *", "UTC", at)


@call_each
def test_expression_and_zone_are_checked_at_the_call(name: str) -> None:
    with pytest.raises(InvalidCronExpression):
        CALLS[name]("61 * * * *", "UTC", NOON)
    with pytest.raises(UnknownTimezone):
        CALLS[name]("0 9 * * *", "Mars/Phobos", NOON)


@pytest.mark.parametrize("count", [0, -1, 10_001, True, 1.0, "3", None], ids=repr)
def test_count_out_of_bounds_is_refused(count: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^count=.*pass an integer from 1 to 10000"):
        next_fires("0 9 * * *", "UTC", after=NOON, count=count)
    with pytest.raises(InvalidArgument, match=r"^count=.*pass an integer from 1 to 10000"):
        previous_fires("0 9 * * *", "UTC", before=NOON, count=count)


def test_bounds_are_strict_where_they_say_so() -> None:
    hours = [NOON, NOON + HOUR, NOON + 2 * HOUR]

    assert hours[1:] == next_fires("0 * * * *", "UTC", after=NOON, count=2)
    assert hours[1::-1] == previous_fires("0 * * * *", "UTC", before=hours[2], count=2)
    assert hours[1:] == list(due_fires("0 * * * *", "UTC", after=NOON, until=hours[2]))
    assert hours[2] == latest_due("0 * * * *", "UTC", after=NOON, until=hours[2])
    assert latest_due("0 * * * *", "UTC", after=NOON, until=NOON) is None
    assert latest_due("0 * * * *", "UTC", after=hours[2], until=NOON) is None
    assert list(due_fires("0 * * * *", "UTC", after=hours[2], until=NOON)) == []


def test_fractions_of_a_second_count() -> None:
    instant = timedelta(microseconds=1)

    assert [NOON] == next_fires("0 * * * *", "UTC", after=NOON - instant, count=1)
    assert [NOON + HOUR] == next_fires("0 * * * *", "UTC", after=NOON + instant, count=1)
    assert [NOON] == previous_fires("0 * * * *", "UTC", before=NOON + instant, count=1)
    assert [NOON - HOUR] == previous_fires("0 * * * *", "UTC", before=NOON - instant, count=1)
    assert NOON == latest_due("0 * * * *", "UTC", after=NOON - instant, until=NOON + instant)
    assert latest_due("0 * * * *", "UTC", after=NOON, until=NOON + instant) is None
    assert latest_due("0 * * * *", "UTC", after=NOON - HOUR, until=NOON - instant) is None


@pytest.mark.parametrize("tz", [timezone(timedelta(hours=-7, seconds=1)), ZoneInfo("Asia/Kolkata"), UTC], ids=str)
def test_any_aware_datetime_will_do_and_utc_comes_back(tz: Any) -> None:
    [fire] = next_fires("0 13 * * *", "UTC", after=NOON.astimezone(tz), count=1)

    assert fire == NOON + HOUR
    assert fire.tzinfo is UTC


def test_a_parsed_expression_will_do() -> None:
    assert next_fires(parse("@hourly"), "UTC", after=NOON, count=1) == [NOON + HOUR]


@pytest.mark.parametrize("timezone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "America/New_York"])
@pytest.mark.parametrize("cron_expr", ["* * * * * *", "0 9 * * *", "*/5 * * * *", "0 0 29 2 *", "* 0 31 12 *"])
def test_walks_end_with_the_years(cron_expr: str, timezone: str) -> None:
    [first] = next_fires(cron_expr, timezone, after=EARLIEST, count=1)
    [last] = previous_fires(cron_expr, timezone, before=LATEST, count=1)

    assert first.year < 60
    assert last.year > 9940
    assert previous_fires(cron_expr, timezone, before=first, count=1) == []
    assert next_fires(cron_expr, timezone, after=last, count=1) == []
    assert previous_fires(cron_expr, timezone, before=EARLIEST, count=1) == []
    assert next_fires(cron_expr, timezone, after=LATEST, count=1) == []
    assert latest_due(cron_expr, timezone, after=EARLIEST, until=LATEST) == last
    assert next(due_fires(cron_expr, timezone, after=EARLIEST, until=LATEST)) == first
    assert next_fires(cron_expr, timezone, after=last - timedelta(seconds=1), count=5) == [last]


@pytest.mark.parametrize("hours", [-14, 14])
def test_datetimes_beyond_the_years_of_utc_will_do(hours: int) -> None:
    tz = timezone(timedelta(hours=hours))

    assert len(next_fires("0 9 * * *", "UTC", after=datetime.min.replace(tzinfo=tz), count=1)) == 1
    assert len(previous_fires("0 9 * * *", "UTC", before=datetime.max.replace(tzinfo=tz), count=1)) == 1


def test_due_fires_are_computed_as_they_are_asked_for() -> None:
    due = due_fires("* * * * * *", "UTC", after=EARLIEST, until=LATEST)

    assert inspect.isgenerator(due)
    assert len(list(islice(due, 100))) == 100


@pytest.mark.parametrize("cron_expr", ["* * * * *", "0 9 * * *", "0 0 29 2 *", "* * 29 2 *", "0 0 * 2 MON#5"])
def test_latest_due_costs_one_search_however_long_the_outage(cron_expr: str) -> None:
    until = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)
    latest_due(cron_expr, "Europe/Berlin", after=EARLIEST, until=until)

    start = time.thread_time()
    for years in range(10, 110):
        latest_due(cron_expr, "Europe/Berlin", after=until - timedelta(days=365 * years), until=until)
    assert time.thread_time() - start < 0.5


def test_an_interval_that_lies_in_a_gap_of_every_year_is_given_up() -> None:
    start = time.thread_time()

    assert next_fires("* 2 * 3 SUN#2", "America/New_York", after=NOON, count=1) == []
    assert previous_fires("* 2 * 3 SUN#2", "America/New_York", before=NOON.replace(year=2150), count=1) == []
    assert time.thread_time() - start < 0.5
