"""The instants of one definition, looked up a day at a time: a log has a million of them, a pass a handful.

They are those of ``cronexpr``. Days on which the zone's offset has been the same for a while are made from the
expression's times of day; days near a change of the clock are asked of ``cronexpr`` itself.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final

from awa_cron import cronexpr
from awa_cron.cronexpr import fields
from awa_cron.cronexpr.wallclock import first_match

DAY_S: Final = 86_400
DAYS_KEPT: Final = 4

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_DAY: Final = timedelta(days=1)
# No offset differs from another by more; the two closest changes of a zone's clock lie 6.9 days apart.
_SETTLED: Final = timedelta(days=2)


class Instants:
    """The instants at which an expression fires in a zone; made by ``instants_of``.

    Raises:
        InvalidSchedule: The expression or the zone is not known here.
    """

    def __init__(self, cron_expr: str, timezone: str) -> None:
        self._expression = cronexpr.parse(cron_expr)
        self._timezone = timezone
        self._zone = cronexpr.zone(timezone)
        texts = self._expression.text.split()
        second, minute, hour = ["0", *texts[:2]] if len(texts) == 5 else texts[:3]
        self._days = " ".join(texts[-3:])
        self._times = array(
            "q",
            (
                hours * 3600 + minutes * 60 + seconds
                for hours in fields.values(fields.HOUR, hour)
                for minutes in fields.values(fields.MINUTE, minute)
                for seconds in fields.values(fields.SECOND, second)
            ),
        )
        self._known: dict[int, array[int]] = {}

    def first_after(self, instant: datetime) -> datetime | None:
        """Return the first instant after another; None where the walk of ``cronexpr`` ends."""
        second = (instant - _EPOCH) // _SECOND
        day = second // DAY_S
        for each in (day, day + 1):
            fires = self._of_day(each)
            at = bisect_right(fires, second)
            if at < len(fires):
                return _EPOCH + timedelta(seconds=fires[at])
        found = cronexpr.next_fires(self._expression, self._timezone, after=instant, count=1)
        return found[0] if found else None

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """Return the last instant with ``after < instant <= until``."""
        second = (until - _EPOCH) // _SECOND
        day = second // DAY_S
        for each in (day, day - 1):
            fires = self._of_day(each)
            at = bisect_right(fires, second)
            if at:
                found = _EPOCH + timedelta(seconds=fires[at - 1])
                return found if found > after else None
        return cronexpr.latest_due(self._expression, self._timezone, after=after, until=until)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the instants with ``after < instant <= until``, earliest first."""
        fire = self.first_after(after)
        while fire is not None and fire <= until:
            yield fire
            fire = self.first_after(fire)

    def count(self, after: datetime, until: datetime, limit: int) -> int:
        """Return how many instants ``between`` has, or a number above the limit if there are more."""
        counted = 0
        last = (until - _EPOCH) // _SECOND
        fire = self.first_after(after)
        while fire is not None and fire <= until and counted <= limit:
            second = (fire - _EPOCH) // _SECOND
            fires = self._of_day(second // DAY_S)
            counted += bisect_right(fires, last) - bisect_left(fires, second)
            fire = self.first_after(_EPOCH + timedelta(seconds=fires[-1]))
        return counted

    def __contains__(self, instant: datetime) -> bool:
        if instant.microsecond:
            return False
        second = (instant - _EPOCH) // _SECOND
        fires = self._of_day(second // DAY_S)
        at = bisect_left(fires, second)
        return at < len(fires) and fires[at] == second

    def _of_day(self, day: int) -> array[int]:
        """Return the instants of a day of UTC, as seconds."""
        known = self._known.get(day)
        if known is None:
            if len(self._known) == DAYS_KEPT:
                del self._known[next(iter(self._known))]
            known = self._known[day] = self._computed(day)
        return known

    def _computed(self, day: int) -> array[int]:
        start = _EPOCH + day * _DAY
        end = start + _DAY
        offset = start.astimezone(self._zone).utcoffset()
        before = (start - _SETTLED).astimezone(self._zone).utcoffset()
        if offset is None or not offset == before == end.astimezone(self._zone).utcoffset() or offset % _SECOND:
            due = cronexpr.due_fires(self._expression, self._timezone, after=start - _SECOND, until=end - _SECOND)
            return array("q", ((fire - _EPOCH) // _SECOND for fire in due))
        found = array("q")
        local = (start + offset).date()
        for each in (local, local + _DAY):
            if not _is_fire_day(self._days, each):
                continue
            midnight = (datetime.combine(each, time(), UTC) - offset - _EPOCH) // _SECOND
            first = bisect_left(self._times, day * DAY_S - midnight)
            upto = bisect_left(self._times, (day + 1) * DAY_S - midnight)
            found.extend(midnight + second for second in self._times[first:upto])
        return found


# Logs are read by schedule, and many schedules share a definition.
@lru_cache(maxsize=16)
def instants_of(cron_expr: str, timezone: str) -> Instants:
    """Return the instants of a definition.

    Raises:
        InvalidSchedule: The expression or the zone is not known here.
    """
    return Instants(cron_expr, timezone)


@lru_cache(maxsize=2**15)
def _is_fire_day(days: str, day: date) -> bool:
    """Tell whether the three day fields of an expression match a day."""
    midnight = datetime.combine(day, time())
    return first_match(cronexpr.parse(f"0 0 0 {days}"), midnight) == midnight
