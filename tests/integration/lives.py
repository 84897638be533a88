"""What the tests of the verdict share: a database in which something has happened, and how it is asked about."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from awa_cron import Client, Verdict, actions
from awa_cron.sql import Schema
from tests.integration.support import Session, T, a_node, schedule

SCHEMA = Schema()


async def checked(dsn: str, now: datetime | None, **options: Any) -> Verdict:
    async with Client(dsn, clock=None if now is None else lambda: now) as client:
        return await client.verify(**options)


async def lived(dsn: str, connection: Session) -> datetime:
    """Let two schedules live an eventful day, and return the end of it."""
    hour = timedelta(hours=1)
    async with a_node(dsn, connection, pass_limit=2) as node:
        registered = [schedule("c"), schedule("k", missed_fire_policy="catch_up")]
        await node.sync(T, *registered)
        await node.evaluate(T + hour)
        await node.evaluate(T + 4 * hour)
        await node.evaluate(T + 4 * hour)
        for name in ("c", "k"):
            await actions.pause(connection, SCHEMA, name, clock=T + 4.5 * hour)
            await actions.trigger(connection, SCHEMA, name, clock=T + 5 * hour)
        await node.evaluate(T + 6 * hour)
        await actions.resume(connection, SCHEMA, "c", clock=T + 6.5 * hour)
        await node.evaluate(T + 8 * hour)
        await node.sync(T + 9.1 * hour, schedule("c", "30 * * * *"), schedule("k", "*/20 * * * *"))
        await actions.resume(connection, SCHEMA, "k", clock=T + 9.2 * hour)
        await node.evaluate(T + 10 * hour)
        await actions.remove(connection, SCHEMA, "c", clock=T + 11 * hour)
        await node.sync(T + 11 * hour, schedule("c"))
        return T + 11 * hour
