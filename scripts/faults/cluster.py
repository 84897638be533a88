"""Several instances on one database, each behind a wire of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from awa_cron.sql import Schema
from faults import CannotRunError
from faults.instances import Instance
from faults.server import Database
from faults.wire import Wire

LEADER = """
SELECT e.actor, l.pid
FROM pg_locks AS l
JOIN awa.cron_events AS e ON e.action = 'acquire_leader' AND (e.details ->> 'backend_pid')::integer = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
  AND (l.classid::bigint << 32) | l.objid::bigint = $1::bigint
ORDER BY e.id DESC
LIMIT 1
"""


class Cluster:
    """What the faults strike.

    Args:
        database: Of its own.
        instances: In order.
        wires: One each.
    """

    def __init__(self, database: Database, instances: Sequence[Instance], wires: Sequence[Wire]) -> None:
        self.database = database
        self.instances = instances
        self.wires = wires

    async def leader(self) -> tuple[int, int] | None:
        """Return the leading instance's place, and the server process that holds its lock."""
        rows = await self.database.fetch(LEADER, Schema().leader_lock_key)
        for row in rows:
            for place, instance in enumerate(self.instances):
                if str(instance.pid) == row["actor"].rsplit(":", 2)[1]:
                    return place, row["pid"]
        return None

    async def has_leader(self, timeout_s: float = 30.0) -> int:
        """Wait until one leads, and return its place.

        Raises:
            CannotRunError: None does.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while (found := await self.leader()) is None:  # noqa: ASYNC110 (it is in another process)
                    await asyncio.sleep(0.05)
        except TimeoutError:
            words = "\n".join(f"{each}: {each.last_words()}" for each in self.instances)
            raise CannotRunError(f"nobody leads after {timeout_s:.0f} s\n{words}") from None
        return found[0]

    def start(self) -> None:
        """Start every instance that does not run."""
        for instance in self.instances:
            instance.start()

    async def stop(self) -> None:
        """Ask all to end."""
        await asyncio.gather(*(instance.stop() for instance in self.instances))


@asynccontextmanager
async def a_cluster(database: Database, count: int, make: Callable[[int, str], Instance]) -> AsyncIterator[Cluster]:
    """Lay the wires, make the instances, and look after them; none of it outlives the context.

    Args:
        database: For all.
        count: How many.
        make: Makes one, from its place and its connection string.
    """
    async with AsyncExitStack() as stack:
        wires = [Wire(database.dsn) for _ in range(count)]
        for wire in wires:
            await stack.enter_async_context(wire.laid())
        instances = [make(place, wire.dsn(database.name)) for place, wire in enumerate(wires)]
        async with looked_after(instances):
            yield Cluster(database, instances, wires)


@asynccontextmanager
async def looked_after(instances: Sequence[Instance]) -> AsyncIterator[None]:
    """Keep instances running, and kill what still runs in the end."""
    keepers = [asyncio.create_task(instance.supervise()) for instance in instances]
    try:
        yield
    finally:
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)
        for instance in instances:
            instance.thaw()
            instance.kill()


def maker(directory: Path, prefix: str, module: str, *options: str, **variables: str) -> Callable[..., Any]:
    """Return what ``a_cluster`` needs for instances that are all alike."""

    def make(place: int, dsn: str) -> Instance:
        return Instance(f"{prefix}_{place}", module, dsn, directory, *options, **variables)

    return make
