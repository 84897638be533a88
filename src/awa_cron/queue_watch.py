"""While this instance leads, it counts the jobs of each queue for OpenTelemetry; without that, it does nothing."""

from __future__ import annotations

import asyncio
import logging

from awa_cron import telemetry
from awa_cron.actions import asking
from awa_cron.database import Database
from awa_cron.errors import DatabaseError

log = logging.getLogger(__name__)

EVERY_S = 15.0


async def watch_queues(database: Database) -> None:
    """Count now and then until cancelled, or until it turns out that this role may not."""
    if not telemetry.ENABLED:
        return
    try:
        while True:
            try:
                async with database.session() as connection, asking("queue depths"):
                    found = await connection.fetch(database.schema.statement("queries/queue_depth"))
                telemetry.queue_depths({(row["queue"], row["state"]): row["jobs"] for row in found})
            except DatabaseError as error:
                log.warning("cannot count the queues", extra={"error": str(error)})
            await asyncio.sleep(EVERY_S)
    finally:
        telemetry.queue_depths({})
