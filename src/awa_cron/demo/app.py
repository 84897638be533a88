"""Six schedules and their handlers, as any module that uses awa_cron has them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

import awa_cron

# Short, so that a viewer sees a lease end: two pings of 2 s and a timeout of 1 s. Keep the defaults elsewhere.
client = awa_cron.Client(
    settings=awa_cron.Settings(
        ping_interval_s=2.0,
        ping_timeout_s=1.0,
        election_interval_s=0.5,
        poll_interval_s=0.5,
        heartbeat_interval_s=1.0,
        rescue_after_s=4.0,
        shutdown_timeout_s=5.0,
    )
)


@asynccontextmanager
async def recorded(job: awa_cron.Job) -> AsyncIterator[None]:
    """Write into a table of this module's own that a run began, and that it came to its end."""
    connection = await asyncpg.connect(os.environ["AWA_CRON_DSN"])
    try:
        run = await connection.fetchval(
            "INSERT INTO demo_runs (job_id, name, fire_time, attempt, pid)"
            " VALUES ($1, $2, $3, $4, $5) RETURNING id",
            job.id,
            job.cron_name,
            job.fire_time,
            job.attempt,
            os.getpid(),
        )
        yield
        await connection.execute("UPDATE demo_runs SET finished_at = clock_timestamp() WHERE id = $1", run)
    finally:
        connection.terminate()


@client.task("quick")
async def quick(job: awa_cron.Job) -> None:
    """Do something short."""
    async with recorded(job):
        await asyncio.sleep(0.02)


@client.task("report")
async def report(job: awa_cron.Job) -> None:
    """Take a while, so that a killed worker leaves a job half done."""
    async with recorded(job):
        await asyncio.sleep(3.0)


client.periodic("heartbeat", "* * * * * *", kind="quick")
client.periodic("ledger", "* * * * * *", kind="quick", queue="money", priority=1, missed_fire_policy="catch_up")
client.periodic("inbox", "*/2 * * * * *", kind="quick", queue="mail", priority=3)
client.periodic("report", "1-59/2 * * * * *", kind="report", queue="slow", priority=4)
client.periodic("kathmandu_bell", "*/5 * * * * *", kind="quick", timezone="Asia/Kathmandu", args={"bell": "brass"})
client.periodic("nightly_backup", "0 3 * * *", kind="report", queue="slow", max_attempts=5)
