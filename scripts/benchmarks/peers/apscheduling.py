"""APScheduler: runs functions in its process; its schedules can stand in Postgres, one row each."""

from __future__ import annotations

import time

import asyncpg
import sqlalchemy
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

from benchmarks.filling import Variety, expression, sleep_until, until_as_many, whole_second

THREADS = 5
REGISTERED_PER_S = 200
_engine: sqlalchemy.Engine


async def herd(dsn: str, count: int, variety: Variety) -> dict[str, float | None]:
    """A scheduler with a job store in Postgres, whose function inserts a row."""
    global _engine  # noqa: PLW0603  # the stored function is found by its name
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "CREATE TABLE made (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, schedule text)"
    )
    _engine = sqlalchemy.create_engine(dsn.replace("postgresql:", "postgresql+psycopg:"), pool_size=THREADS)
    scheduler = BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(engine=_engine)},
        executors={"default": ThreadPoolExecutor(THREADS)},
        timezone="UTC",
    )
    due = await whole_second(connection, 5 + count / REGISTERED_PER_S)
    scheduler.start(paused=True)
    for number in range(count):
        second, minute, hour, day, month, _ = expression(due, number, variety).split()
        trigger = CronTrigger(second=second, minute=minute, hour=hour, day=day, month=month, timezone="UTC")
        name = f"schedule {number:07}"
        scheduler.add_job(insert, trigger, args=[name], id=name, misfire_grace_time=None)
    scheduler.resume()
    await sleep_until(connection, due)
    await until_as_many(connection, "SELECT count(*) FROM made", count)
    seconds = time.time() - due.timestamp()
    scheduler.shutdown(wait=False)
    _engine.dispose()
    await connection.close()
    return {"seconds": seconds}


def insert(name: str) -> None:
    """Make what stands for a job."""
    with _engine.begin() as connection:
        connection.execute(sqlalchemy.text("INSERT INTO made (schedule) VALUES (:name)"), {"name": name})
