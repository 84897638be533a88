"""What an event makes of the instants that are due: the one place that says so, for the books and for explanations.

Pure.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from awa_cron.model import Event, MissedFirePolicy
from awa_cron.verify.instants import Instants
from awa_cron.verify.state import State, instant

PAUSES_KEPT: Final = 1_000
"""The most pauses between two fires that are told apart."""

_SECOND: Final = timedelta(seconds=1)


class Fate(enum.StrEnum):
    """What became of a due instant; the names are those of ``Account``."""

    ENQUEUED = "enqueued"
    """A pass turned it into a job."""
    SETTLED = "settled"
    """An edit did."""
    COALESCED = "coalesced"
    """A later one of the same pass or edit stands for it."""
    PAUSED = "paused"
    """Like that, and it fell due during a pause."""
    DROPPED = "dropped"
    """An edit gave it up, for a pause or the pass limit."""
    REMOVED = "removed"
    """It went with its schedule."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pause:
    """A pause that has ended, and the events of its beginning and end."""

    after: datetime
    until: datetime
    paused_by: int | None
    resumed_by: int


@dataclasses.dataclass(frozen=True, slots=True)
class Share:
    """Instants that share a fate.

    Attributes:
        event: What decided it.
        fires: Exactly these, if there are any; otherwise those with ``after < instant <= until``.
        instants: Of the definition that they fell due under.
        pauses: Those of a coalesced share that fell due in one of these have the fate ``PAUSED``.
    """

    fate: Fate
    event: Event
    fires: tuple[datetime, ...] = ()
    instants: Instants | None = None
    after: datetime | None = None
    until: datetime | None = None
    pauses: tuple[Pause, ...] = ()

    def fate_of(self, at: datetime) -> Fate | None:
        """Return the fate of one instant, None if it is not among these."""
        if self.fires:
            return self.fate if at in self.fires else None
        if self.instants is None or self.after is None or self.until is None:
            return None
        if not self.after < at <= self.until or at not in self.instants:
            return None
        return self.fate if self.pause_of(at) is None else Fate.PAUSED

    def pause_of(self, at: datetime) -> Pause | None:
        """Return the pause during which an instant fell due."""
        return next((pause for pause in self.pauses if pause.after < at <= pause.until), None)


class Fates:
    """Tells, event by event, what becomes of due instants. It judges nothing."""

    def __init__(self) -> None:
        self._pauses: list[Pause] = []

    def of(self, before: State, event: Event) -> Iterator[Share]:
        """Yield the shares that an event decides, given the state before it."""
        match event.action:
            case "atomic_enqueue":
                yield from self._made(before, event, Fate.ENQUEUED)
            case "sync":
                yield from self._made(before, event, Fate.SETTLED)
                if event.details.get("dropped"):
                    yield _dropped(before, event)
            case "resume" if isinstance(before.paused, datetime) and len(self._pauses) < PAUSES_KEPT:
                began = before.set_by.get("paused")
                self._pauses.append(Pause(before.paused, event.clock, began, event.id))
            case "remove":
                after, instants = before.counts_after, before.instants
                if instants is not None and isinstance(after, datetime):
                    yield Share(Fate.REMOVED, event, instants=instants, after=after, until=event.clock)
        if event.fires or event.action == "remove" or event.details.get("change") in {"inserted", "redefined"}:
            self._pauses.clear()  # what fell due then is accounted for

    def _made(self, before: State, event: Event, fate: Fate) -> Iterator[Share]:
        if not event.fires:
            return
        yield Share(fate, event, fires=event.fires)
        after, instants = before.counts_after, before.instants
        if before.policy != MissedFirePolicy.COALESCE or instants is None or not isinstance(after, datetime):
            return
        fire = event.fires[0]
        first = instants.first_after(after)
        if first is not None and first < fire:
            until = fire - _SECOND
            pauses = tuple(self._pauses)
            yield Share(Fate.COALESCED, event, instants=instants, after=after, until=until, pauses=pauses)


def _dropped(before: State, event: Event) -> Share:
    """Return what an edit says that it gave up; how many, only the event knows."""
    dropped = event.details["dropped"]
    first, last = instant(dropped.get("first")), instant(dropped.get("last"))
    if not isinstance(first, datetime) or not isinstance(last, datetime):
        return Share(Fate.DROPPED, event)
    return Share(Fate.DROPPED, event, instants=before.instants, after=first - _SECOND, until=last)
