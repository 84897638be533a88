"""Rows of schedules by the hundred thousand, as a sync would have left them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

import asyncpg

from awa_cron import migrate
from awa_cron.sql import Schema

Variety: TypeAlias = Literal["alike", "distinct"]
"""Whether all schedules have one expression, or each its own."""

KIND = QUEUE = "bench"


def expression(due: datetime, number: int, variety: Variety) -> str:
    """Return a six-field expression that fires at a whole second.

    Distinct ones have another minute, hour, day and month beside the instant's own; there are 240,000 of them, and
    none fires again within a quarter of an hour.
    """
    if variety == "alike":
        return f"{due.second} {due.minute} {due.hour} * * *"
    number, minute = divmod(number, 30)
    number, hour = divmod(number, 23)
    number, day = divmod(number, 30)
    month = number % 12
    return " ".join(
        (
            str(due.second),
            f"{due.minute},{(due.minute + 15 + minute) % 60}",
            f"{due.hour},{(due.hour + 1 + hour) % 24}",
            f"{due.day},{1 + (due.day + day) % 31}",
            "*" if month == 11 else f"{due.month},{1 + (due.month + month) % 12}",
            "*",
        )
    )


async def schedules(
    connection: asyncpg.Connection[asyncpg.Record], count: int, variety: Variety, due: datetime
) -> None:
    """Make the schema and schedules that all fire at a whole second, registered before it one after the other."""
    await migrate.migrate(connection, Schema())
    last, apart = due - timedelta(seconds=1), timedelta(milliseconds=1)
    await connection.copy_records_to_table(
        "cron_jobs",
        schema_name="awa",
        columns=("name", "cron_expr", "kind", "queue", "anchored_at", "next_fire_at"),
        records=(
            (f"schedule {number:07}", expression(due, number, variety), KIND, QUEUE, last - number * apart, due)
            for number in range(count)
        ),
    )
    await settled(connection)


async def settled(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Do now what autovacuum and a checkpoint would do in the middle of a measurement."""
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")


async def server_now(connection: asyncpg.Connection[asyncpg.Record]) -> datetime:
    """Return the server's clock."""
    now: datetime = await connection.fetchval("SELECT clock_timestamp()")
    return now.astimezone(UTC)


async def whole_second(connection: asyncpg.Connection[asyncpg.Record], ahead_s: float) -> datetime:
    """Return a whole second that comes at least so soon."""
    return (await server_now(connection)).replace(microsecond=0) + timedelta(seconds=1 + math.ceil(ahead_s))


async def until(true: Callable[[], Awaitable[bool]], every_s: float = 0.02) -> None:
    """Ask again and again; nobody tells us, so that all subjects are asked alike."""
    while not await true():  # noqa: ASYNC110
        await asyncio.sleep(every_s)


async def until_as_many(connection: asyncpg.Connection[asyncpg.Record], query: str, count: int) -> None:
    """Ask the database until a query counts so many."""

    async def enough() -> bool:
        found: int = await connection.fetchval(query)
        return found >= count

    await until(enough)


async def sleep_until(connection: asyncpg.Connection[asyncpg.Record], instant: datetime) -> None:
    """Sleep by the server's clock."""
    await asyncio.sleep(max(0.0, (instant - await server_now(connection)).total_seconds()))
