"""One leader, and what becomes of it when its session, its server or its network fails."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import pytest

import awa_cron
from awa_cron import actions
from awa_cron.database import Database
from awa_cron.errors import LeadershipLost
from awa_cron.leader import Leader
from awa_cron.scheduler import Scheduler
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from tests.integration.support import (
    Session,
    a_session,
    events_of,
    fires_of,
    is_local_process,
    row_of,
    running,
    schedule,
    wait_until,
    write_row,
)

SCHEMA = Schema()
HASTY = Settings(
    evaluate_interval_s=0.2,
    sync_interval_s=0.5,
    ping_interval_s=0.2,
    ping_timeout_s=0.5,
    election_interval_s=0.1,
    statement_timeout_s=2.0,
    poll_interval_s=0.2,
)


@asynccontextmanager
async def a_leader(dsn: str, actor: str = "leader", settings: Settings = HASTY) -> AsyncIterator[Leader]:
    async with Database(dsn, SCHEMA, settings, pool_size=2) as database:
        leader = Leader(database, actor)
        yield leader
        leader.abandon()


async def each_second(session: Session, **columns: Any) -> None:
    await write_row(session, cron_expr="* * * * * *", anchored_at=datetime.now(UTC), **columns)


async def fired(session: Session, more_than: int) -> None:
    async def enough() -> bool:
        return len(await fires_of(session)) > more_than

    await wait_until(enough, f"more than {more_than} fires")


def test_the_tests_cover_keys_of_both_signs() -> None:
    assert {True, False} == {Schema(name).leader_lock_key > 0 for name in SIGNS}


SIGNS = ("awa", "other", "third", "fourth")


@pytest.mark.parametrize("name", SIGNS)
async def test_p05_a_ping_asks_for_this_backends_own_lock(dsn: str, connection: Session, name: str) -> None:
    schema = Schema(name)
    key = schema.leader_lock_key
    pid = connection.get_server_pid()

    async def ping() -> actions.Leadership:
        return await actions.ping_leader(connection, schema)

    assert actions.Leadership(holds_lock=False, backend_pid=pid) == await ping(), "P06: nobody holds it"
    async with a_session(dsn) as other:
        await other.execute("SELECT pg_advisory_lock($1)", key)
        assert not (await ping()).holds_lock, "P06: somebody else holds it"
        await other.execute("SELECT pg_advisory_unlock($1)", key)
    await connection.execute("SELECT pg_advisory_lock($1)", key + 1)
    await connection.execute("SELECT pg_advisory_lock($1)", schema.sync_lock_key)
    high, low = (key >> 32) & 0xFFFFFFFF, key & 0xFFFFFFFF
    halves = [half - (1 << 32) if half >= 1 << 31 else half for half in (high, low)]
    await connection.execute("SELECT pg_advisory_lock($1::int, $2::int)", *halves)
    assert not (await ping()).holds_lock, "P06: other locks do not count"
    await connection.execute("SELECT pg_advisory_lock($1)", key)
    assert actions.Leadership(holds_lock=True, backend_pid=pid) == await ping(), "P05"


async def test_p05_one_leads_and_a_closed_session_frees_the_lock(dsn: str, connection: Session) -> None:
    async with a_leader(dsn, "one") as one, a_leader(dsn, "two") as two:
        assert [True, False] == [await one.acquire(), await two.acquire()], "P05: one holder"
        assert (one.backend_pid is not None, two.backend_pid) == (True, None)
        await one.step_down()
        assert await two.acquire(), "P05: given back"
        pid = two.backend_pid
        two.abandon()
        await wait_until(one.acquire, "P05: a closed connection frees the lock")
        led = [(event["action"], event["actor"]) for event in await events_of(connection, None)]
        expected = [
            ("acquire_leader", "one"),
            ("lose_leader", "one"),
            ("acquire_leader", "two"),
            ("acquire_leader", "one"),
        ]
        assert expected == led, "P35: who led when"
        assert pid == (await events_of(connection, None))[2]["details"]["backend_pid"]


async def test_p06_a_leader_whose_backend_is_ended_notices(dsn: str, connection: Session) -> None:
    async with a_leader(dsn) as leader:
        assert await leader.acquire()
        waiting = asyncio.create_task(leader.wait_lost())
        await connection.execute("SELECT pg_terminate_backend($1)", leader.backend_pid)
        with pytest.raises(LeadershipLost):
            async with asyncio.timeout(5):
                await waiting
        with pytest.raises(LeadershipLost):
            await leader.ping()
        assert leader.backend_pid is None


async def test_p06_a_leader_whose_lock_is_gone_steps_down_at_the_next_ping(dsn: str) -> None:
    async with a_leader(dsn) as leader, a_leader(dsn) as other:
        assert await leader.acquire()
        await leader.ping()
        assert leader._connection is not None
        await leader._connection.execute("SELECT pg_advisory_unlock_all()")
        with pytest.raises(LeadershipLost, match="no longer holds"):
            await leader.ping()
        assert leader.backend_pid is None
        assert await other.acquire()


async def test_d05_the_lock_is_on_a_session_of_its_own(dsn: str, connection: Session) -> None:
    await each_second(connection)
    holder = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND database ="
    holder += " (SELECT oid FROM pg_database WHERE datname = current_database())"
    async with awa_cron.Client(dsn, settings=HASTY) as client, running(client.run_forever()):
        await wait_until(lambda: client.leading, "leads")
        before = await connection.fetchval(holder)
        for _ in range(30):  # each of these ends with the pool's reset, which unlocks everything of its session
            await client.history("s")
        assert before == await connection.fetchval(holder), "D05, P05: the pool's resets do not free the lock"
        purpose = await connection.fetchval("SELECT application_name FROM pg_stat_activity WHERE pid = $1", before)
        assert "awa_cron leader" == purpose


async def test_d05b_another_backend_behind_the_connection_is_found_out(dsn: str) -> None:
    async with a_leader(dsn) as leader, a_session(dsn) as pooled:
        assert await leader.acquire()
        own, leader._connection = leader._connection, pooled  # as a transaction pooler would hand out
        with pytest.raises(LeadershipLost, match=r"transaction pooler .* directly or in session mode"):
            await leader.ping()
        assert own is not None
        own.terminate()


async def test_d05b_a_pooled_backend_that_holds_the_lock_is_not_ours_either(dsn: str) -> None:
    async with a_leader(dsn) as leader, a_session(dsn) as pooled:
        assert await leader.acquire()
        own = leader._connection
        assert own is not None
        await own.execute("SELECT pg_advisory_unlock_all()")
        await pooled.execute("SELECT pg_advisory_lock($1)", SCHEMA.leader_lock_key)
        leader._connection = pooled
        with pytest.raises(LeadershipLost, match="transaction pooler"):
            await leader.ping()
        own.terminate()


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
    """Counts its passes."""

    passes = 0

    async def evaluate(self) -> datetime | None:
        self.passes += 1
        return await super().evaluate()


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


async def test_p08_a_due_fire_is_a_job_within_a_second(dsn: str, connection: Session) -> None:
    await each_second(connection)
    async with awa_cron.Client(dsn) as client, running(client.run_forever(work=False)):
        await fired(connection, 2)
    lags = await connection.fetch(
        "SELECT created_at - (metadata ->> 'cron_fire_time')::timestamptz AS lag FROM awa.jobs"
    )
    assert all(timedelta(0) <= row["lag"] < timedelta(seconds=1.5) for row in lags), f"P08, P19: {lags}"


async def test_p04_an_instance_that_does_not_lead_stores_its_schedules(dsn: str, connection: Session) -> None:
    async with awa_cron.Client(dsn, settings=HASTY) as leader, running(leader.run_forever()):
        await wait_until(lambda: leader.leading, "leads")
        follower = awa_cron.Client(dsn, settings=HASTY)
        follower.periodic("s", "* * * * * *", kind="work")
        async with follower, running(follower.run_forever()):
            await fired(connection, 0)
            assert (True, False) == (leader.leading, follower.leading), "P04: synced by one, fired by the other"


async def test_p04_a_schedule_registered_later_is_stored_at_the_next_sync(dsn: str, connection: Session) -> None:
    client = awa_cron.Client(dsn, settings=HASTY)
    async with client, running(client.run_forever()):
        await wait_until(lambda: client.leading, "leads")
        client.periodic("s", "0 * * * *", kind="work")
        await wait_until(
            lambda: connection.fetchval("SELECT count(*) FROM awa.cron_jobs"), "P04: sync runs again and again"
        )
    assert schedule().cron_expr == (await row_of(connection))["cron_expr"]


async def test_p05_many_instances_have_one_leader_and_a_successor(dsn: str, connection: Session) -> None:
    await each_second(connection)
    # A leader that is stopped in the middle of a ping cuts its session and writes no event.
    settings = dataclasses.replace(HASTY, ping_interval_s=30)
    clients = [awa_cron.Client(dsn, settings=settings) for _ in range(3)]
    async with clients[0], clients[1], clients[2], asyncio.TaskGroup() as group:
        tasks = {client: group.create_task(client.run_forever()) for client in clients}
        for terms in range(1, 4):
            await wait_until(lambda: any(client.leading for client in clients), "somebody leads")
            await fired(connection, len(await fires_of(connection)))
            (leader,) = [client for client in clients if client.leading]
            assert leader.actor == (await events_of(connection, None, "acquire_leader"))[-1]["actor"]
            tasks[leader].cancel()
            await asyncio.wait([tasks[leader]], timeout=5)
            assert terms == len(await events_of(connection, None, "lose_leader")), "P05: given back at once"
    fires = await fires_of(connection)
    assert sorted(set(fires)) == fires, "P10, P11"
