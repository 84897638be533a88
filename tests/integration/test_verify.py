"""The verdict on a real database: the log, the rows and the jobs agree, and where they do not, it says so. P35."""

from __future__ import annotations

from datetime import timedelta

from tests.integration.support import FIRE, Session, T, a_node, events_of, schedule


async def test_the_event_of_an_enqueue_tells_the_clock_of_its_read(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(T, schedule())
        await node.evaluate(FIRE + timedelta(seconds=2))
    [event] = await events_of(connection, action="atomic_enqueue")
    assert {"expected": None, "read_at": "2026-01-01T11:00:02+00:00"} == event["details"]
