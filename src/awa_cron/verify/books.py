"""The books of one schedule: what became of each due instant, as its log tells. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from awa_cron.model import Event, MissedFirePolicy
from awa_cron.verify.instants import Instants
from awa_cron.verify.state import State
from awa_cron.verify.verdict import Account

COUNTED: Final = 10_000
"""The most instants of one span that are counted."""

PAUSES_KEPT: Final = 1_000
"""The most pauses between two fires that are told apart."""

_SECOND: Final = timedelta(seconds=1)


class Books:
    """Counts; it judges nothing."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(
            (
                "events",
                "enqueued",
                "settled",
                "coalesced",
                "paused",
                "dropped",
                "removed",
                "held",
                "pending",
                "triggered",
            ),
            0,
        )
        self._counted_all = True
        self._since: datetime | None = None
        self._pauses: list[tuple[datetime, datetime]] = []

    def enter(self, before: State, event: Event) -> None:
        """Enter an event, given the state before it."""
        counts, instants = self._counts, before.instants
        counts["events"] += 1
        match event.action:
            case "atomic_enqueue":
                counts["enqueued"] += len(event.fires)
                self._stand_for(before, event)
            case "sync":
                counts["settled"] += len(event.fires)
                self._stand_for(before, event)
                self._drop(event.details.get("dropped") or {})
            case "trigger":
                counts["triggered"] += 1
            case "resume" if isinstance(before.paused, datetime) and len(self._pauses) < PAUSES_KEPT:
                self._pauses.append((before.paused, event.clock))
            case "remove" if instants is not None and isinstance(before.counts_after, datetime):
                counts["removed"] += self._counted(instants, before.counts_after, event.clock)
        if event.fires or event.action == "remove" or event.details.get("change") in {"inserted", "redefined"}:
            self._pauses.clear()  # what fell due then is accounted for

    def begin(self, state: State) -> None:
        """Note the first anchor that the log tells."""
        if self._since is None and isinstance(state.anchor, datetime):
            self._since = state.anchor

    def outstanding(self, instants: Instants, after: datetime, now: datetime, *, paused: bool) -> int:
        """Enter what is due and not enqueued, and return how much that is."""
        count = self._counted(instants, after, now)
        self._counts["held" if paused else "pending"] += count
        return count

    def account(self, name: str) -> Account:
        """Close the books."""
        return Account(name=name, counted_all=self._counted_all, since=self._since, **self._counts)

    def _stand_for(self, before: State, event: Event) -> None:
        """Count the instants that a coalesced fire stands for."""
        after, instants = before.counts_after, before.instants
        if not event.fires or before.policy != MissedFirePolicy.COALESCE:
            return
        if instants is None or not isinstance(after, datetime):
            return
        fire = event.fires[0]
        first = instants.first_after(after)
        if first is None or first >= fire:
            return
        until = fire - _SECOND
        skipped = self._counted(instants, after, until)
        within = [(max(after, start), min(until, end)) for start, end in self._pauses]
        paused = min(skipped, sum(self._counted(instants, *each) for each in within if each[0] < each[1]))
        self._counts["paused"] += paused
        self._counts["coalesced"] += skipped - paused

    def _drop(self, dropped: dict[str, Any]) -> None:
        count = dropped.get("count", 0)
        self._counts["dropped"] += count if isinstance(count, int) else 0
        if dropped.get("counted_all") is False or "unreadable" in dropped:
            self._counted_all = False

    def _counted(self, instants: Instants, after: datetime, until: datetime) -> int:
        count = instants.count(after, until, COUNTED)
        if count > COUNTED:
            self._counted_all = False
        return count
