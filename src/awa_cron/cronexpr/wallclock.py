"""The wall times that an expression matches, found by croniter: naive local times, without zones.

croniter reads a singleton range such as ``5-5`` as the whole field, so it is given the expression without them.
"""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from croniter import CroniterBadDateError, croniter

from awa_cron.cronexpr.dialect import CronExpression

# So far from the ends of datetime that neither a search nor a zone's offset can step over them.
FIRST: Final = datetime(53, 1, 1)  # noqa: DTZ001
LAST: Final = datetime(9947, 12, 31, 23, 59, 59)  # noqa: DTZ001
# The longest wait that a valid expression has is forty years: a fifth weekday in February, over 2100.
LONGEST_WAIT_YEARS: Final = 50

_SECOND: Final = timedelta(seconds=1)


def first_match(expression: CronExpression, wall: datetime) -> datetime | None:
    """The earliest match at or after a naive wall time; None when the years have ended."""
    try:
        match: datetime = _iterator(expression).get_next(start_time=max(wall, FIRST) - _SECOND)
    except (CroniterBadDateError, OverflowError):
        return None
    return match if match <= LAST else None


def last_match(expression: CronExpression, wall: datetime) -> datetime | None:
    """The latest match at or before a naive wall time; None when the years have ended."""
    try:
        match: datetime = _iterator(expression).get_prev(start_time=min(wall, LAST) + _SECOND)
    except (CroniterBadDateError, OverflowError):
        return None
    return match if match >= FIRST else None


def _iterator(expression: CronExpression) -> croniter:
    return _iterator_of(expression.unambiguous, threading.get_ident())


# A search sets its iterator anew, so threads must not share one; making one costs as much as several searches.
@lru_cache(maxsize=2**11)
def _iterator_of(unambiguous: str, _thread: int) -> croniter:
    return croniter(
        unambiguous,
        FIRST,
        ret_type=datetime,
        second_at_beginning=True,
        max_years_between_matches=LONGEST_WAIT_YEARS,
    )
