"""pgqueuer: a schedule is a function that its manager calls; one that is to make a job enqueues it itself."""

from __future__ import annotations

import asyncio
import time

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.queries import Queries

from benchmarks.filling import KIND, Variety, expression, sleep_until, until_as_many, whole_second
from benchmarks.jobs import Count

REGISTERED_PER_S = 500


async def herd(dsn: str, count: int, variety: Variety) -> dict[str, float | None]:
    """Its scheduler, whose functions enqueue a job each."""
    connection = await asyncpg.connect(dsn)
    pool = await asyncpg.create_pool(dsn, min_size=5, max_size=5)
    app = PgQueuer.from_asyncpg_pool(pool)
    await Queries.from_asyncpg_pool(pool).install()
    queries = Queries.from_asyncpg_pool(pool)
    due = await whole_second(connection, 5 + count / REGISTERED_PER_S)

    async def enqueue(_schedule: object) -> None:
        await queries.enqueue(KIND, None)

    for number in range(count):
        second, rest = expression(due, number, variety).split(" ", 1)
        app.schedule(f"schedule {number:07}", f"{rest} {second}")(enqueue)
    running = asyncio.create_task(app.sm.run())
    await sleep_until(connection, due)
    await until_as_many(connection, "SELECT count(*) FROM pgqueuer", count)
    seconds = time.time() - due.timestamp()
    app.sm.shutdown.set()
    running.cancel()
    await asyncio.wait([running])
    pool.terminate()
    await connection.close()
    return {"seconds": seconds}


async def jobs(dsn: str, count: int, concurrency: int) -> dict[str, float | None]:
    """Its queue manager; so many jobs at once are two batches."""
    connection = await asyncpg.connect(dsn)
    pool = await asyncpg.create_pool(dsn, min_size=5, max_size=5)
    queries = Queries.from_asyncpg_pool(pool)
    await queries.install()
    app = PgQueuer.from_asyncpg_pool(pool)
    counted = Count(count)

    @app.entrypoint(KIND)
    async def nothing(_job: object) -> None:
        counted.one()

    await queries.enqueue([KIND] * count, [None] * count, [0] * count)
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")

    async def unfinished() -> int:
        found: int = await connection.fetchval("SELECT count(*) FROM pgqueuer")
        return found

    running = asyncio.create_task(app.qm.run(batch_size=concurrency // 2, max_concurrent_tasks=concurrency))
    found = await counted.rate(count, unfinished)
    app.qm.shutdown.set()
    running.cancel()
    await asyncio.wait([running])
    pool.terminate()
    await connection.close()
    return found
