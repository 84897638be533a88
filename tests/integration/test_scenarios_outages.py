"""A leader whose backend freezes, whose network falls silent, or whose session the server would end."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import pytest

import awa_cron
from awa_cron.database import Database
from awa_cron.errors import DatabaseError, LeadershipLost
from awa_cron.model import Kind
from awa_cron.scheduler import Scheduler
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from tests.integration.support import (
    HASTY,
    Session,
    a_leader,
    a_session,
    each_second,
    events_of,
    fired,
    fires_of,
    is_local_process,
    running,
    wait_until,
)

SCHEMA = Schema()


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_d06_a_frozen_backend_costs_the_term(dsn: str, connection: Session) -> None:
    await each_second(connection)
    async with awa_cron.Client(dsn, settings=HASTY) as client, running(client.run_forever()):
        await fired(connection, 0)
        (event,) = await events_of(connection, None)
        pid = event["details"]["backend_pid"]
        if not is_local_process(pid):
            pytest.skip("the server's processes are not on this machine, or belong to somebody else")
        with frozen(pid):
            await wait_until(lambda: not client.leading, "D06, P06: the ping times out and the node steps down")
            stopped = len(await fires_of(connection))
            await asyncio.sleep(1.3)
            assert stopped == len(await fires_of(connection)), "D06: it has stopped evaluating"
            assert not client.leading, "P05: the frozen backend still holds the lock"
        await wait_until(lambda: client.leading, "D06: it re-enters the election")
        await fired(connection, stopped)
        pids = [each["details"]["backend_pid"] for each in await events_of(connection, None)]
        assert 2 == len(set(pids)), "D06: in a new session"


async def test_a_pass_that_fails_costs_neither_the_term_nor_the_process(dsn: str, connection: Session) -> None:
    await each_second(connection)
    settings = dataclasses.replace(HASTY, statement_timeout_s=0.3)
    async with awa_cron.Client(dsn, settings=settings) as client, running(client.run_forever()) as task:
        await fired(connection, 0)
        async with a_session(dsn) as blocker:
            await blocker.execute("BEGIN; LOCK TABLE awa.cron_jobs IN ACCESS EXCLUSIVE MODE")
            await asyncio.sleep(1)
            await blocker.execute("COMMIT")
        await fired(connection, len(await fires_of(connection)))
        assert (True, False) == (client.leading, task.done())
    assert 1 == len(await events_of(connection, None, "acquire_leader")), "P06: its lock was never in doubt"


async def test_d06_a_frozen_backend_costs_the_candidacy(dsn: str) -> None:
    async with a_leader(dsn) as leader, a_leader(dsn) as candidate:
        assert await leader.acquire()
        assert not await candidate.acquire()
        assert candidate._connection is not None
        pid = candidate._connection.get_server_pid()
        if not is_local_process(pid):
            pytest.skip("the server's processes are not on this machine, or belong to somebody else")
        with frozen(pid), pytest.raises(DatabaseError, match="no answer in time"):
            async with asyncio.timeout(5):
                await candidate.acquire()
        await leader.step_down()
        assert await candidate.acquire(), "D06: in a new session"


class Wire:
    """A TCP port in front of the server, that can fall silent without closing."""

    def __init__(self, dsn: str) -> None:
        parts = urlsplit(dsn)
        self._folder = parse_qs(parts.query).get("host", [None])[0]
        self._address = (parts.hostname, parts.port or 5432)
        self._parts = parts
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._pumps: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        user = f"{quote(self._parts.username or 'postgres')}:{quote(self._parts.password or '')}"
        try:
            yield urlunsplit(("postgresql", f"{user}@127.0.0.1:{port}", self._parts.path, "sslmode=disable", ""))
        finally:
            server.close()
            for pump in self._pumps:
                pump.cancel()
            await asyncio.gather(*self._pumps, return_exceptions=True)

    def fall_silent(self) -> None:
        self._flowing.clear()

    def speak(self) -> None:
        self._flowing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._folder is not None:
            inner = await asyncio.open_unix_connection(f"{self._folder}/.s.PGSQL.{self._address[1]}")
        else:
            inner = await asyncio.open_connection(*self._address)
        for source, target in ((reader, inner[1]), (inner[0], writer)):
            pump = asyncio.create_task(self._pump(source, target))
            self._pumps.add(pump)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                await self._flowing.wait()
                target.write(data)
                await target.drain()
        except OSError:
            pass
        finally:
            target.close()


async def test_d06_a_silent_network_costs_the_term(dsn: str, connection: Session) -> None:
    await each_second(connection)
    wire = Wire(dsn)
    async with (
        wire.open() as through_wire,
        awa_cron.Client(through_wire, settings=HASTY) as client,
        running(client.run_forever()),
    ):
        await fired(connection, 0)
        wire.fall_silent()
        await wait_until(lambda: not client.leading, "D06, P06: it notices that nobody answers")
        async with awa_cron.Client(dsn, settings=HASTY) as heir, running(heir.run_forever(work=False)):
            await wait_until(lambda: heir.leading, "P05: the server gives the lock to another node")
            await fired(connection, len(await fires_of(connection)))
        wire.speak()
        await wait_until(lambda: client.leading, "D06: it re-enters the election")
    fires = await fires_of(connection)
    assert sorted(set(fires)) == fires, "P07, P10, P11: no fire twice, none out of order"


async def test_d06_a_leader_that_stops_pinging_loses_the_lock(dsn: str) -> None:
    async with a_leader(dsn) as stopped, a_leader(dsn) as other:
        assert await stopped.acquire()
        assert not await other.acquire()
        lease_s = HASTY.leader_idle_timeout_s
        await wait_until(other.acquire, "P06: the server ends the session of a leader that is silent", timeout_s=5)
        assert lease_s < 2 * (HASTY.ping_interval_s + HASTY.ping_timeout_s)
        with pytest.raises(LeadershipLost):
            await stopped.ping()


async def test_d06b_the_servers_idle_timeout_does_not_free_the_lock(dsn: str, connection: Session) -> None:
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"ALTER DATABASE \"{name}\" SET idle_session_timeout = '500ms'")
    patient = Settings(election_interval_s=0.1, evaluate_interval_s=0.2)  # pings every 30 s
    await each_second(connection)
    async with awa_cron.Client(dsn, settings=patient) as client, running(client.run_forever()):
        await wait_until(lambda: client.leading, "leads")
        await fired(connection, 2)
        assert client.leading
    events = [event["action"] for event in await events_of(connection, None)]
    assert ["acquire_leader", "lose_leader"] == events, "D06b: one term, ended on purpose"


class Counted(Scheduler):
    """Counts its passes over what is due."""

    passes = 0

    async def evaluate(self, kind: Kind = Kind.ALL) -> datetime:
        self.passes += kind is Kind.DUE
        return await super().evaluate(kind)


async def test_c07_a_blocked_evaluator_makes_one_job_and_one_pass(dsn: str, connection: Session) -> None:
    await each_second(connection)
    async with Database(dsn, SCHEMA, Settings(evaluate_interval_s=0.25, statement_timeout_s=20)) as database:
        scheduler = Counted(database, lambda: (), "counted")
        async with a_session(dsn) as blocker, running(scheduler.run()):
            await fired(connection, 0)
            await blocker.execute("BEGIN; LOCK TABLE awa.cron_jobs IN ACCESS EXCLUSIVE MODE")
            await asyncio.sleep(3.2)
            before, passes = await fires_of(connection), scheduler.passes
            await blocker.execute("COMMIT")
            await fired(connection, len(before))
            after = (await fires_of(connection))[len(before)]
            await asyncio.sleep(0.6)
            made = scheduler.passes - passes
    missed_s = (after - before[-1]).total_seconds()
    assert missed_s >= 3, "C07, P16: one job, for the latest of the missed fires"
    assert made <= 4, f"C07: not one pass per missed tick, but {made} in 0.6 s"
