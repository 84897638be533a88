"""A timeline that one can look at: what became of the past instants of a schedule, and which ones come. Pure.

The drawing is a row of columns from the earliest to the latest instant, now in the middle; each kind of mark is one
path, so that it stays small whatever it shows. The same facts in words are its text alternative.
"""

from __future__ import annotations

import dataclasses
import enum
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from awa_cron import cronexpr
from awa_cron.errors import AwaCronError
from awa_cron.model import Event, MissedFirePolicy, StoredSchedule
from awa_cron.preview import described
from awa_cron.ui.words import finite
from awa_cron.verify.instants import instants_of

WIDTH: Final = 600
HEIGHT: Final = 30
GRACE: Final = timedelta(seconds=5)
"""An instant that is due for no longer is being seen to."""
INSTANTS: Final = 20_000
"""The most instants of one schedule that are looked at."""


class Mark(enum.StrEnum):
    """What an instant on the timeline is."""

    JOB = "job"
    TRIGGERED = "hand"
    COALESCED = "coalesced"
    """Due, and a later fire's job stands for it."""
    PAUSED = "over"
    """Due during a pause, and no job."""
    WAITING = "waiting"
    """Due, and no job yet."""
    GONE = "gone"
    """Due, and no job that the event log knows of: dropped by an edit, or the log is not whole."""
    COMING = "coming"
    HELD = "held"
    """Due or to come, were the schedule not paused."""
    ODD = "odd"
    """A fire that a change of the clock moves or doubles."""


WORDS: Final = {
    Mark.JOB: ("job", "jobs"),
    Mark.TRIGGERED: ("triggered by hand", "triggered by hand"),
    Mark.COALESCED: ("coalesced", "coalesced"),
    Mark.PAUSED: ("paused over", "paused over"),
    Mark.WAITING: ("due and waiting", "due and waiting"),
    Mark.GONE: ("without a job", "without a job"),
    Mark.COMING: ("to come", "to come"),
    Mark.HELD: ("held by the pause", "held by the pause"),
    Mark.ODD: ("moved or doubled by a clock change", "moved or doubled by clock changes"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timeline:
    """What is drawn.

    Attributes:
        marks: Instants of each kind, ascending.
        pauses: From when to when the schedule was paused, or is.
        oddities: What clock changes do to some fires, in words.
        words: All of it in one sentence.
    """

    start: datetime
    now: datetime
    end: datetime
    marks: dict[Mark, list[datetime]]
    pauses: list[tuple[datetime, datetime]]
    oddities: list[str]

    @property
    def words(self) -> str:
        """All of it in one sentence, for those who do not see it."""
        said = [
            f"{len(found):,} {WORDS[mark][len(found) > 1]}" for mark in Mark if (found := self.marks.get(mark, []))
        ]
        if self.pauses:
            said.append(f"paused {len(self.pauses)} time{'s' * (len(self.pauses) > 1)}")
        return ", ".join(said) or "nothing happened and nothing comes"

    def x(self, instant: datetime) -> int:
        """Return where an instant is drawn."""
        return round((instant - self.start) / (self.end - self.start) * WIDTH)

    def columns(self, mark: Mark) -> list[int]:
        """Return where the instants of a kind are drawn, each place once."""
        return sorted({self.x(instant) for instant in self.marks.get(mark, [])})

    def bands(self) -> list[tuple[int, int]]:
        """Return where the pauses are drawn: place and width."""
        return [
            (self.x(max(begin, self.start)), max(1, self.x(min(until, self.end)) - self.x(max(begin, self.start))))
            for begin, until in self.pauses
        ]


def timeline_of(
    schedule: StoredSchedule, events: Sequence[Event], *, now: datetime, half: timedelta, complete: bool = True
) -> Timeline:
    """Return the timeline of one schedule.

    Args:
        schedule: As stored; it need not be readable.
        events: Its events since ``now - half``, newest first.
        now: The middle.
        half: How far it reaches either way.
        complete: Whether these are all of them; if not, nothing is said about what is before the oldest.
    """
    start, end = now - half, now + half
    events = [event for event in events if finite(event.clock)]
    read_from = start if complete or not events else events[-1].clock
    jobs = sorted({fire for event in events for fire in event.fires if finite(fire) and start <= fire <= end})
    marks = {
        Mark.JOB: jobs,
        Mark.TRIGGERED: sorted(event.clock for event in events if event.action == "trigger"),
    }
    pauses = list(_pauses(schedule, events, start, now))
    oddities: list[str] = []
    if schedule.broken is None:
        known = _Known(schedule=schedule, now=now, jobs=jobs, pauses=pauses, read_from=read_from)
        with suppress(AwaCronError):  # where the walk ends; what is known is drawn
            _place(known, marks, max(start, schedule.anchored_at), end)
            oddities = _oddities(schedule, marks)
    if schedule.paused_at is not None:
        pauses = [(begin, end if until == now else until) for begin, until in pauses]
    return Timeline(start=start, now=now, end=end, marks=marks, pauses=pauses, oddities=oddities)


def together(timelines: Sequence[Timeline], bins: int) -> list[tuple[int, Counter[Mark]]]:
    """Return how many marks of each kind all timelines have, by column.

    Returns:
        Each column's place from 0, and its marks; empty columns are left out.
    """
    columns: dict[int, Counter[Mark]] = {}
    for timeline in timelines:
        for mark, instants in timeline.marks.items():
            if mark is Mark.ODD:
                continue  # counted as what it is besides
            for instant in instants:
                place = min(bins - 1, int((instant - timeline.start) / (timeline.end - timeline.start) * bins))
                columns.setdefault(place, Counter())[mark] += 1
    return sorted(columns.items())


def _place(known: _Known, marks: dict[Mark, list[datetime]], start: datetime, end: datetime) -> None:
    """Add the instants of the present definition that are no jobs."""
    jobs = set(known.jobs)
    instants = instants_of(known.schedule.cron_expr, known.schedule.timezone)
    for instant in islice(instants.between(start, end), INSTANTS):
        mark = None if instant in jobs else known.mark(instant)
        if mark is not None:
            marks.setdefault(mark, []).append(instant)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Known:
    """What the instants of a schedule are told apart by."""

    schedule: StoredSchedule
    now: datetime
    jobs: list[datetime]
    pauses: list[tuple[datetime, datetime]]
    read_from: datetime

    def mark(self, instant: datetime) -> Mark | None:
        """Return what an instant is that is no job; None if nobody can say, or it is being seen to."""
        last, paused = self.schedule.last_enqueued_at, self.schedule.paused_at is not None
        if instant > self.now:
            return Mark.HELD if paused else Mark.COMING
        if last is None or instant > last:
            if paused:
                return Mark.HELD
            return Mark.WAITING if self.now - instant > GRACE else None
        return self._passed(instant)

    def _passed(self, instant: datetime) -> Mark | None:
        """Return what an instant is that a later job has passed by."""
        if any(begin < instant <= until for begin, until in self.pauses):
            return Mark.PAUSED
        coalesces = self.schedule.missed_fire_policy == MissedFirePolicy.COALESCE
        if coalesces and bisect_left(self.jobs, instant) < len(self.jobs):
            return Mark.COALESCED
        return Mark.GONE if instant >= self.read_from else None


def _pauses(
    schedule: StoredSchedule, events: Sequence[Event], start: datetime, now: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield from when to when the schedule was paused, earliest first; a pause that goes on ends now."""
    began: datetime | None = start
    for event in reversed(events):
        match event.action:
            case "pause":
                began = event.clock
            case "resume" if began is not None:
                yield began, event.clock
                began = None
            case "remove":
                began = None
            case "atomic_enqueue" if began == start:
                began = None
    if schedule.paused_at is not None:
        yield max(start, finite(schedule.paused_at) or start), now


def _oddities(schedule: StoredSchedule, marks: dict[Mark, list[datetime]]) -> list[str]:
    """Find the fires that a change of the clock moves or doubles, where the zone's offset changes at all."""
    fires = sorted({*marks.get(Mark.JOB, []), *marks.get(Mark.COMING, []), *marks.get(Mark.HELD, [])})
    said: list[str] = []
    for fire in _near_changes(schedule, fires):
        found = described(schedule.cron_expr, schedule.timezone, fire)
        if found.oddity is not None:
            marks.setdefault(Mark.ODD, []).append(fire)
            said.append(f"{found.oddity}: {found.words}")
    return said


def _near_changes(schedule: StoredSchedule, fires: list[datetime]) -> Iterator[datetime]:
    """Yield the fires within a day of a change of the zone's offset; usually there is none."""
    tz, day = cronexpr.zone(schedule.timezone), timedelta(days=1)
    if not fires or cronexpr.clock_change(tz, fires[0] - day, fires[-1] + day) is None:
        return
    for fire in fires:
        if len({(fire + step).astimezone(tz).utcoffset() for step in (-day, timedelta(0), day)}) > 1:
            yield fire
