"""Nobody led for long: the first pass after it, of one schedule that fires each minute."""

from __future__ import annotations

from datetime import timedelta

import asyncpg

from awa_cron import migrate
from awa_cron.database import Database
from awa_cron.evaluator import Evaluator
from awa_cron.model import Kind
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from benchmarks.filling import KIND, server_now, settled
from benchmarks.gauges import elapsed, median

ROW = """
INSERT INTO awa.cron_jobs (name, cron_expr, kind, missed_fire_policy, anchored_at, last_enqueued_at, next_fire_at)
VALUES ('missed', '* * * * *', $1, $2, $3, $3, $3::timestamptz + interval '1 minute')
"""


async def ours(dsn: str, outage_s: float, policy: str, passes: int) -> dict[str, float | None]:
    """The first pass, each time of a schedule as far behind; the first of all is left out."""
    connection = await asyncpg.connect(dsn)
    await migrate.migrate(connection, Schema())
    since = (await server_now(connection)).replace(second=0, microsecond=0) - timedelta(seconds=outage_s)
    took: list[float] = []
    async with Database(dsn, Schema(), Settings()) as database:
        evaluator = Evaluator(database, "bench")
        for _ in range(1 + passes):
            await connection.execute("TRUNCATE awa.cron_jobs, awa.jobs, awa.cron_events")
            await connection.execute(ROW, KIND, policy, since)
            await settled(connection)
            with elapsed() as one:
                await evaluator.make_pass(Kind.DUE)
            took.append(one.wall_s)
            jobs = await connection.fetchval("SELECT count(*) FROM awa.jobs")
            assert jobs == (1 if policy == "coalesce" else min(Settings().pass_limit, outage_s // 60)), jobs
    await connection.close()
    return {"first_pass_ms": 1e3 * median(took[1:]), "jobs": float(jobs)}
