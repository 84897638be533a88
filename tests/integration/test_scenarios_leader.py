"""One leader, and what becomes of it when its session, its server or its network fails."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta

import pytest

import awa_cron
from awa_cron import actions
from awa_cron.database import Database
from awa_cron.errors import LeadershipLost
from awa_cron.scheduler import Scheduler
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
    row_of,
    running,
    schedule,
    wait_until,
)

SCHEMA = Schema()


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
    await connection.execute("SELECT pg_advisory_lock($1)", key ^ (1 << 32))
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


async def test_p06_the_end_of_the_session_ends_the_term_before_any_ping(dsn: str, connection: Session) -> None:
    settings = dataclasses.replace(HASTY, ping_interval_s=30)
    async with awa_cron.Client(dsn, settings=settings) as client, running(client.run_forever()):
        await wait_until(lambda: client.leading, "leads")
        (event,) = await events_of(connection, None)
        await connection.execute("SELECT pg_terminate_backend($1)", event["details"]["backend_pid"])

        async def again() -> bool:
            return len(await events_of(connection, None, "acquire_leader")) == 2

        await wait_until(again, "P06: it has noticed, and leads in a new session")


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


@pytest.mark.parametrize("turns", range(6))
async def test_an_instance_that_is_cancelled_while_it_loses_the_lead_ends(
    dsn: str, connection: Session, turns: int
) -> None:
    async with Database(dsn, SCHEMA, HASTY) as database:
        scheduler = Scheduler(database, lambda: (), "node")
        task = asyncio.create_task(scheduler.run())
        await wait_until(lambda: scheduler.leading, "it leads")
        scheduler._leader.abandon()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=5)
        ended = task.done()
        for each in asyncio.all_tasks() - {asyncio.current_task()}:  # or the test would never end either
            each.cancel()
        assert ended, "a cancellation is not forgotten because an error came with it"
