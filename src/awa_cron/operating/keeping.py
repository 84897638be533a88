"""An operator's verb for what is old."""

from __future__ import annotations

import math

from awa_cron import retention
from awa_cron.errors import InvalidArgument
from awa_cron.operating.connected import Connected, label_of
from awa_cron.retention import Purged


class KeepingVerbs(Connected):
    """Delete what is old."""

    async def purge(
        self,
        older_than_s: float,
        *,
        jobs: bool = True,
        events: bool = True,
        dry_run: bool = False,
        by: str | None = None,
    ) -> Purged:
        """Delete completed and cancelled jobs, and events, that are older than so many seconds.

        Dead jobs stay; ``purge_dead`` is for them. So do the events that are still asked: how far each removed
        schedule had come, and who leads.

        Args:
            older_than_s: Jobs count from when they were done with, events from when they were recorded.
            jobs: Whether jobs are deleted.
            events: Whether events are deleted; ``verify`` and ``explain`` know nothing of what was before.
            dry_run: Only count.
            by: A label for the history.

        Raises:
            InvalidArgument: That is no number of seconds.
        """
        number = isinstance(older_than_s, (int, float)) and not isinstance(older_than_s, bool)
        if not number or not math.isfinite(older_than_s) or not 0 < older_than_s < 1e10:
            raise InvalidArgument(f"older_than_s is {older_than_s!r}: it must be a number of seconds above 0")
        database, label = self._connected(), label_of(by)
        old = await retention.limits(
            database, older_than_s if jobs else None, older_than_s if events else None, self._now()
        )
        if dry_run:
            return await retention.purgeable(database, old)
        return await retention.purge(database, old, by=label, clock=self._now())
