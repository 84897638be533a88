"""An operator's verbs for jobs and queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import asyncpg

from awa_cron import queue_actions, registration, rows
from awa_cron.actions import asking
from awa_cron.errors import DeadJobNotFound, InvalidArgument, InvalidSchedule
from awa_cron.model import Cancelled, DeadJob, Job, Queue, aware
from awa_cron.operating.connected import Connected, found, label_of
from awa_cron.queue_actions import MAX_ATTEMPTS, Selection
from awa_cron.registration import NewJob
from awa_cron.sql import Connection


class JobVerbs(Connected):
    """Make, cancel, retry and purge jobs; pause and resume queues."""

    async def enqueue(
        self,
        kind: str,
        args: object = None,
        *,
        queue: str = "default",
        priority: int = 2,
        max_attempts: int = 25,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        run_at: datetime | None = None,
        deadline_s: float | None = None,
        connection: Connection | None = None,
    ) -> Job:
        """Make a job by hand, of no schedule.

        Args:
            kind: Which handler runs it, here or in another deployment.
            args: A dict of JSON values, or an instance of a dataclass or pydantic model.
            queue: Where it waits.
            priority: 1 (first) to 4.
            max_attempts: 1 to 1000.
            tags: At most 20 labels.
            metadata: Further JSON labels.
            run_at: When it may run, at the earliest; None for now.
            deadline_s: How long each attempt may take; None for no limit.
            connection: An asyncpg connection of the caller's, which may be in a transaction: then there is a job if
                and when that commits. The client need not be entered. None for one of the client's.

        Raises:
            InvalidArgument: A value cannot be used, or the handler that is registered here takes other arguments;
                the message says which.
            DatabaseError: The server refused; inside a transaction of the caller's, that is aborted.
        """
        job = registration.job(
            kind,
            args,
            queue=queue,
            priority=priority,
            max_attempts=max_attempts,
            tags=tags,
            metadata=metadata,
            run_at=run_at,
            deadline_s=deadline_s,
        )
        self._check_job(job)
        if connection is not None:
            if not isinstance(connection, (asyncpg.Connection, asyncpg.pool.PoolConnectionProxy)):
                raise InvalidArgument(f"connection is a {type(connection).__name__}: it must be asyncpg's")
            return await queue_actions.submit(connection, self.schema, job, clock=self._now())
        async with self._connected().session() as session:
            return await queue_actions.submit(session, self.schema, job, clock=self._now())

    def _check_job(self, job: NewJob) -> None:
        """Refuse a job that could only fail, as far as is known here."""

    async def cancel_jobs(self, cron_name: str, *, running: bool = False, by: str | None = None) -> Cancelled:
        """Cancel a schedule's jobs that have not begun, be the schedule paused, removed or neither.

        Args:
            cron_name: The schedule whose jobs they are.
            running: Also those that run: their handlers are told to stop, and nothing that they still say counts.
            by: A label for the history.

        Returns:
            How many of each.

        Raises:
            ScheduleNotFound: Neither a schedule nor a job has that name.
        """
        async with self._connected().session() as connection:
            cancelled = await queue_actions.cancel_jobs(
                connection, self.schema, cron_name, running=running, by=label_of(by), clock=self._now()
            )
        return found(cancelled, cron_name)

    async def pause_queue(self, queue: str, *, by: str | None = None) -> bool:
        """Hand out no more jobs of a queue; they go on being made, and what runs goes on.

        Returns:
            False when it was paused already; its label then stays.
        """
        name = _queue(queue)
        async with self._connected().session() as connection:
            return await queue_actions.pause_queue(
                connection, self.schema, name, by=label_of(by), clock=self._now()
            )

    async def resume_queue(self, queue: str, *, by: str | None = None) -> bool:
        """Hand out a queue's jobs again, in their order.

        Returns:
            False when it was not paused.
        """
        name = _queue(queue)
        async with self._connected().session() as connection:
            return await queue_actions.resume_queue(
                connection, self.schema, name, by=label_of(by), clock=self._now()
            )

    async def list_queues(self) -> list[Queue]:
        """Return every queue that a schedule, an unfinished or dead job, or a pause names, by name."""
        async with self._connected().session() as connection, asking("queue list"):
            listed = await connection.fetch(self.schema.statement("queries/queues"))
        return [Queue(**{name: rows.zoned(value) for name, value in row.items()}) for row in listed]

    async def list_dead(
        self,
        *,
        cron_name: str | None = None,
        kind: str | None = None,
        queue: str | None = None,
        limit: int = 100,
    ) -> list[DeadJob]:
        """Return jobs that have used up their attempts, the latest first."""
        async with self._connected().session() as connection, asking("dead list"):
            listed = await connection.fetch(self.schema.statement("queries/dead"), cron_name, kind, queue, limit)
        return [rows.dead_job(row) for row in listed]

    async def retry_dead(
        self,
        ids: Sequence[int] | None = None,
        *,
        cron_name: str | None = None,
        kind: str | None = None,
        queue: str | None = None,
        before: datetime | None = None,
        everything: bool = False,
        attempts: int = 1,
        by: str | None = None,
    ) -> list[int]:
        """Give dead jobs a second life; those that fit everything which is given.

        Args:
            ids: These.
            cron_name: Of this schedule.
            kind: Of this kind.
            queue: Of this queue.
            before: That died before this time.
            everything: All of them; has to be said where nothing else is.
            attempts: How many attempts each gets.
            by: A label for the history.

        Returns:
            The jobs that wait again.

        Raises:
            InvalidArgument: Nothing says which.
            DeadJobNotFound: One of ``ids`` is not dead, or would come to more than 1000 attempts; the others wait
                again.
        """
        whole = isinstance(attempts, int) and not isinstance(attempts, bool)
        if not whole or not 1 <= attempts <= MAX_ATTEMPTS:
            raise InvalidArgument(f"attempts is {attempts!r}: it must be a whole number from 1 to {MAX_ATTEMPTS}")
        which = _selection(ids, cron_name, kind, queue, before, everything=everything)
        async with self._connected().session() as connection:
            done = await queue_actions.retry_dead(
                connection, self.schema, which, attempts=attempts, by=label_of(by), clock=self._now()
            )
        return _all_of(which, done, "retried")

    async def purge_dead(
        self,
        ids: Sequence[int] | None = None,
        *,
        cron_name: str | None = None,
        kind: str | None = None,
        queue: str | None = None,
        before: datetime | None = None,
        everything: bool = False,
        by: str | None = None,
    ) -> list[int]:
        """Delete dead jobs, for good; those that fit everything which is given, as for ``retry_dead``.

        Returns:
            The jobs that are gone.

        Raises:
            InvalidArgument: Nothing says which.
            DeadJobNotFound: One of ``ids`` is not dead; the others are gone.
        """
        which = _selection(ids, cron_name, kind, queue, before, everything=everything)
        async with self._connected().session() as connection:
            done = await queue_actions.purge_dead(
                connection, self.schema, which, by=label_of(by), clock=self._now()
            )
        return _all_of(which, done, "purged")


def _queue(name: str) -> str:
    try:
        return registration.label(name, "queue")
    except InvalidSchedule as error:
        raise InvalidArgument(str(error)) from None


def _selection(
    ids: Sequence[int] | None,
    cron_name: str | None,
    kind: str | None,
    queue: str | None,
    before: datetime | None,
    *,
    everything: bool,
) -> Selection:
    if not everything and (ids, cron_name, kind, queue, before) == (None,) * 5:
        raise InvalidArgument(
            "which dead jobs? name ids, cron_name, kind, queue or before, or pass everything=True"
        )
    if ids is not None:
        for each in ids:
            if isinstance(each, bool) or not isinstance(each, int) or not 0 <= each < 2**63:
                raise InvalidArgument(f"job id {each!r}: it must be a whole number")
    return Selection(
        ids=None if ids is None else tuple(ids),
        cron_name=cron_name,
        kind=kind,
        queue=queue,
        before=None if before is None else aware(before, "before"),
    )


def _all_of(which: Selection, done: list[int], what: str) -> list[int]:
    missing = sorted(set(which.ids or ()) - set(done))
    if missing:
        raise DeadJobNotFound(
            f"not {what}: {', '.join(map(str, missing))}: no dead job has that id and fits"
            + (f"; {what}: {', '.join(map(str, done))}" if done else "")
        )
    return done
