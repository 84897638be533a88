"""Schedules that fire each second, as production does it: how late the jobs are."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import asyncpg

from awa_cron import Client, migrate
from awa_cron.sql import Schema
from benchmarks.filling import KIND, QUEUE, settled, sleep_until, until, whole_second
from benchmarks.gauges import freeze, percentile, server_cpu_s, watching

WARM_UP_S = 3

# An event is the last thing that its statement writes before the commit.
LATENESS = """
SELECT extract(epoch FROM e.recorded_at - f.fire)::float8 AS late
FROM awa.cron_events AS e, unnest(e.fires) AS f (fire)
WHERE e.action = 'atomic_enqueue' AND f.fire > $1 AND f.fire <= $2
"""


async def ours(dsn: str, count: int, seconds: int) -> dict[str, float | None]:
    """A client that leads."""
    connection = await asyncpg.connect(dsn)
    await migrate.migrate(connection, Schema())
    await connection.copy_records_to_table(
        "cron_jobs",
        schema_name="awa",
        columns=("name", "cron_expr", "kind", "queue"),
        records=((f"schedule {number:07}", "* * * * * *", KIND, QUEUE) for number in range(count)),
    )
    await settled(connection)
    client = Client(dsn)
    freeze()

    async def leads() -> bool:
        return client.leading

    async with watching() as dog, client:
        running = asyncio.create_task(client.run_forever(work=False))
        await until(leads)
        begin = await whole_second(connection, WARM_UP_S)
        await sleep_until(connection, begin)
        dog.worst_s, cpu_s, server_s = 0.0, time.process_time(), await server_cpu_s(connection)
        end = begin + timedelta(seconds=seconds)
        await sleep_until(connection, end)
        worst_s, cpu_s, after_s = dog.worst_s, time.process_time() - cpu_s, await server_cpu_s(connection)
        await sleep_until(connection, end + timedelta(seconds=2))
        running.cancel()
    late = [row["late"] for row in await connection.fetch(LATENESS, begin, end)]
    await connection.close()
    assert len(late) == count * seconds, f"{len(late)} fires of {count * seconds}"
    return {
        "late_p50_ms": 1e3 * percentile(late, 0.5),
        "late_p99_ms": 1e3 * percentile(late, 0.99),
        "late_max_ms": 1e3 * max(late),
        "loop_blocked_ms": 1e3 * worst_s,
        "cpu_share": cpu_s / seconds,
        "server_cpu_share": None if server_s is None or after_s is None else (after_s - server_s) / seconds,
    }
