"""Deletes what is old: jobs that are done with, and events, page by page and with rests in between.

Spec: ``PurgeFinished`` of AwaQueue, ``PurgeEvents`` of AwaRetention. No step of the protocol reads a finished job
or any event, except that a sync asks the removals of a name how far it had come. That is always kept.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from awa_cron.actions import ask, asking, checked
from awa_cron.database import Database
from awa_cron.errors import DatabaseError
from awa_cron.queue_actions import PurgedPage, purge_finished
from awa_cron.sql import Connection, Schema

log = logging.getLogger(__name__)

PAGE = 2_000
"""Rows that one statement looks at."""

RESTS = 4
"""A purge rests so many times as long as it works."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """How much was deleted, or would be."""

    jobs: int
    events: int


class Limits(NamedTuple):
    """Before which time jobs were done with, and events recorded, that are old; None to keep all."""

    jobs: datetime | None
    events: datetime | None


async def purge_events(
    connection: Connection,
    schema: Schema,
    before: datetime,
    *,
    after: int = 0,
    size: int = PAGE,
    by: str | None = None,
    clock: datetime | None = None,
) -> PurgedPage:
    """Delete old events of one page of the log.

    Spec: PurgeEvents, for each schedule.

    Args:
        connection: Any session.
        schema: Where the log is.
        before: What was recorded earlier is old.
        after: The event that the page follows.
        size: How many events it has, at most.
        by: A label for the history.
        clock: Instead of the database's.

    Raises:
        DatabaseError: The server refused or the connection is gone; nothing was deleted.
    """
    found = await ask(connection, schema, "purge_events", checked(before), after, size, by, checked(clock))
    return PurgedPage(**found[0])


async def limits(
    database: Database, jobs_s: float | None, events_s: float | None, clock: datetime | None = None
) -> Limits:
    """Return the times before which things are so old, by the database's clock.

    Raises:
        DatabaseError: The database cannot be asked.
    """
    async with database.session() as connection, asking("purge"):
        now = checked(clock) or await connection.fetchval("SELECT statement_timestamp()")
    ages = [None if age_s is None else now - timedelta(seconds=age_s) for age_s in (jobs_s, events_s)]
    return Limits(*ages)


async def purgeable(database: Database, old: Limits) -> Purged:
    """Count what ``purge`` would delete.

    Raises:
        DatabaseError: The database cannot be asked.
    """
    statement = database.schema.statement("queries/purgeable")
    async with database.session() as connection, asking("purge"):
        row = await connection.fetchrow(statement, old.jobs, old.events)
    assert row is not None
    return Purged(jobs=row["jobs"], events=row["events"])


async def purge(database: Database, old: Limits, *, by: str | None = None, clock: datetime | None = None) -> Purged:
    """Delete what is old, jobs first, whose events explain them.

    Raises:
        DatabaseError: The database cannot be asked; what was deleted before stays deleted.
    """
    jobs = events = 0
    for before, statement in ((old.jobs, purge_finished), (old.events, purge_events)):
        after, more = 0, before is not None
        while more:
            assert before is not None
            started = time.monotonic()
            async with database.session() as connection:
                page = await statement(
                    connection, database.schema, before, after=after, size=PAGE, by=by, clock=clock
                )
            after, more = page.last, page.more
            if statement is purge_finished:
                jobs += page.purged
            else:
                events += page.purged
            if more:
                await asyncio.sleep((time.monotonic() - started) * RESTS)
    return Purged(jobs=jobs, events=events)


async def purge_forever(
    database: Database, actor: str, clock: Callable[[], datetime | None] = lambda: None
) -> None:
    """Purge now and then, as the settings say; nothing if they keep all.

    Args:
        database: Open.
        actor: This instance, for the event log.
        clock: A clock instead of the database's, for tests.
    """
    settings = database.settings
    while settings.keep_jobs_s is not None or settings.keep_events_s is not None:
        try:
            old = await limits(database, settings.keep_jobs_s, settings.keep_events_s, clock())
            purged = await purge(database, old, by=actor, clock=clock())
            if purged.jobs or purged.events:
                log.info("purged", extra=dataclasses.asdict(purged))
        except DatabaseError as error:
            log.warning("cannot purge", extra={"error": str(error)})
        await asyncio.sleep(settings.purge_interval_s)
