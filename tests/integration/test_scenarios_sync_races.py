"""Sync when somebody else is faster: edits, inserts and removals at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import asyncpg
import pytest

from awa_cron import actions, rows
from awa_cron.sql import Schema
from tests.integration.support import (
    LEVELS,
    Session,
    a_node,
    a_session,
    at,
    deadlocks,
    enqueue,
    events_of,
    every,
    fires_of,
    row_of,
    schedule,
    sync,
    wait_until,
    waiting_sessions,
    write_row,
)

SCHEMA = Schema()


async def test_e04b_a_stale_snapshot_cannot_use_the_fresh_row(connection: Session) -> None:
    await sync(connection, at("2026-01-01 10:00"), schedule())
    assert await enqueue(connection, at("2026-01-01 11:00"), None)
    await actions.remove(connection, SCHEMA, "s", clock=at("2026-01-01 11:01"))
    await sync(connection, at("2026-01-01 11:02"), schedule())
    stale = await enqueue(connection, at("2026-01-01 11:00"), None, at("2026-01-01 11:03"))
    assert not stale, "E04b, P12: last is NULL again, as it was read, but 11:00 is before the anchor"


class Interposed(asyncpg.Connection):
    """A real session that lets something else happen once, right after its next read."""

    after_read: Callable[[], Awaitable[object]] | None = None

    async def fetch(self, *args: Any, **kwargs: Any) -> Any:
        found = await super().fetch(*args, **kwargs)
        if self.after_read is not None:
            meanwhile, self.after_read = self.after_read, None
            await meanwhile()
        return found


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("rival", ["enqueue", "pause", "resume", "remove", "edit"])
async def test_an_edit_from_a_stale_read_is_lost_and_told(
    dsn: str, connection: Session, level: str, rival: str
) -> None:
    await sync(connection, at("2026-01-01 10:00"), schedule())
    now = at("2026-01-01 11:00:05")
    if rival == "resume":  # what the read would drop because of the pause is settled after all
        await actions.pause(connection, SCHEMA, "s", clock=at("2026-01-01 10:30"))

    async def meanwhile() -> None:
        match rival:
            case "enqueue":
                assert await enqueue(connection, at("2026-01-01 11:00"), None)
            case "pause":
                assert await actions.pause(connection, SCHEMA, "s", clock=now)
            case "resume":
                assert await actions.resume(connection, SCHEMA, "s", clock=now)
            case "remove":
                assert await actions.remove(connection, SCHEMA, "s", clock=now)
            case "edit":
                assert (await sync(connection, now, schedule(cron_expr="45 * * * *"))).outcomes

    edited = schedule(cron_expr="30 * * * *")
    async with a_session(dsn, level=level, connection_class=Interposed) as session:
        assert isinstance(session, Interposed)
        session.after_read = meanwhile
        first = await sync(session, now, edited)
        second = await sync(session, now, edited)
    assert ((), ("s",)) == (first.outcomes, first.lost), "P20b: a lost edit is reported, not half done"
    assert ((), 1) == (second.lost, len(second.outcomes)), "and wins when it is tried again"
    assert "30 * * * *" == (await row_of(connection))["cron_expr"]
    fires = [] if rival in {"pause", "remove"} else every("2026-01-01 11:00")
    assert fires == await fires_of(connection), "P10, P13: 11:00 has one job, or none where it was held back"


@pytest.mark.parametrize("level", LEVELS)
async def test_an_edit_whose_snapshot_is_older_than_an_enqueue_is_lost(
    dsn: str, connection: Session, level: str
) -> None:
    await sync(connection, at("2026-01-01 10:00"), schedule())
    await connection.execute("SELECT pg_advisory_lock($1)", SCHEMA.sync_lock_key)
    async with a_session(dsn, level=level) as session:
        edit = asyncio.create_task(sync(session, at("2026-01-01 11:00:05"), schedule(cron_expr="30 * * * *")))
        await wait_until(lambda: waiting_sessions(connection), "the edit waits for the lock")
        assert await enqueue(connection, at("2026-01-01 11:00"), None)
        await connection.execute("SELECT pg_advisory_unlock($1)", SCHEMA.sync_lock_key)
        result = await edit
    assert ((), ("s",)) == (result.outcomes, result.lost), "P20b: the row is not as read"
    assert every("2026-01-01 11:00") == await fires_of(connection), "P10"


@pytest.mark.parametrize("level", LEVELS)
async def test_e04b_an_insert_that_waited_for_a_removal_knows_it(dsn: str, connection: Session, level: str) -> None:
    await connection.execute("SELECT pg_advisory_lock($1)", SCHEMA.sync_lock_key)
    async with a_session(dsn, level=level) as session:
        waiting = asyncio.create_task(sync(session, at("2026-01-01 10:30"), schedule()))
        await wait_until(lambda: waiting_sessions(connection), "the insert waits for the lock")
        await sync(connection, at("2026-01-01 10:00"), schedule())
        assert await enqueue(connection, at("2026-01-01 11:00"), None)
        await actions.remove(connection, SCHEMA, "s", clock=at("2026-01-01 11:01"))
        await connection.execute("SELECT pg_advisory_unlock($1)", SCHEMA.sync_lock_key)
        await waiting
        await sync(session, at("2026-01-01 10:30"), schedule())
    again = await enqueue(connection, at("2026-01-01 11:00"), None)
    assert not again, "E04b, P12: the clock stepped back, and 11:00 had its job before"


@pytest.mark.parametrize("level", LEVELS)
async def test_e04b_an_insert_waits_for_a_removal_that_is_under_way(
    dsn: str, connection: Session, level: str
) -> None:
    async with (
        a_session(dsn) as remover,
        a_session(dsn, level=level, connection_class=Interposed) as session,
    ):
        assert isinstance(session, Interposed)

        async def meanwhile() -> None:
            await sync(remover, at("2026-01-01 10:00"), schedule())
            assert await enqueue(remover, at("2026-01-01 11:00"), None)
            await remover.execute("BEGIN")
            assert await actions.remove(remover, SCHEMA, "s", clock=at("2026-01-01 11:01"))

        session.after_read = meanwhile
        inserting = asyncio.create_task(sync(session, at("2026-01-01 10:30"), schedule()))
        await wait_until(lambda: waiting_sessions(connection), "the insert waits")
        await remover.execute("COMMIT")
        await inserting
    assert at("2026-01-01 11:00") == (await row_of(connection))["anchored_at"], "E04b, P12: it knows the removal"


async def test_an_insert_that_meets_a_row_written_by_hand_is_lost_and_told(dsn: str, connection: Session) -> None:
    async with a_session(dsn) as hand, a_session(dsn) as session:
        await hand.execute("BEGIN")
        await write_row(hand, cron_expr="30 * * * *")
        inserting = asyncio.create_task(sync(session, at("2026-01-01 10:00"), schedule()))
        await wait_until(lambda: waiting_sessions(connection), "the insert waits for what cannot be seen yet")
        await hand.execute("COMMIT")
        result = await inserting
    assert ((), ("s",)) == (result.outcomes, result.lost)
    assert "30 * * * *" == (await row_of(connection))["cron_expr"], "P02: not written over unread"


async def test_an_edit_is_anchored_at_its_read(dsn: str, connection: Session) -> None:
    await write_row(connection)
    between: list[datetime] = []

    async def meanwhile() -> None:
        between.append(await connection.fetchval("SELECT clock_timestamp()"))

    async with a_session(dsn, connection_class=Interposed) as session:
        assert isinstance(session, Interposed)
        session.after_read = meanwhile
        await sync(session, None, schedule(cron_expr="30 * * * *"))
    row = await row_of(connection)
    assert row["anchored_at"] <= between[0] < row["updated_at"], "P20b: nothing due between the two is lost"
    (event,) = await events_of(connection, action="sync")
    assert row["anchored_at"] == event["clock"], "P35: an edit is told with the clock by which it settled"


async def test_an_insert_that_waited_is_anchored_when_it_is_written(dsn: str, connection: Session) -> None:
    await connection.execute("SELECT pg_advisory_lock($1)", SCHEMA.sync_lock_key)
    async with a_session(dsn) as session:
        waiting = asyncio.create_task(sync(session, None, schedule()))
        await wait_until(lambda: waiting_sessions(connection), "the insert waits for the lock")
        released = await connection.fetchval("SELECT clock_timestamp()")
        await connection.execute("SELECT pg_advisory_unlock($1)", SCHEMA.sync_lock_key)
        await waiting
    assert released < (await row_of(connection))["anchored_at"], "P20: not at the time when it began to wait"


async def test_e04b_a_removal_waits_for_a_sync_that_is_under_way(dsn: str, connection: Session) -> None:
    await write_row(connection)
    await connection.execute("SELECT pg_advisory_lock($1)", SCHEMA.sync_lock_key)
    async with a_session(dsn) as session:
        removing = asyncio.create_task(actions.remove(session, SCHEMA, "s"))
        await wait_until(lambda: waiting_sessions(connection) if not removing.done() else True, "it waits or ends")
        assert not removing.done(), "E04b, P12: a sync that has looked for removals misses none"
        await connection.execute("SELECT pg_advisory_unlock($1)", SCHEMA.sync_lock_key)
        assert await removing


async def test_a_sync_that_freezes_is_ended_and_leaves_no_timeout_behind(connection: Session) -> None:
    async with connection.transaction():
        await connection.execute(SCHEMA.statement("queries/hold_sync_lock"), SCHEMA.sync_lock_key)
        during = await connection.fetchval("SHOW idle_in_transaction_session_timeout")
    after = await connection.fetchval("SHOW idle_in_transaction_session_timeout")
    assert ("10s", "0") == (during, after), "P36: one frozen process does not keep the others from syncing"


@pytest.mark.parametrize(
    ("fires", "columns"),
    [
        (["2026-01-01 10:00"], {}),
        (["2026-01-01 09:00", "2026-01-01 11:00"], {}),
        (["2026-01-01 10:00"], {"last_enqueued_at": None, "anchored_at": at("2026-01-01 10:00")}),
        (["2026-01-01 11:00", "2026-01-01 13:00"], {}),
        (["2026-01-01 11:00"], {"paused_at": at("2026-01-01 10:30")}),
    ],
    ids=["same", "older", "at-anchor", "not-due", "paused"],
)
async def test_a_faulty_evaluator_cannot_settle_what_may_not_be_a_job(
    connection: Session, fires: list[str], columns: dict[str, Any]
) -> None:
    columns = {"last_enqueued_at": at("2026-01-01 10:00"), "anchored_at": at("2026-01-01 08:00")} | columns
    await write_row(connection, **columns)
    before = await row_of(connection)
    plan = rows.SyncPlan(row_version=before["xmin"], fires=tuple(every(*fires)))
    written = await connection.fetch(
        SCHEMA.statement("sync"),
        rows.definitions([schedule(cron_expr="30 * * * *")], {"s": plan}),
        at("2026-01-01 12:00"),
        "t",
        at("2026-01-01 12:00"),
    )
    assert ([], [], before) == (written, await fires_of(connection), await row_of(connection)), "P10, P11, P13, P19"


@pytest.mark.parametrize("level", LEVELS)
async def test_an_insert_that_somebody_else_made_first_is_lost_and_told(
    dsn: str, connection: Session, level: str
) -> None:
    async def meanwhile() -> None:
        await sync(connection, at("2026-01-01 10:00"), schedule(args={"by": "rival"}))

    async with a_session(dsn, level=level, connection_class=Interposed) as session:
        assert isinstance(session, Interposed)
        session.after_read = meanwhile
        mine = [schedule(args={"by": "me"}), schedule("t")]
        first = await sync(session, at("2026-01-01 10:01"), *mine)
        second = await sync(session, at("2026-01-01 10:02"), *mine)
    assert (["t"], ("s",)) == ([each.name for each in first.outcomes], first.lost), "P36"
    assert [("s", "updated")] == [(each.name, each.change) for each in second.outcomes]
    assert at("2026-01-01 10:00") == (await row_of(connection))["anchored_at"], "P20: anchored when it was inserted"


async def test_an_edit_of_a_held_row_is_lost_and_does_not_wait(dsn: str, connection: Session) -> None:
    await sync(connection, at("2026-01-01 10:00"), schedule("a"), schedule("b"))
    async with a_session(dsn) as holder:
        await holder.execute("BEGIN; SELECT 1 FROM awa.cron_jobs WHERE name = 'a' FOR UPDATE")
        edits = [schedule(name, "30 * * * *") for name in "ab"]
        async with asyncio.timeout(5):
            result = await sync(connection, at("2026-01-01 10:01"), *edits)
    assert (["b"], ("a",)) == ([each.name for each in result.outcomes], result.lost), "P36"


@pytest.mark.parametrize("level", LEVELS)
async def test_d10b_opposite_orders_do_not_deadlock(dsn: str, connection: Session, level: str) -> None:
    rounds = 30

    async def deploy(session: Session, names: str, mark: str) -> None:
        for i in range(rounds):
            remaining = [schedule(name, f"{i} * * * *", args={"by": mark}) for name in names]
            for _ in range(50):
                lost = (await sync(session, None, *remaining)).lost
                remaining = [each for each in remaining if each.name in lost]
                if not remaining:
                    break
            assert not remaining, "D10b: a lost race is won in the end"

    async with a_session(dsn, level=level) as one, a_session(dsn, level=level) as other:
        async with asyncio.timeout(30):
            await asyncio.gather(deploy(one, "ab", "one"), deploy(other, "ba", "other"))
    assert 0 == await deadlocks(connection), "D10b: names are written in sorted order"
    assert [f"{rounds - 1} * * * *"] * 2 == [(await row_of(connection, name))["cron_expr"] for name in "ab"]


async def test_a_lost_race_is_run_again_in_the_same_sync(dsn: str, connection: Session) -> None:
    await sync(connection, at("2026-01-01 10:00"), schedule())
    async with a_session(dsn) as holder, a_node(dsn, connection) as node:
        await holder.execute("BEGIN; SELECT 1 FROM awa.cron_jobs FOR UPDATE")

        async def soon() -> None:
            await asyncio.sleep(0.1)
            await holder.execute("ROLLBACK")

        releasing = asyncio.create_task(soon())
        await node.sync(at("2026-01-01 10:01"), schedule(cron_expr="30 * * * *"))
        await releasing
    assert "30 * * * *" == (await row_of(connection))["cron_expr"], "P04: not only at the next interval"


async def test_sync_gives_up_after_some_lost_races_and_says_so(
    dsn: str, connection: Session, caplog: pytest.LogCaptureFixture
) -> None:
    await sync(connection, at("2026-01-01 10:00"), schedule())
    async with a_session(dsn) as holder, a_node(dsn, connection) as node:
        await holder.execute("BEGIN; SELECT 1 FROM awa.cron_jobs FOR UPDATE")
        await node.sync(at("2026-01-01 10:01"), schedule(cron_expr="30 * * * *"))
        assert "0 * * * *" == (await row_of(connection))["cron_expr"]
        assert [["s"]] == [record.schedules for record in caplog.records if hasattr(record, "schedules")]
        await holder.execute("ROLLBACK")
        await node.sync(at("2026-01-01 10:02"), schedule(cron_expr="30 * * * *"))
    assert "30 * * * *" == (await row_of(connection))["cron_expr"], "P04: the next sync does it"
