"""An operator's verbs that answer questions: how do things stand, who leads, what would a resume do."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import asyncpg

from awa_cron import rows
from awa_cron.actions import asking
from awa_cron.errors import DatabaseError, InvalidArgument, ScheduleNotFound
from awa_cron.insight.resuming import ResumePreview, resume_preview
from awa_cron.insight.views import JobView, LeaderView, ScheduleView, schedule_view
from awa_cron.model import JobState
from awa_cron.operating.connected import Connected, found
from awa_cron.sql import Connection

SIGNS_LOOKED_AT = 1_000
"""How many of the newest events are searched for a sign that somebody evaluates."""


class InsightVerbs(Connected):
    """See how schedules, jobs and the leadership stand."""

    async def overview(self, *, next_fires: int = 1) -> list[ScheduleView]:
        """Return how every stored schedule stands, by name, by the database's clock.

        Args:
            next_fires: How many fires to come, of each that fires.
        """
        return await self._views(None, next_fires)

    async def view(self, name: str, *, next_fires: int = 5) -> ScheduleView:
        """Return how one schedule stands.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        return found(next(iter(await self._views(name, next_fires)), None), name)

    async def leadership(self) -> LeaderView:
        """Return who leads, if anybody does, since when, and the newest sign that somebody evaluates."""
        notes: list[str] = []
        async with self._connected().session() as connection:
            lock = await self._permitted(
                connection, "leader_lock", "see locks (pg_locks)", notes, self.schema.leader_lock_key
            )
            pid = None if lock is None else lock["backend_pid"]
            said = await self._permitted(
                connection,
                "leader_events",
                "read the event log",
                notes,
                None if pid is None else str(pid),
                SIGNS_LOOKED_AT,
            )
            now = lock["now"] if lock is not None else await connection.fetchval("SELECT statement_timestamp()")
        if pid is not None and said is not None and said["actor"] is None:
            notes.append("the event of its election is gone")
        return LeaderView(
            now=self._now() or now,
            leads=None if lock is None else pid is not None,
            backend_pid=pid,
            actor=None if said is None else said["actor"],
            since=None if said is None else said["since"],
            enqueued_at=None if said is None else said["enqueued_at"],
            enqueued_by=None if said is None else said["enqueued_by"],
            note="; ".join(notes) or None,
        )

    async def preview_resume(self, name: str) -> ResumePreview:
        """Return what a resume now would make of the fires that are due; it changes nothing.

        Of a schedule that is not paused, it is what the next pass does. The pass limit is that of this client's
        settings.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        view = await self.view(name, next_fires=1)
        return resume_preview(view.schedule, view.now, self.settings.pass_limit, view.schedule.broken)

    async def jobs_of(self, name: str, *, limit: int = 20) -> list[JobView]:
        """Return a schedule's newest jobs, newest first, also of a removed one.

        Args:
            name: The schedule.
            limit: The most jobs, 1 or more.

        Raises:
            ScheduleNotFound: No schedule has that name, and no job carries it.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InvalidArgument(f"limit is {limit!r}: it must be a whole number above 0")
        async with self._connected().session() as connection, asking("jobs"):
            listed = await connection.fetch(self.schema.statement("queries/jobs_of"), name, None, None, limit)
            known = listed or await connection.fetchrow(self.schema.statement("queries/schedules"), name)
        if not known:
            raise ScheduleNotFound(name)
        return [job_view(row) for row in listed]

    async def _views(self, name: str | None, next_fires: int) -> list[ScheduleView]:
        if isinstance(next_fires, bool) or not isinstance(next_fires, int) or not 1 <= next_fires <= 1_000:
            raise InvalidArgument(f"next_fires is {next_fires!r}: it must be a whole number from 1 to 1000")
        async with self._connected().session() as connection, asking("list"):
            listed = await connection.fetch(self.schema.statement("queries/schedules"), name)
        return [
            schedule_view(
                rows.stored_schedule(row),
                self._now() or row["now"],
                next_fires,
                queue_paused_at=row["queue_paused_at"],
                queue_paused_by=row["queue_paused_by"],
            )
            for row in listed
        ]

    async def _permitted(
        self, connection: Connection, query: str, right: str, notes: list[str], *arguments: object
    ) -> asyncpg.Record | None:
        """Ask, or note that this role may not."""
        try:
            async with asking("leadership"):
                return await connection.fetchrow(self.schema.statement(f"queries/{query}"), *arguments)
        except DatabaseError as error:
            if not isinstance(error.__cause__, asyncpg.InsufficientPrivilegeError):
                raise
            notes.append(f"this role may not {right}")
            return None


def job_view(row: rows.Row) -> JobView:
    """Return a job as an operator sees it."""
    same = (
        *("id", "cron_name", "kind", "queue", "triggered", "attempt", "max_attempts", "created_at", "run_at"),
        *("attempted_at", "attempted_by", "finalized_at", "queue_paused_at", "queue_paused_by"),
    )
    values: dict[str, Any] = {name: row[name] for name in same}
    return JobView(
        **values,
        state=JobState(row["state"]),
        fire_time=_labelled(row["fire_label"]),
        errors=tuple(json.loads(row["errors"])),
    )


def _labelled(text: str | None) -> datetime | None:
    """Return the instant of a label; jobs can be made by hand, with any."""
    try:
        fire = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if fire is None or fire.tzinfo is None else fire
