"""Many schedules fall due in one second: from that second until the last job is committed."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta

import asyncpg

from awa_cron import Client
from benchmarks.filling import Variety, schedules, server_now, sleep_until, until, whole_second
from benchmarks.gauges import freeze, memory_mb, peak_memory_mb, server_cpu_s, watching

FILL_PER_S = 15_000
"""Rows that are made in a second, at least: so far ahead lies the second when they fall due."""

PATIENCE_S = 300.0

MARK = """
    UPDATE awa.cron_jobs AS c
    SET last_enqueued_at = c.next_fire_at, next_fire_at = c.next_fire_at + interval '1 day',
        updated_at = statement_timestamp()
    WHERE c.next_fire_at <= statement_timestamp() AND c.paused_at IS NULL
    RETURNING c.*
"""
INSERT = """
    INSERT INTO awa.jobs (kind, queue, args, priority, max_attempts, tags, metadata, run_at, created_at, deadline_s)
    SELECT m.kind, m.queue, m.args, m.priority, m.max_attempts, m.tags,
        m.metadata || jsonb_build_object('cron_name', m.name, 'cron_fire_time', m.last_enqueued_at),
        statement_timestamp(), statement_timestamp(), m.deadline_s
    FROM mark AS m
"""
BARE = f"WITH mark AS ({MARK}) {INSERT}"
"""The least that any solution has to do on these tables: mark what is due, and insert a job of each."""
LOGGED = f"""
WITH mark AS ({MARK}), made AS ({INSERT} RETURNING id, metadata ->> 'cron_name' AS name)
INSERT INTO awa.cron_events (clock, action, name, actor, fires, job_ids, last_enqueued_at, details)
SELECT statement_timestamp(), 'atomic_enqueue', m.name, 'floor', ARRAY[m.last_enqueued_at], ARRAY[made.id],
    m.last_enqueued_at, '{{}}'
FROM mark AS m JOIN made USING (name)
"""  # noqa: S608
"""The same, and an event of each in the log."""


async def ours(dsn: str, count: int, variety: Variety) -> dict[str, float | None]:
    """A client that leads, as in production; the commits are heard of by LISTEN."""
    connection = await asyncpg.connect(dsn)
    due = await _made(connection, count, variety)
    commits = _Commits()
    await connection.add_listener("awa:jobs", commits.heard)
    before_mb = memory_mb()
    client = Client(dsn)
    freeze()

    async def leads() -> bool:
        return client.leading

    async with watching() as dog, client:
        running = asyncio.create_task(client.run_forever(work=False))
        await until(leads)
        await sleep_until(connection, due - timedelta(seconds=0.5))
        dog.worst_s = 0.0
        cpu_s, server_s = time.process_time(), await server_cpu_s(connection)
        await sleep_until(connection, due)
        ends = time.monotonic() + PATIENCE_S
        while await _jobs(connection, due) < count and time.monotonic() < ends:
            await commits.quiet(0.5)
        cpu_s, after_s = time.process_time() - cpu_s, await server_cpu_s(connection)
        running.cancel()
    made = await _jobs(connection, due)
    assert made == count, f"{made} jobs of {count}"
    clocks_differ = (await server_now(connection)).timestamp() - time.time()
    await connection.close()
    return {
        "seconds": commits.last + clocks_differ - due.timestamp(),
        "first_commit_s": commits.first + clocks_differ - due.timestamp(),
        "loop_blocked_ms": 1e3 * dog.worst_s,
        "cpu_s": cpu_s,
        "server_cpu_s": None if server_s is None or after_s is None else after_s - server_s,
        "memory_before_mb": before_mb,
        "memory_mb": memory_mb(),
        "peak_memory_mb": peak_memory_mb(),
    }


async def bare(dsn: str, count: int, variety: Variety, *, logged: bool) -> dict[str, float | None]:
    """The floor: one statement, all decided beforehand."""
    connection = await asyncpg.connect(dsn)
    due = await _made(connection, count, variety)
    await sleep_until(connection, due)
    started = time.perf_counter()
    await connection.execute(LOGGED if logged else BARE)
    seconds = time.perf_counter() - started
    assert await _jobs(connection, due) == count
    await connection.close()
    return {"seconds": seconds}


async def _made(connection: asyncpg.Connection[asyncpg.Record], count: int, variety: Variety) -> datetime:
    due = await whole_second(connection, 2 + count / FILL_PER_S)
    await schedules(connection, count, variety, due)
    assert await server_now(connection) < due - timedelta(seconds=1), "too slow: the schedules are due already"
    return due


async def _jobs(connection: asyncpg.Connection[asyncpg.Record], due: datetime) -> int:
    """Return how many jobs there are for the instant."""
    of_instant = "SELECT count(*) FROM awa.jobs WHERE (metadata ->> 'cron_fire_time')::timestamptz = $1"
    return int(await connection.fetchval(of_instant, due))


class _Commits:
    """When the first and the last commit was heard of, by this machine's clock."""

    def __init__(self) -> None:
        self.first = self.last = 0.0

    def heard(self, *_: object) -> None:
        self.last = time.time()
        self.first = self.first or self.last

    async def quiet(self, long_s: float) -> None:
        """Wait until none was heard of for so long."""
        while True:
            await asyncio.sleep(long_s)
            if time.time() - self.last >= long_s:
                return
