"""Many schedules, none due: what a tick costs."""

from __future__ import annotations

import time
from datetime import timedelta

import asyncpg

from awa_cron.database import Database
from awa_cron.evaluator import Evaluator
from awa_cron.model import Kind
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from benchmarks.filling import Variety, schedules, whole_second
from benchmarks.gauges import elapsed, median, percentile, server_cpu_s

WARM_UP = 10


async def ours(dsn: str, count: int, variety: Variety, ticks: int) -> dict[str, float | None]:
    """The two passes that a leader makes each second: over what is due, and over what is new."""
    connection = await asyncpg.connect(dsn)
    due = await whole_second(connection, timedelta(days=1).total_seconds())
    await schedules(connection, count, variety, due)
    took: list[float] = []
    async with Database(dsn, Schema(), Settings()) as database:
        evaluator = Evaluator(database, "bench")
        for tick in range(WARM_UP + ticks):
            if tick == WARM_UP:
                cpu_s, server_s = time.process_time(), await server_cpu_s(connection)
            with elapsed() as one:
                await evaluator.make_pass(Kind.DUE)
                await evaluator.make_pass(Kind.UNKNOWN)
            took.append(one.wall_s)
        cpu_s, after_s = time.process_time() - cpu_s, await server_cpu_s(connection)
    assert await connection.fetchval("SELECT count(*) FROM awa.jobs") == 0
    await connection.close()
    took = took[WARM_UP:]
    return {
        "tick_ms": 1e3 * median(took),
        "tick_p99_ms": 1e3 * percentile(took, 0.99),
        "cpu_ms": 1e3 * cpu_s / ticks,
        "server_cpu_ms": None if server_s is None or after_s is None else 1e3 * (after_s - server_s) / ticks,
    }
