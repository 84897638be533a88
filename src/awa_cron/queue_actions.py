"""The actions of the job queue on a real database: what happens to a job after its fire has been committed.

Each function runs one statement. Claims are fenced by worker and attempt: a worker whose job was taken from it can
neither finish nor fail it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from awa_cron import rows
from awa_cron.actions import ask, checked
from awa_cron.model import Job, JobState
from awa_cron.sql import Connection, Schema


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
    connection: Connection, schema: Schema, job: Job, *, worker: str, clock: datetime | None = None
) -> bool:
    """Mark a job completed; False when it is no longer this worker's.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    return bool(await ask(connection, schema, "finish", job.id, job.attempt, worker, checked(clock)))


async def fail(
    connection: Connection,
    schema: Schema,
    job: Job,
    *,
    worker: str,
    error: dict[str, Any],
    retry_delay_s: float,
    clock: datetime | None = None,
) -> JobState | None:
    """Record a failed attempt.

    Returns:
        ``retryable``, ``failed`` when that was the last attempt, None when the job is no longer this worker's.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    outcome = (job.id, job.attempt, worker, json.dumps(error), retry_delay_s, checked(clock))
    found = await ask(connection, schema, "fail", *outcome)
    return JobState(found[0]["state"]) if found else None


async def heartbeat(
    connection: Connection, schema: Schema, job_ids: Sequence[int], *, worker: str, clock: datetime | None = None
) -> set[int]:
    """Renew running jobs.

    Returns:
        Those that are still this worker's.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    found = await ask(connection, schema, "heartbeat", job_ids, worker, checked(clock))
    return {row["id"] for row in found}


async def rescue(
    connection: Connection, schema: Schema, *, silent_for_s: float, clock: datetime | None = None
) -> dict[int, JobState]:
    """Take jobs from workers that have not renewed them.

    Returns:
        The jobs' new states, ``retryable`` or ``failed``.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    found = await ask(connection, schema, "rescue", silent_for_s, checked(clock))
    return {row["id"]: JobState(row["state"]) for row in found}
