"""Jobs that do nothing, all enqueued beforehand, one process that runs them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import asyncpg

from awa_cron import Client, Job, migrate
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from benchmarks.filling import KIND, QUEUE, settled, until

PATIENCE_S = 300.0


class Count:
    """Counts the handler's calls; the clock starts at the first."""

    def __init__(self, wanted: int) -> None:
        self._left = wanted
        self.first = 0.0
        self.all = asyncio.Event()

    def one(self) -> None:
        """Count a call."""
        self.first = self.first or time.perf_counter()
        self._left -= 1
        if self._left == 0:
            self.all.set()

    async def rate(self, jobs: int, unfinished: Callable[[], Awaitable[int]]) -> dict[str, float | None]:
        """Wait until no job is unfinished in the database either."""

        async def all_written() -> bool:
            return await unfinished() == 0

        async with asyncio.timeout(PATIENCE_S):
            await self.all.wait()
            await until(all_written, every_s=0.002)
        seconds = time.perf_counter() - self.first
        return {"jobs_per_s": jobs / seconds, "seconds": seconds}


async def ours(dsn: str, count: int, concurrency: int) -> dict[str, float | None]:
    """A client that only works."""
    connection = await asyncpg.connect(dsn)
    await migrate.migrate(connection, Schema())
    await connection.execute(
        "INSERT INTO awa.jobs (kind, queue) SELECT $2, $3 FROM generate_series(1, $1)", count, KIND, QUEUE
    )
    await settled(connection)
    counted = Count(count)
    client = Client(dsn, settings=Settings(concurrency=concurrency))

    @client.task(KIND)
    async def nothing(_job: Job) -> None:
        counted.one()

    async def unfinished() -> int:
        found: int = await connection.fetchval("SELECT count(*) FROM awa.jobs WHERE state <> 'completed'")
        return found

    async with client:
        running = asyncio.create_task(client.run_forever(evaluate=False))
        found = await counted.rate(count, unfinished)
        running.cancel()
    await connection.close()
    return found
