"""The faults, by the names that programs use. Each strikes, lasts, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

from awa_cron.sql import DRIVER_ERRORS
from faults.cluster import Cluster, looked_after
from faults.instances import Instance
from faults.pooler import a_pooler
from faults.program import LEADER, Step
from faults.server import Server
from faults.wire import Wire

IN_THE_MIDDLE = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND query LIKE '-- AtomicEnqueue%' AND wait_event_type = 'Lock'
"""

JUST_READ = """
SELECT extract(epoch FROM clock_timestamp() - query_start)::float8 AS ago_s
FROM pg_stat_activity
WHERE datname = current_database() AND query LIKE '-- ReadCronState%'
  AND query_start > clock_timestamp() - interval '0.2 s'
"""


class Strikes:
    """Performs the faults of a program.

    Args:
        server: Where sessions are ended and settings changed.
        cluster: Whose processes and wires are struck.
        directory: For the files of a pooler.
        seed: Decides the little that is decided only now.
    """

    def __init__(self, server: Server, cluster: Cluster, directory: Path, seed: int) -> None:
        self._server = server
        self._cluster = cluster
        self._directory = directory
        self._dice = random.Random(f"{seed} strikes")  # noqa: S311
        self._poolers = 0
        self.pooled: list[Instance] = []
        """Instances that ran behind a pooler."""
        self.stale_writes = 0
        """Writes that were on their way when their leader's session was ended."""
        self.in_the_middle = 0
        """Statements of ``atomic_enqueue`` that were ended after their mark and before their jobs."""

    def kinds(self) -> Mapping[str, Callable[[Step], Awaitable[None]]]:
        """Return every fault by name."""
        return {
            "kill": self._kill,
            "freeze": self._freeze,
            "black_hole": self._black_hole,
            "lost_answers": self._lost_answers,
            "latency": self._latency,
            "stale_write": self._stale_write,
            "forgotten_clients": self._forgotten_clients,
            "forgotten_servers": self._forgotten_servers,
            "terminate_leader": self._terminate_leader,
            "terminate_enqueue": self._terminate_enqueue,
            "restart_fast": lambda _: self._server.restart("fast"),
            "restart_immediate": lambda _: self._server.restart("immediate"),
            "idle_session_timeout": self._server_setting,
            "statement_timeout": self._server_setting,
            "row_lock": self._row_lock,
            "pooler": self._pooler,
        }

    async def _place(self, step: Step) -> int:
        if step.target != LEADER:
            return int(step.target)
        found = await self._cluster.leader()
        return found[0] if found is not None else self._dice.randrange(len(self._cluster.instances))

    async def _instance(self, step: Step) -> Instance:
        return self._cluster.instances[await self._place(step)]

    async def _wire(self, step: Step) -> Wire:
        return self._cluster.wires[await self._place(step)]

    async def _kill(self, step: Step) -> None:
        instance = await self._instance(step)
        instance.kill()
        await asyncio.sleep(step.seconds)
        instance.start()

    async def _freeze(self, step: Step) -> None:
        instance = await self._instance(step)
        instance.freeze()
        await asyncio.sleep(step.seconds)
        instance.thaw()

    async def _black_hole(self, step: Step) -> None:
        await self._silence(await self._wire(step), step.seconds)

    async def _lost_answers(self, step: Step) -> None:
        """Let statements through and hold back what comes of them: nobody knows whether they were committed."""
        await self._silence(await self._wire(step), step.seconds, "to_client")

    async def _silence(self, wire: Wire, seconds: float, *ways: Literal["to_client"]) -> None:
        wire.fall_silent(*ways)
        await asyncio.sleep(seconds)
        wire.speak()

    async def _latency(self, step: Step) -> None:
        wire = await self._wire(step)
        wire.slow_down(step.amount)
        await asyncio.sleep(step.seconds)
        wire.slow_down(0)

    async def _stale_write(self, step: Step) -> None:
        """Keep a leader's write on its way for most of a second, while another takes the lead and writes the same.

        What goes to the server takes so long that the write is sent when the read is as old, and arrives when it
        is twice as old. In between the leader's session is ended.
        """
        deadline = asyncio.get_running_loop().time() + step.seconds
        while (found := await self._cluster.leader()) is None:
            if asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(0.1)
        wire, fetch = self._cluster.wires[found[0]], self._cluster.database.fetch
        wire.slow_down(step.amount, "to_server")
        await asyncio.sleep(step.amount)
        while asyncio.get_running_loop().time() < deadline:
            if rows := await fetch(JUST_READ):
                await asyncio.sleep(step.amount - rows[0]["ago_s"] + 0.03)
                await fetch("SELECT pg_terminate_backend($1)", found[1])
                self.stale_writes += 1
                break
            await asyncio.sleep(0.02)
        await asyncio.sleep(2 * step.amount)
        wire.slow_down(0)

    async def _forgotten_clients(self, step: Step) -> None:
        """Close the clients' ends; the server believes in its sessions, and in their locks."""
        wire = await self._wire(step)
        wire.forget_clients()
        await asyncio.sleep(step.seconds)
        wire.cut(half_open_only=True)

    async def _forgotten_servers(self, step: Step) -> None:
        """Close the server's ends; the clients believe that their sessions are there."""
        wire = await self._wire(step)
        wire.forget_servers()
        await asyncio.sleep(step.seconds)
        wire.cut(half_open_only=True)

    async def _terminate_leader(self, _: Step) -> None:
        found = await self._cluster.leader()
        if found is not None:
            await self._cluster.database.fetch("SELECT pg_terminate_backend($1)", found[1])

    async def _terminate_enqueue(self, _: Step) -> None:
        """End a leader's statement between its UPDATE and its INSERT, for which it is made to wait."""
        database = self._cluster.database
        blocker = await database.session()
        try:
            await blocker.execute("SET lock_timeout = '2s'; BEGIN; LOCK TABLE awa.jobs IN SHARE ROW EXCLUSIVE MODE")
            for _attempt in range(50):
                if rows := await database.fetch(IN_THE_MIDDLE):
                    break
                await asyncio.sleep(0.05)
            for row in rows:
                ended = await database.value("SELECT pg_terminate_backend($1)", row["pid"])
                self.in_the_middle += bool(ended)
        except DRIVER_ERRORS:
            pass  # another fault has ended it, or the table was busy
        finally:
            blocker.terminate()

    async def _server_setting(self, step: Step) -> None:
        """Set a timeout for everybody who does not set it himself."""
        async with self._system_setting(step.what, f"{round(step.amount)}ms"):
            await asyncio.sleep(step.seconds)

    @asynccontextmanager
    async def _system_setting(self, name: str, value: str) -> AsyncIterator[None]:
        fetch = self._cluster.database.fetch
        await fetch(f"ALTER SYSTEM SET {name} = '{value}'")
        await fetch("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            await fetch(f"ALTER SYSTEM RESET {name}")
            await fetch("SELECT pg_reload_conf()")

    async def _row_lock(self, step: Step) -> None:
        """Hold a schedule's row in a transaction of somebody else's."""
        holder = await self._cluster.database.session()
        try:
            rows = await holder.fetch("SELECT name FROM awa.cron_jobs ORDER BY name")
            name = rows[int(step.amount * len(rows))]["name"] if rows else ""
            await holder.execute("SET lock_timeout = '2s'; BEGIN")
            await holder.execute("SELECT 1 FROM awa.cron_jobs WHERE name = $1 FOR UPDATE", name)
            await asyncio.sleep(step.seconds)
        except DRIVER_ERRORS:
            pass  # the server was restarted meanwhile
        finally:
            holder.terminate()

    async def _pooler(self, step: Step) -> None:
        """Run one more instance, behind a pooler that keeps no session."""
        self._poolers += 1
        name = f"pooled_{self._poolers}"
        with suppress(*DRIVER_ERRORS):
            async with a_pooler(self._cluster.database, self._directory) as dsn:
                instance = Instance(name, "faults.apps.release_1:client", dsn, self._directory)
                self.pooled.append(instance)
                async with looked_after([instance]):
                    instance.start()
                    await asyncio.sleep(step.seconds)
                    await instance.stop()
