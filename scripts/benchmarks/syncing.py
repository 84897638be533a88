"""A process that registers very many schedules: the first sync writes them, the next finds them unchanged."""

from __future__ import annotations

import asyncpg

from awa_cron import Client, migrate
from awa_cron.database import Database
from awa_cron.scheduler import Scheduler
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from benchmarks.filling import KIND, QUEUE, Variety, expression, server_now, settled
from benchmarks.gauges import Elapsed, elapsed, freeze, watching

VERSIONS = """
SELECT count(*) AS rows, sum(hashtextextended(concat(ctid, xmin), 0)) AS versions FROM awa.cron_jobs
"""


async def ours(dsn: str, count: int, variety: Variety) -> dict[str, float | None]:
    """Register, sync, sync again."""
    connection = await asyncpg.connect(dsn)
    await migrate.migrate(connection, Schema())
    due = await server_now(connection)
    client = Client()
    with elapsed() as registering:
        for number in range(count):
            client.periodic(
                f"schedule {number:07}",
                expression(due, number, variety),
                kind=KIND,
                queue=QUEUE,
                args={"n": number},
            )
    freeze()
    async with Database(dsn, Schema(), Settings()) as database:
        scheduler = Scheduler(database, lambda: client.schedules, "bench")
        first, first_worst_s = await _measured(scheduler)
        written = await connection.fetchrow(VERSIONS)
        assert written is not None
        assert written["rows"] == count
        await settled(connection)
        again, again_worst_s = await _measured(scheduler)
        unchanged = await connection.fetchrow(VERSIONS)
    await connection.close()
    assert unchanged == written, "the second sync wrote rows"
    return {
        "register_s": registering.wall_s,
        "first_s": first.wall_s,
        "first_loop_blocked_ms": 1e3 * first_worst_s,
        "unchanged_s": again.wall_s,
        "unchanged_cpu_s": again.cpu_s,
        "unchanged_rows_written": 0.0,
        "unchanged_loop_blocked_ms": 1e3 * again_worst_s,
    }


async def _measured(scheduler: Scheduler) -> tuple[Elapsed, float]:
    async with watching() as dog:
        with elapsed() as one:
            await scheduler.sync()
    return one, dog.worst_s
