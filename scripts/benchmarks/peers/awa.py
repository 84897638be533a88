"""The full Awa: the same design, in Rust, with a Python front (awa-pg)."""

from __future__ import annotations

import dataclasses
import time
from datetime import timedelta

import asyncpg
import awa

from benchmarks.filling import QUEUE, Variety, expression, sleep_until, until_as_many, whole_second
from benchmarks.jobs import Count

LEAD_S = 5.0
MARKED = "SELECT count(*) FROM awa.cron_jobs WHERE last_enqueued_at IS NOT NULL"
UNFINISHED = "SELECT count(*) FROM awa.jobs WHERE queue = $1 AND state::text <> 'completed'"


@dataclasses.dataclass
class Bench:
    """Arguments of a job that does nothing."""

    n: int = 0


async def herd(dsn: str, count: int, variety: Variety) -> dict[str, float | None]:
    """Its leader, as its documentation starts it; the jobs wait in a queue that nobody works."""
    connection = await asyncpg.connect(dsn)
    client = awa.AsyncClient(_named(dsn))
    await client.migrate()

    @client.task(Bench, queue="other")
    async def nothing(_job: object) -> None:
        pass

    due = await whole_second(connection, LEAD_S + count / 500)
    for number in range(count):
        client.periodic(
            f"schedule {number:07}", expression(due, number, variety), Bench, Bench(number), queue=QUEUE
        )
    await client.start([("other", 1)], leader_election_interval_ms=100)
    await until_as_many(connection, "SELECT count(*) FROM awa.cron_jobs", count)
    assert (due - timedelta(seconds=1)).timestamp() > time.time(), "not registered in time"
    await sleep_until(connection, due)
    await until_as_many(connection, MARKED, count)
    seconds = time.time() - due.timestamp()
    await client.shutdown()
    await connection.close()
    return {"seconds": seconds}


async def jobs(dsn: str, count: int, concurrency: int) -> dict[str, float | None]:
    """Its worker."""
    connection = await asyncpg.connect(dsn)
    client = awa.AsyncClient(_named(dsn))
    await client.migrate()
    counted = Count(count)

    @client.task(Bench, queue=QUEUE)
    async def nothing(_job: object) -> None:
        counted.one()

    await client.insert_many_copy([Bench(number) for number in range(count)], queue=QUEUE)
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")

    async def unfinished() -> int:
        found: int = await connection.fetchval(UNFINISHED, QUEUE)
        return found

    await client.start([(QUEUE, concurrency)])
    found = await counted.rate(count, unfinished)
    await client.shutdown()
    await connection.close()
    return found


def _named(dsn: str) -> str:
    """Return a connection string with a host: its driver refuses one that has a socket's folder only."""
    return dsn.replace("@/", "@localhost/")
