"""Hypothesis strategies: valid expressions of the dialect, and windows of time around clock changes."""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hypothesis import assume
from hypothesis import strategies as st

from awa_cron.cronexpr import parse, zone
from awa_cron.errors import InvalidCronExpression
from tests.unit.cron_oracle import MONTHS, WEEKDAYS

ZONES = (
    "UTC",
    "Africa/Cairo",  # forward at midnight
    "Africa/Casablanca",  # back an hour for Ramadan
    "America/Havana",  # forward at midnight, back to midnight
    "America/New_York",
    "America/Santiago",  # at midnight, southern
    "America/Scoresbysund",  # forward to midnight
    "Antarctica/Troll",  # two hours
    "Asia/Beirut",  # forward at midnight, back from midnight
    "Asia/Gaza",
    "Atlantic/Azores",  # forward at midnight
    "Australia/Lord_Howe",  # half an hour
    "Europe/Berlin",
    "Europe/Dublin",  # standard time is summer's
    "Pacific/Chatham",  # at a quarter to
    "Pacific/Easter",  # late in the evening
)
FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
DAY, HOUR, MINUTE, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


class Window(NamedTuple):
    """A span of time in a zone: after < instant <= until."""

    timezone: str
    after: datetime
    until: datetime


@functools.cache
def changes(timezone: str) -> list[datetime]:
    """The minutes of 2026 and 2027 at which the zone's clock changes."""
    tz = zone(timezone)

    def within(start: datetime, end: datetime, step: timedelta) -> list[tuple[datetime, datetime]]:
        instants = [start + step * number for number in range((end - start) // step + 1)]
        offsets = [instant.astimezone(tz).utcoffset() for instant in instants]
        return [(instants[i - 1], instants[i]) for i in range(1, len(instants)) if offsets[i] != offsets[i - 1]]

    return [
        minute
        for day in within(FIRST, LAST, DAY)
        for hour in within(*day, HOUR)
        for _, minute in within(*hour, MINUTE)
    ]


def windows(early: timedelta, late: timedelta, length: timedelta) -> st.SearchStrategy[Window]:
    """Windows that begin `early` to `late` around a clock change, or around any other hour."""
    shift = st.integers(early // SECOND, late // SECOND)

    @st.composite
    def strategy(draw: st.DrawFn) -> Window:
        timezone = draw(st.sampled_from(ZONES))
        chosen, hour = draw(st.integers(0, 7)), draw(ANY_HOUR)
        around = changes(timezone)[chosen] if chosen < len(changes(timezone)) else FIRST + HOUR * hour
        after = around + SECOND * draw(shift)
        return Window(timezone, after, after + length)

    return strategy()


def field(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """Texts of one field."""
    number = st.integers(low, high)
    value = st.sampled_from([*(str(each) for each in range(low, high + 1)), *(name for name in names if name)])
    step = st.integers(1, high - low).map(lambda size: f"/{size}")
    between = st.tuples(number, number).map(sorted).map(lambda ends: f"{ends[0]}-{ends[1]}")
    term = value | between | st.tuples(between | value, step).map("".join)
    return (
        st.just("*")
        | step.map(lambda text: f"*{text}")
        | value
        | st.lists(term, min_size=1, max_size=3).map(",".join)
    )


STAR = st.just("*")
ANY_HOUR = st.integers(0, (LAST - FIRST) // HOUR)
NTH = st.builds("{}#{}".format, st.sampled_from([*WEEKDAYS, "0", "7"]), st.integers(1, 5))
SECONDS = field(0, 59)
FIVE_FIELDS = (
    field(0, 59),
    st.sampled_from(["*", "*/2", "0", "1", "2", "1-3", "23", "0,23"]) | field(0, 23),
    STAR | field(1, 31) | st.just("L"),
    STAR | field(1, 12, MONTHS),
    STAR | field(0, 7, WEEKDAYS) | NTH,
)


@st.composite
def expressions(draw: st.DrawFn, *, seconds: bool = False) -> str:
    """Valid expressions, often with hours at which clocks are changed."""
    text = " ".join(draw(each) for each in ((SECONDS, *FIVE_FIELDS) if seconds else FIVE_FIELDS))
    try:
        parse(text)
    except InvalidCronExpression:
        assume(condition=False)
    return text
