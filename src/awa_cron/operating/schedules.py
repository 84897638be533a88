"""An operator's verbs for schedules."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime

from awa_cron import actions, rows
from awa_cron.actions import asking
from awa_cron.errors import InvalidArgument, ScheduleNotFound
from awa_cron.model import Event, Job, StoredSchedule, aware
from awa_cron.operating.connected import Connected, found, label_of
from awa_cron.verify import Verdict, verify


class ScheduleVerbs(Connected):
    """Pause, resume, trigger and remove schedules; look at them and their history; check it."""

    async def pause(self, name: str, *, by: str | None = None) -> bool:
        """Stop a schedule's automatic fires; its jobs go on.

        Returns:
            False when it was paused already; its label then stays.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        async with self._connected().session() as connection:
            changed = await actions.pause(connection, self.schema, name, by=label_of(by), clock=self._now())
        return found(changed, name)

    async def resume(self, name: str, *, by: str | None = None) -> bool:
        """Let a schedule fire again; its policy decides what becomes of the missed fires.

        Returns:
            False when it was not paused.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        async with self._connected().session() as connection:
            changed = await actions.resume(connection, self.schema, name, by=label_of(by), clock=self._now())
        return found(changed, name)

    async def trigger(self, name: str, *, by: str | None = None) -> Job:
        """Insert a job of the schedule now, paused or not.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        async with self._connected().session() as connection:
            job = await actions.trigger(connection, self.schema, name, by=label_of(by), clock=self._now())
        return found(job, name)

    async def remove(self, name: str, *, by: str | None = None) -> None:
        """Delete a schedule; its jobs stay. A process that still registers it brings it back at its next sync.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        async with self._connected().session() as connection:
            removed = await actions.remove(connection, self.schema, name, by=label_of(by), clock=self._now())
        found(removed or None, name)

    async def list_schedules(self) -> list[StoredSchedule]:
        """Return every stored schedule, by name, also those of other deployments and those that are broken."""
        async with self._connected().session() as connection, asking("list"):
            listed = await connection.fetch(self.schema.statement("queries/schedules"), None)
        return [rows.stored_schedule(row) for row in listed]

    async def get_schedule(self, name: str) -> StoredSchedule:
        """Return one stored schedule.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        async with self._connected().session() as connection, asking("show"):
            row = await connection.fetchrow(self.schema.statement("queries/schedules"), name)
        return rows.stored_schedule(found(row, name))

    async def history(
        self, name: str | None = None, *, limit: int = 100, since: datetime | None = None
    ) -> list[Event]:
        """Return the newest events of a schedule, newest first; of a removed one too.

        Args:
            name: None for all schedules and the leadership.
            limit: The most events.
            since: Only events recorded from then on; None for any.
        """
        begin = None if since is None else aware(since, "since")
        async with self._connected().session() as connection, asking("history"):
            listed = await connection.fetch(self.schema.statement("queries/history"), name, limit, begin)
        return [rows.event(row) for row in listed]

    async def verify(
        self,
        *,
        since: datetime | None = None,
        name: str | None = None,
        grace_s: float = 60.0,
        jobs_kept: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Verdict:
        """Check that what happened is a behaviour of the spec, and account for every due instant; it only reads.

        Args:
            since: Only events recorded from then on.
            name: Only this schedule.
            grace_s: How long an instant may be due before it counts as lost or late.
            jobs_kept: Jobs are never deleted in this database, so that one that is gone is a finding.
            progress: Told now and then how many events have been checked.

        Raises:
            ScheduleNotFound: No schedule has that name, and none had.
        """
        if not math.isfinite(grace_s) or grace_s < 0:
            raise InvalidArgument(f"grace_s is {grace_s!r}: it must be a number of seconds, 0 or more")
        verdict = await verify(
            self._connected(),
            since=None if since is None else aware(since, "since"),
            name=name,
            grace_s=grace_s,
            jobs_kept=jobs_kept,
            clock=self._now(),
            progress=progress,
        )
        if name is not None and not verdict.accounts:
            raise ScheduleNotFound(name)
        return verdict
