"""The accounts of one schedule: every due instant became a job, or the log says why not. Pure.

The instants come from the cron expressions as the log of events tells them, the jobs from the queue's table. This
is a reckoning by instants, for the numbers; whether each event was allowed is what ``awa-cron verify`` decides.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from awa_cron import cronexpr


class Event(Protocol):
    """A row of ``cron_events``, with its details read."""

    def __getitem__(self, column: str, /) -> Any: ...


@dataclasses.dataclass(slots=True)
class Account:
    """What became of the due instants of one schedule.

    Attributes:
        counts: Instants by what became of them: ``enqueued``, ``coalesced`` (a later job stands for them),
            ``paused`` (the same, during a pause), ``dropped`` by an edit that says so, ``removed`` with the row.
        lost: Due instants with no job and no reason.
        duplicated: Instants with more than one job.
        stray: Instants that have a job and were not due, or were not told of.
    """

    name: str
    counts: Counter[str] = dataclasses.field(default_factory=Counter)
    lost: set[datetime] = dataclasses.field(default_factory=set)
    duplicated: set[datetime] = dataclasses.field(default_factory=set)
    stray: set[datetime] = dataclasses.field(default_factory=set)

    @property
    def due(self) -> int:
        """All instants that fell due while the schedule was stored."""
        return self.counts.total() + len(self.lost)

    @property
    def balances(self) -> bool:
        """Whether nothing is lost, doubled or invented."""
        return not (self.lost or self.duplicated or self.stray)


def account(name: str, events: Iterable[Event], jobs: Sequence[datetime], until: datetime | None) -> Account:
    """Balance one schedule.

    Args:
        name: The schedule.
        events: Its events, in the order of their ids.
        jobs: The fire of each automatic job.
        until: Every instant up to here must be accounted for; None for no more than what was enqueued.
    """
    found = Account(name)
    replay = _Replay(found)
    for event in events:
        replay.take(event)
    if until is not None:
        replay.end(until)
    queued = Counter(jobs)
    found.duplicated |= {fire for fire, count in queued.items() if count > 1}
    found.lost |= replay.told - queued.keys()
    found.stray |= queued.keys() - replay.told
    return found


class _Replay:
    """Follows a schedule's row through its events.

    Attributes:
        told: The fires that the events name.
    """

    def __init__(self, account: Account) -> None:
        self.told: set[datetime] = set()
        self._account = account
        self._cron: tuple[str, str] | None = None
        self._coalesce = False
        self._accounted_until: datetime | None = None
        self._paused = False
        self._was_paused = False

    def take(self, event: Event) -> None:
        match event["action"]:
            case "sync":
                self._sync(event)
            case "atomic_enqueue":
                self._enqueue(event["fires"], event["fires"][-1])
                self._was_paused = self._paused
            case "pause":
                self._paused = self._was_paused = True
            case "resume":
                self._paused = False
            case "remove":
                self._account.counts["removed"] += len(self._due(event["clock"]))
                self._cron = None
            case _:
                pass

    def end(self, until: datetime) -> None:
        """Close the accounts: what is due and not paused must have become a job."""
        rest = self._due(until)
        if self._paused:
            self._account.counts["paused"] += len(rest)
        else:
            self._account.lost |= set(rest)

    def _sync(self, event: Event) -> None:
        details = event["details"]
        anchor = datetime.fromisoformat(details["anchored_at"])
        if details["change"] == "redefined":
            rest = self._enqueue(event["fires"], max(anchor, *event["fires"]) if event["fires"] else anchor)
            self._drop(rest, details.get("dropped"))
        if details["change"] == "inserted":
            self._paused = self._was_paused = False
        if details["change"] != "updated":
            self._cron, self._accounted_until = (details["cron_expr"], details["timezone"]), anchor
        self._coalesce = details["missed_fire_policy"] == "coalesce"

    def _enqueue(self, fires: Sequence[datetime], until: datetime) -> list[datetime]:
        """Account for these fires and for what they stand for; return what is due after them."""
        due = self._due(until)
        self._account.stray |= set(fires) - set(due)
        self._account.duplicated |= set(fires) & self.told
        self.told |= set(fires)
        self._account.counts["enqueued"] += len(fires)
        earlier = {instant for instant in due if fires and instant < fires[-1]} - set(fires)
        if not self._coalesce:
            self._account.lost |= earlier
        else:
            self._account.counts["paused" if self._was_paused else "coalesced"] += len(earlier)
        self._accounted_until = until
        return [instant for instant in due if not fires or instant > fires[-1]]

    def _drop(self, rest: Sequence[datetime], told: Mapping[str, Any] | None) -> None:
        if not rest and told is None:
            return
        ends = () if told is None else (told["count"], *map(datetime.fromisoformat, (told["first"], told["last"])))
        if rest and ends == (len(rest), rest[0], rest[-1]):
            self._account.counts["dropped"] += len(rest)
        else:
            self._account.lost |= set(rest)

    def _due(self, until: datetime) -> list[datetime]:
        if self._cron is None or self._accounted_until is None:
            return []
        return list(cronexpr.due_fires(*self._cron, after=self._accounted_until, until=until))
