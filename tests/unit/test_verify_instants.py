"""The verifier's instants, a day at a time, are those of ``cronexpr``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from awa_cron import cronexpr
from awa_cron.verify.instants import Instants

EXPRESSIONS = [
    "* * * * *",
    "*/7 * * * *",
    "0 9 * * MON-FRI",
    "30 2 * * *",
    "30 1,2,3 * * *",
    "15 0 0 L * *",
    "0 0 29 2 *",
    "0 12 * * FRI#3",
    "*/20 0 23,0,1 * * *",
    "5 4 13 * FRI",
]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Asia/Kolkata", "Australia/Lord_Howe"]
# Hours near changes of some zone's clock; Apia has no 30 December 2011.
NEAR = [
    datetime(2026, 3, 29, tzinfo=UTC),
    datetime(2026, 10, 25, tzinfo=UTC),
    datetime(2026, 3, 8, tzinfo=UTC),
    datetime(2026, 11, 1, tzinfo=UTC),
    datetime(2011, 12, 30, tzinfo=UTC),
]
MOMENTS = st.builds(
    lambda near, hours, us: near + timedelta(hours=hours, microseconds=us),
    st.sampled_from([*NEAR, datetime(2026, 6, 1, tzinfo=UTC)]),
    st.integers(-80, 80),
    st.sampled_from([0, 1, 999_999]),
)


@given(st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES), MOMENTS, st.integers(0, 200))
def test_they_are_the_instants_of_cronexpr(cron_expr: str, timezone: str, after: datetime, hours: int) -> None:
    until = after + timedelta(hours=hours)
    expected = list(cronexpr.due_fires(cron_expr, timezone, after=after, until=until))
    found = Instants(cron_expr, timezone)
    assert expected == list(found.between(after, until))
    assert (expected[-1] if expected else None) == found.latest(after, until)
    assert len(expected) == found.count(after, until, 10**6)
    assert all(fire in found for fire in expected[:50])
    assert cronexpr.next_fires(cron_expr, timezone, after=after, count=1) == [found.first_after(after)]


@pytest.mark.parametrize("cron_expr", EXPRESSIONS)
def test_what_lies_beside_an_instant_is_none(cron_expr: str) -> None:
    fire = cronexpr.next_fires(cron_expr, "UTC", after=datetime(2026, 1, 1, tzinfo=UTC), count=1)[0]
    found = Instants(cron_expr, "UTC")
    assert [True, False] == [fire in found, fire + timedelta(microseconds=1) in found]
    assert fire + timedelta(seconds=1) not in found


def test_a_count_stops_beyond_its_limit() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    found = Instants("* * * * * *", "UTC").count(start, start + timedelta(days=3650), 1_000)
    assert 1_000 < found < 200_000


@pytest.mark.parametrize("day", [datetime(2015, 3, 29, tzinfo=UTC), datetime(2015, 10, 25, tzinfo=UTC)])
@pytest.mark.parametrize("cron_expr", ["30 4 * * *", "30 5 * * *", "*/30 * * * *"])
def test_a_clock_that_changes_at_midnight_of_utc_changes_the_day_after(cron_expr: str, day: datetime) -> None:
    after, until = day - timedelta(hours=6), day + timedelta(hours=6)
    expected = list(cronexpr.due_fires(cron_expr, "Asia/Baku", after=after, until=until))
    assert expected == list(Instants(cron_expr, "Asia/Baku").between(after, until))
