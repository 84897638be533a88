"""An operator's verb for what has just happened to several schedules at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from awa_cron import rows
from awa_cron.actions import asking
from awa_cron.model import Event, aware
from awa_cron.operating.connected import Connected


class TimelineVerbs(Connected):
    """See what has happened lately."""

    async def recent_events(
        self, names: Sequence[str], *, since: datetime, limit_each: int = 500
    ) -> dict[str, list[Event]]:
        """Return the newest events of some schedules since a time, newest first within each.

        Args:
            names: The schedules; each has an entry, be it empty.
            since: The clock of the oldest, at the earliest.
            limit_each: The most events of each.
        """
        async with self._connected().session() as connection, asking("history"):
            listed = await connection.fetch(
                self.schema.statement("queries/recent_events"), list(names), limit_each, aware(since, "since")
            )
        found: dict[str, list[Event]] = {name: [] for name in names}
        for row in listed:
            found[row["name"]].append(rows.event(row))
        return found
