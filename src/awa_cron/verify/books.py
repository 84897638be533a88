"""The books of one schedule: what became of each due instant, as its log tells. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from awa_cron.model import Event
from awa_cron.verify.fates import Fate, Fates, Share
from awa_cron.verify.instants import Instants
from awa_cron.verify.state import State
from awa_cron.verify.verdict import Account

COUNTED: Final = 10_000
"""The most instants of one span that are counted."""


class Books:
    """Counts; it judges nothing."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys((*Fate, "events", "held", "pending", "triggered"), 0)
        self._counted_all = True
        self._since: datetime | None = None
        self._fates = Fates()

    def enter(self, before: State, event: Event) -> None:
        """Enter an event, given the state before it."""
        self._counts["events"] += 1
        self._counts["triggered"] += event.action == "trigger"
        for share in self._fates.of(before, event):
            match share.fate:
                case Fate.COALESCED:
                    self._stand_for(share)
                case Fate.DROPPED:
                    self._drop(event.details["dropped"])
                case Fate.REMOVED if share.instants and share.after and share.until:
                    self._counts[Fate.REMOVED] += self._counted(share.instants, share.after, share.until)
                case fate:
                    self._counts[fate] += len(share.fires)

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

    def _stand_for(self, share: Share) -> None:
        """Count the instants that a coalesced fire stands for."""
        after, until, instants = share.after, share.until, share.instants
        assert after is not None
        assert until is not None
        assert instants is not None
        skipped = self._counted(instants, after, until)
        within = [(max(after, pause.after), min(until, pause.until)) for pause in share.pauses]
        paused = min(skipped, sum(self._counted(instants, *each) for each in within if each[0] < each[1]))
        self._counts[Fate.PAUSED] += paused
        self._counts[Fate.COALESCED] += skipped - paused

    def _drop(self, dropped: dict[str, Any]) -> None:
        count = dropped.get("count", 0)
        self._counts[Fate.DROPPED] += count if isinstance(count, int) else 0
        if dropped.get("counted_all") is False or "unreadable" in dropped:
            self._counted_all = False

    def _counted(self, instants: Instants, after: datetime, until: datetime) -> int:
        count = instants.count(after, until, COUNTED)
        if count > COUNTED:
            self._counted_all = False
        return count
