"""The actions of ``spec/AwaQueue.tla`` on a real database, by the same names: what becomes of a committed job.

Each function runs one statement. Claims and outcomes are many at a time, a single one is a batch of one, and each
job of a batch is a step of its own. Outcomes are fenced by worker and attempt: a worker whose job was taken from it
changes nothing.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from awa_cron import rows
from awa_cron.actions import ask, checked
from awa_cron.model import Cancelled, Job, JobState
from awa_cron.registration import NewJob
from awa_cron.sql import Connection, Schema

MAX_ATTEMPTS = 1000
"""The highest ``max_attempts`` that a job may have, AttemptLimit in the spec."""


Attempt: TypeAlias = tuple[int, int]
"""A job's id, and the number of the attempt."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What became of the outcomes of attempts.

    Attributes:
        written: The new states; an attempt that is not here and not held was no longer this worker's.
        held: Somebody holds the job's row just now: nothing is known yet, ask again.
    """

    written: dict[Attempt, JobState]
    held: frozenset[Attempt]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PurgedPage:
    """What became of one page of a table.

    Attributes:
        last: The id with which it ends; the next page follows it.
        purged: How many of its rows are gone.
        more: Whether anything old can come after it.
    """

    last: int
    purged: int
    more: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which dead jobs an operator means: all of them that fit everything which is given."""

    ids: tuple[int, ...] | None = None
    cron_name: str | None = None
    kind: str | None = None
    queue: str | None = None
    before: datetime | None = None


async def submit(connection: Connection, schema: Schema, job: NewJob, *, clock: datetime | None = None) -> Job:
    """Make a job by hand, of no schedule; inside the caller's transaction, it comes with its commit.

    Spec: Submit.

    Raises:
        DatabaseError: The server refused or the connection is gone; there is no job.
    """
    columns = (job.kind, job.queue, job.args_json, job.priority, job.max_attempts, job.tags, job.metadata_json)
    found = await ask(connection, schema, "submit", *columns, job.run_at, job.deadline_s, checked(clock))
    return rows.job(found[0])


async def claim(
    connection: Connection,
    schema: Schema,
    *,
    kinds: Sequence[str],
    queues: Sequence[str] | None,
    limit: int,
    worker: str,
    clock: datetime | None = None,
) -> list[Job]:
    """Take up to ``limit`` waiting jobs, in (priority, run_at, id) order.

    Spec: Claim, for each.

    Args:
        connection: Any session.
        schema: Where the jobs are.
        kinds: Only jobs of these kinds, so that a deployment leaves alone what it has no handler for.
        queues: Only jobs of these queues; None for all. A paused queue gives none.
        limit: At least 1.
        worker: Who claims; the fence of ``finish`` and ``fail``.
        clock: Instead of the database's.

    Raises:
        DatabaseError: The server refused or the connection is gone; nothing was claimed, or the jobs wait for
            their rescue.
    """
    found = await ask(connection, schema, "claim", kinds, queues, limit, worker, checked(clock))
    return sorted((rows.job(row) for row in found), key=lambda job: (job.priority, job.run_at, job.id))


async def finish(
    connection: Connection, schema: Schema, jobs: Sequence[Job], *, worker: str, clock: datetime | None = None
) -> Settled:
    """Mark jobs completed.

    Spec: Finish, for each that is written; SettleTooLate for each that is neither written nor held.

    Args:
        connection: Any session.
        schema: Where the jobs are.
        jobs: As claimed, each once.
        worker: Who claimed them.
        clock: Instead of the database's.

    Raises:
        DatabaseError: The server refused or the connection is gone; nothing was written.
    """
    return await _settle(connection, schema, "finish", jobs, worker, checked(clock))


async def fail(
    connection: Connection,
    schema: Schema,
    failures: Sequence[tuple[Job, dict[str, Any], float]],
    *,
    worker: str,
    clock: datetime | None = None,
) -> Settled:
    """Record failed attempts: each becomes ``retryable``, or ``failed`` when it was the job's last.

    Spec: Fail, for each that is written; SettleTooLate for each that is neither written nor held.

    Args:
        connection: Any session.
        schema: Where the jobs are.
        failures: Each once: a job as claimed, its error, and the seconds until its next attempt.
        worker: Who claimed them.
        clock: Instead of the database's.

    Raises:
        DatabaseError: The server refused or the connection is gone; nothing was written.
    """
    jobs = [job for job, _, _ in failures]
    errors, delays = [json.dumps(error) for _, error, _ in failures], [delay_s for _, _, delay_s in failures]
    return await _settle(connection, schema, "fail", jobs, worker, errors, delays, checked(clock))


async def snooze(
    connection: Connection,
    schema: Schema,
    snoozes: Sequence[tuple[Job, float]],
    *,
    worker: str,
    clock: datetime | None = None,
) -> Settled:
    """Let jobs wait without counting their attempts; one that is at the limit is neither written nor held.

    Spec: Snooze, for each that is written; SettleTooLate for each that is neither written nor held.

    Args:
        connection: Any session.
        schema: Where the jobs are.
        snoozes: Each once: a job as claimed, and the seconds until it may run.
        worker: Who claimed them.
        clock: Instead of the database's.

    Raises:
        DatabaseError: The server refused or the connection is gone; nothing was written.
    """
    jobs, delays = [job for job, _ in snoozes], [delay_s for _, delay_s in snoozes]
    return await _settle(connection, schema, "snooze", jobs, worker, delays, checked(clock))


async def cancel_own(
    connection: Connection,
    schema: Schema,
    cancelled: Sequence[tuple[Job, dict[str, Any]]],
    *,
    worker: str,
    clock: datetime | None = None,
) -> Settled:
    """End jobs as cancelled because their handlers say so.

    Spec: CancelOwn, for each that is written; SettleTooLate for each that is neither written nor held.

    Args:
        connection: Any session.
        schema: Where the jobs are.
        cancelled: Each once: a job as claimed, and the reason.
        worker: Who claimed them.
        clock: Instead of the database's.

    Raises:
        DatabaseError: The server refused or the connection is gone; nothing was written.
    """
    jobs, reasons = [job for job, _ in cancelled], [json.dumps(reason) for _, reason in cancelled]
    return await _settle(connection, schema, "cancel_own", jobs, worker, reasons, checked(clock))


async def _settle(
    connection: Connection, schema: Schema, action: str, jobs: Sequence[Job], worker: str, *more: object
) -> Settled:
    ids, attempts = [job.id for job in jobs], [job.attempt for job in jobs]
    found = await ask(connection, schema, action, ids, attempts, worker, *more)
    states = {(row["id"], row["attempt"]): row["state"] for row in found}
    return Settled(
        written={attempt: JobState(state) for attempt, state in states.items() if state is not None},
        held=frozenset(attempt for attempt, state in states.items() if state is None),
    )


async def heartbeat(
    connection: Connection,
    schema: Schema,
    attempts: Iterable[Attempt],
    *,
    worker: str,
    clock: datetime | None = None,
) -> set[Attempt]:
    """Renew running attempts.

    Returns:
        Those that are still this worker's.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    pairs = sorted(attempts)
    jobs, numbers = [job for job, _ in pairs], [number for _, number in pairs]
    found = await ask(connection, schema, "heartbeat", jobs, numbers, worker, checked(clock))
    return {(row["id"], row["attempt"]) for row in found}


async def rescue(
    connection: Connection, schema: Schema, *, silent_for_s: float, clock: datetime | None = None
) -> dict[int, JobState]:
    """Take jobs from workers that have not renewed them.

    Spec: Rescue, for each.

    Returns:
        The jobs' new states, ``retryable`` or ``failed``.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    found = await ask(connection, schema, "rescue", silent_for_s, checked(clock))
    return {row["id"]: JobState(row["state"]) for row in found}


async def pause_queue(
    connection: Connection, schema: Schema, queue: str, *, by: str | None = None, clock: datetime | None = None
) -> bool:
    """Stop handing out a queue's jobs; False when it was paused already, and its first label stays.

    Spec: PauseQueue.
    Source: ADR-007, "In-flight jobs and queue pause".

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    found = await ask(connection, schema, "pause_queue", queue, by, checked(clock))
    return bool(found[0]["changed"])


async def resume_queue(
    connection: Connection, schema: Schema, queue: str, *, by: str | None = None, clock: datetime | None = None
) -> bool:
    """Hand out a queue's jobs again; False when it was not paused.

    Spec: ResumeQueue.
    Source: ADR-007, "In-flight jobs and queue pause".

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    found = await ask(connection, schema, "resume_queue", queue, by, schema.jobs_channel, checked(clock))
    return bool(found[0]["changed"])


async def cancel_jobs(
    connection: Connection,
    schema: Schema,
    name: str,
    *,
    running: bool = False,
    by: str | None = None,
    clock: datetime | None = None,
) -> Cancelled | None:
    """Cancel the jobs that carry a schedule's name and have not begun; with ``running`` also those that run.

    Spec: CancelJobs.
    Source: ADR-007, "In-flight jobs and queue pause".

    Returns:
        How many of each; None when neither a schedule nor any job has that name.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    question = (name, running, schema.cancel_channel, by, checked(clock))
    row = (await ask(connection, schema, "cancel_jobs", *question))[0]
    if not row["known"]:
        return None
    return Cancelled(waiting=row["waiting"], signalled=row["signalled"], running=row["running"])


async def retry_dead(
    connection: Connection,
    schema: Schema,
    which: Selection,
    *,
    attempts: int = 1,
    by: str | None = None,
    clock: datetime | None = None,
) -> list[int]:
    """Give dead jobs a second life of so many attempts, unless that would exceed the limit.

    Spec: RetryDead, for each.

    Returns:
        The jobs that wait again, ascending.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    found = await ask(connection, schema, "retry_dead", *_columns(which), attempts, by, checked(clock))
    return [row["id"] for row in found]


async def purge_dead(
    connection: Connection,
    schema: Schema,
    which: Selection,
    *,
    by: str | None = None,
    clock: datetime | None = None,
) -> list[int]:
    """Delete dead jobs.

    Spec: PurgeDead, for each.

    Returns:
        The jobs that are gone, ascending.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    found = await ask(connection, schema, "purge_dead", *_columns(which), by, checked(clock))
    return [row["id"] for row in found]


async def purge_finished(
    connection: Connection,
    schema: Schema,
    before: datetime,
    *,
    after: int = 0,
    size: int = 1_000,
    by: str | None = None,
    clock: datetime | None = None,
) -> PurgedPage:
    """Delete old jobs that are completed or cancelled, of one page of the table.

    Spec: PurgeFinished, for each.

    Args:
        connection: Any session.
        schema: Where the jobs are.
        before: What was done with earlier is old.
        after: The job that the page follows.
        size: How many jobs it has, at most.
        by: A label for the history.
        clock: Instead of the database's.

    Raises:
        DatabaseError: The server refused or the connection is gone; nothing was deleted.
    """
    found = await ask(connection, schema, "purge_finished", checked(before), after, size, by, checked(clock))
    return PurgedPage(**found[0])


def _columns(which: Selection) -> tuple[object, ...]:
    return which.ids, which.cron_name, which.kind, which.queue, checked(which.before)
