"""An evaluator of cron expressions that is too slow to use and too simple to be wrong.

It plays the daemon: it walks real time step by step, looks at the wall clock, and asks whether that matches.
It shares no code with `awa_cron.cronexpr`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MONTHS = ("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class Oracle:
    """One expression, its fields kept as sets and as texts."""

    def __init__(self, cron_expr: str) -> None:
        texts = cron_expr.upper().split()
        second, minute, hour, self.day, month, self.weekday = texts if len(texts) == 6 else ("0", *texts)
        self.seconds = members(second, 0, 59)
        self.minutes = members(minute, 0, 59)
        self.hours = members(hour, 0, 23)
        self.days = set() if self.day == "L" else members(self.day, 1, 31)
        self.months = members(month, 1, 12, MONTHS)
        self.step = timedelta(minutes=1) if second == "0" else timedelta(seconds=1)
        self.fixed_time = minute[0] != "*" and hour[0] != "*"

    def matches(self, wall: datetime) -> bool:
        """Whether the wall clock's reading is one that the expression names."""
        return (
            wall.minute in self.minutes
            and wall.second in self.seconds
            and wall.hour in self.hours
            and wall.month in self.months
            and self._matches_day(wall)
        )

    def _matches_day(self, wall: datetime) -> bool:
        last = (wall + timedelta(days=1)).month != wall.month
        by_day = last if self.day == "L" else wall.day in self.days
        by_weekday = any(_matches_weekday(term, wall) for term in self.weekday.split(","))
        if self.day == "*" or self.weekday == "*":
            return by_day and by_weekday
        return by_day or by_weekday

    def fires(self, tz: ZoneInfo, after: datetime, until: datetime, *, lead: timedelta) -> list[datetime]:
        """The fires in (after, until]; `lead` is longer than any time that the zone's clock repeats."""
        start = after - lead if self.fixed_time else after
        now = start.replace(second=0, microsecond=0) - self.step
        reached = now.astimezone(tz).replace(tzinfo=None)
        found = []
        while now + self.step <= until:
            now += self.step
            wall = now.astimezone(tz).replace(tzinfo=None)
            hit = False
            if self.fixed_time:  # due once, as soon as the clock has reached or passed the time
                while reached < wall:
                    reached += self.step
                    hit = self.matches(reached) or hit
            else:
                hit = self.matches(wall)
            if hit and now > after:
                found.append(now)
        return found


def _matches_weekday(term: str, wall: datetime) -> bool:
    day, _, nth = term.partition("#")
    if wall.isoweekday() % 7 not in {number % 7 for number in members(day, 0, 6, WEEKDAYS)}:
        return False
    occurrence = sum((wall - timedelta(weeks=weeks)).month == wall.month for weeks in range(5))
    return not nth or occurrence == int(nth)


def members(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> set[int]:
    """The numbers that a field's text names."""

    def number(word: str) -> int:
        return names.index(word) if word in names else int(word)

    found: set[int] = set()
    for term in text.split(","):
        body, slash, step = term.partition("/")
        if body == "*":
            first, last = low, high
        elif "-" in body:
            first, last = (number(end) for end in body.split("-"))
        else:
            first = number(body)
            last = high if slash else first
        found |= set(range(first, last + 1, int(step or 1)))
    return found
