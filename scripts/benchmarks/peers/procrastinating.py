"""procrastinate: schedules live in the code of each worker, which defers what is due one at a time."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import procrastinate

from benchmarks.filling import KIND, QUEUE, Variety, expression, sleep_until, until_as_many, whole_second
from benchmarks.jobs import Count

STARTED = "SELECT count(*) FROM procrastinate_jobs"
UNFINISHED = "SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'"
REGISTERED_PER_S = 200


async def herd(dsn: str, count: int, variety: Variety) -> dict[str, float | None]:
    """A worker of another queue, so that it only defers."""
    connection = await asyncpg.connect(dsn)
    app = _app(dsn)
    due = await whole_second(connection, 5 + count / REGISTERED_PER_S)

    @app.task(name=KIND, queue=QUEUE)
    async def nothing(timestamp: int) -> None:
        pass

    for number in range(count):
        second, rest = expression(due, number, variety).split(" ", 1)
        app.periodic(cron=f"{rest} {second}", periodic_id=f"schedule {number:07}")(
            nothing
        )  # seconds come last here
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        working = asyncio.create_task(app.run_worker_async(queues=["other"], install_signal_handlers=False))
        await sleep_until(connection, due)
        await until_as_many(connection, STARTED, count)
        seconds = time.time() - due.timestamp()
        working.cancel()
        await asyncio.wait([working])
    await connection.close()
    return {"seconds": seconds}


async def jobs(dsn: str, count: int, concurrency: int) -> dict[str, float | None]:
    """A worker."""
    connection = await asyncpg.connect(dsn)
    app = _app(dsn)
    counted = Count(count)

    @app.task(name=KIND, queue=QUEUE)
    async def nothing() -> None:
        counted.one()

    async def unfinished() -> int:
        found: int = await connection.fetchval(UNFINISHED)
        return found

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await nothing.batch_defer_async(*({} for _ in range(count)))
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
        working = asyncio.create_task(
            app.run_worker_async(queues=[QUEUE], concurrency=concurrency, install_signal_handlers=False)
        )
        found = await counted.rate(count, unfinished)
        working.cancel()
        await asyncio.wait([working])
    await connection.close()
    return found


def _app(dsn: str) -> procrastinate.App:
    return procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=dsn))
