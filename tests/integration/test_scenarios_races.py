"""Several sessions at once, at every isolation level: one job per fire, and a lost race is a return value."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import pytest

from awa_cron import actions, firing, queue_actions
from awa_cron.errors import DatabaseError
from awa_cron.model import FrozenFires
from awa_cron.sql import Schema
from tests.integration.support import (
    FIRE,
    LEVELS,
    NOW,
    Session,
    T,
    a_session,
    at,
    deadlocks,
    enqueue,
    enqueue_next,
    every,
    fires_of,
    freeze,
    last_of,
    schedule,
    wait_until,
    waiting_sessions,
    write_row,
)

SCHEMA = Schema()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("last", [T, None], ids=["last", "null"])
async def test_d01_two_sessions_at_once_make_one_job(
    dsn: str, connection: Session, level: str, last: datetime | None
) -> None:
    await write_row(connection, last_enqueued_at=last, anchored_at=T)
    async with a_session(dsn, level=level) as one, a_session(dsn, level=level) as other:
        first = one.transaction()
        await first.start()
        won = await enqueue_next(one, expected=last)
        async with asyncio.timeout(5):
            while_held = await enqueue_next(other, expected=last)
        await first.commit()
        after = await enqueue_next(other, expected=last)
    assert (True, False, False) == (won, while_held, after), "D01, D03, P10: rows 1 and 0"
    assert [FIRE] == await fires_of(connection), "D01, P10: one job"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("last", [T, None], ids=["last", "null"])
async def test_d01_many_sessions_at_once_make_one_job_per_fire(
    dsn: str, connection: Session, level: str, last: datetime | None
) -> None:
    rounds, rivals = 20, 4
    fires = [T + timedelta(minutes=i) for i in range(1, rounds + 1)]
    await write_row(connection, last_enqueued_at=last, anchored_at=T)
    sessions = [await asyncpg.connect(dsn) for _ in range(rivals)]
    for session in sessions:
        await session.execute("SELECT set_config('default_transaction_isolation', $1, false)", level)
    wins = []
    expected = last
    for fire in fires:
        outcomes = await asyncio.gather(*(enqueue(each, fire, expected) for each in sessions))
        wins.append(sum(outcomes))
        expected = fire
    for session in sessions:
        session.terminate()
    assert [1] * rounds == wins, "D01, D03, P10: every round has one winner, and nobody gets an error"
    assert fires == await fires_of(connection), "D01, P10: one job per fire"


@pytest.mark.parametrize("fire", every("2026-01-01 10:00", "2026-01-01 09:59:59"), ids=["same", "older"])
async def test_d02_fires_only_move_forward(connection: Session, fire: datetime) -> None:
    await write_row(connection, last_enqueued_at=T, anchored_at=at("2026-01-01 00:00"))
    won = await enqueue_next(connection, fire, expected=T)
    assert (False, T, []) == (won, await last_of(connection), await fires_of(connection)), "D02, P11"


async def test_d02_every_fire_of_a_catch_up_pass_moves_forward(connection: Session) -> None:
    await write_row(connection, last_enqueued_at=T, anchored_at=at("2026-01-01 00:00"))
    frozen = await freeze(connection, T, FIRE, expected=T)
    won = await actions.atomic_enqueue(connection, SCHEMA, [frozen], actor="t", clock=NOW)
    assert ({}, T) == (won, await last_of(connection)), "D02, P11: the oldest of them counts"


@pytest.mark.parametrize("last", [T, None], ids=["last", "null"])
async def test_d02_the_value_read_must_still_be_there(connection: Session, last: datetime | None) -> None:
    await write_row(connection, last_enqueued_at=last, anchored_at=T)
    stale = [None, T - timedelta(hours=1), T + timedelta(microseconds=1)] if last else [T]
    outcomes = [await enqueue_next(connection, expected=value) for value in stale]
    assert [False] * len(stale) == outcomes, "P10: compare-and-swap on exactly what was read"
    assert await enqueue_next(connection, expected=last)


async def test_d02_a_last_of_microseconds_is_compared_as_read(connection: Session) -> None:
    by_hand = at("2026-01-01 10:00:00.123456")
    await write_row(connection, last_enqueued_at=by_hand)
    state = await actions.read_cron_state(connection, SCHEMA, clock=NOW)
    frozen, *_ = firing.freeze(state.schedules, NOW, 100)
    won = await actions.atomic_enqueue(connection, SCHEMA, frozen, actor="t", clock=NOW)
    assert {"s"} == won.keys(), "D04: the value is passed exactly as read"


@pytest.mark.parametrize(
    ("fire", "columns", "why"),
    [
        (FIRE, {"anchored_at": FIRE}, "P20: not at the anchor"),
        (FIRE, {"anchored_at": FIRE + timedelta(seconds=1)}, "P20: not before the anchor"),
        (FIRE, {"anchored_at": T, "paused_at": T}, "P13: not while paused"),
        (NOW + timedelta(seconds=1), {"anchored_at": T}, "P19: not before it is due"),
    ],
    ids=["anchor", "before-anchor", "paused", "early"],
)
@pytest.mark.parametrize("last", [T, None], ids=["last", "null"])
async def test_each_guard_holds_the_write_back(
    connection: Session, fire: datetime, columns: dict[str, Any], why: str, last: datetime | None
) -> None:
    await write_row(connection, last_enqueued_at=last, **columns)
    won = await enqueue_next(connection, fire, expected=last)
    assert (False, last, []) == (won, await last_of(connection), await fires_of(connection)), why


@pytest.mark.parametrize(
    "change",
    [
        {"cron_expr": "0 11 * * *"},
        {"timezone": "Etc/GMT"},
        {"missed_fire_policy": "catch_up"},
        {"anchored_at": T - timedelta(hours=1)},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("last", [T, None], ids=["last", "null"])
async def test_p20_the_definition_must_still_be_as_read(
    connection: Session, change: dict[str, Any], last: datetime | None
) -> None:
    await write_row(connection, last_enqueued_at=last, anchored_at=T)
    read = await freeze(connection, FIRE, expected=last)
    ((column, value),) = change.items()
    await connection.execute(f"UPDATE awa.cron_jobs SET {column} = $1", value)
    stale = await actions.atomic_enqueue(connection, SCHEMA, [read], actor="t", clock=NOW)
    assert ({}, last) == (stale, await last_of(connection)), "P20: the fire still fits, but nobody has asked"
    assert await enqueue_next(connection, expected=last), "the next pass reads the new definition"


async def test_p16_p19_a_fire_due_at_this_very_instant_is_due(connection: Session) -> None:
    await write_row(connection, last_enqueued_at=T)
    assert await enqueue_next(connection, FIRE, now=FIRE), "P08, P19: due means at or before the clock"


async def test_p19_the_newest_fire_of_a_pass_must_be_due(connection: Session) -> None:
    await write_row(connection, last_enqueued_at=T)
    frozen = await freeze(connection, FIRE, NOW + timedelta(seconds=1), expected=T)
    assert {} == await actions.atomic_enqueue(connection, SCHEMA, [frozen], actor="t", clock=NOW), "P19"


@pytest.mark.parametrize("level", LEVELS[1:])
async def test_d03_a_loser_with_an_old_snapshot_gets_a_lost_race(dsn: str, connection: Session, level: str) -> None:
    await write_row(connection, last_enqueued_at=T)
    async with a_session(dsn, level=level) as loser:
        await loser.execute("BEGIN")
        await loser.fetch("SELECT * FROM awa.cron_jobs")
        assert await enqueue_next(connection)
        outcome = await enqueue_next(loser)
        await loser.execute("ROLLBACK")
        later = at("2026-01-01 12:00")
        goes_on = await enqueue_next(loser, later, expected=FIRE, now=later)
    assert (False, True) == (outcome, goes_on), "D03: SQLSTATE 40001 is a lost race, the pass goes on"
    assert [FIRE, later] == await fires_of(connection), "D03, P10"


@pytest.mark.parametrize("level", LEVELS)
async def test_every_action_works_at_every_level(dsn: str, connection: Session, level: str) -> None:
    async with a_session(dsn, level=level) as session:

        async def sync(cron_expr: str, now: str) -> list[str]:
            result = await actions.sync(
                session, SCHEMA, [schedule(cron_expr=cron_expr)], actor="t", pass_limit=9, clock=at(now)
            )
            return [outcome.change for outcome in result.outcomes]

        led = await actions.acquire_leader(session, SCHEMA, actor="t")
        outcomes = [
            led.holds_lock,
            (await actions.ping_leader(session, SCHEMA)).holds_lock,
            await sync("0 * * * *", "2026-01-01 10:00"),
            await enqueue_next(session, expected=None),
            await actions.pause(session, SCHEMA, "s", by="ops"),
            len((await actions.read_cron_state(session, SCHEMA)).schedules),
            await actions.resume(session, SCHEMA, "s"),
            (await actions.trigger(session, SCHEMA, "s")) is not None,
            await sync("30 * * * *", "2026-01-01 12:00"),
            await sync("30 * * * *", "2026-01-01 12:01"),
            await actions.remove(session, SCHEMA, "s"),
            await actions.lose_leader(session, SCHEMA, actor="t"),
        ]
    expected = [True, True, ["inserted"], True, True, 0, True, True, ["redefined"], [], True, True]
    assert expected == outcomes, "DESIGN 8: the same at every isolation level"
    assert every("2026-01-01 11:00", "2026-01-01 12:00") == await fires_of(connection)


Act = Callable[[Session], Awaitable[object]]


OPERATOR_ACTIONS: dict[str, tuple[Act, object]] = {
    "pause": (lambda session: actions.pause(session, SCHEMA, "s"), True),
    "resume": (lambda session: actions.resume(session, SCHEMA, "s"), False),
    "remove": (lambda session: actions.remove(session, SCHEMA, "s"), True),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("action", OPERATOR_ACTIONS)
async def test_an_operator_waits_for_an_enqueue_and_then_wins(
    dsn: str, connection: Session, level: str, action: str
) -> None:
    act, expected = OPERATOR_ACTIONS[action]
    await write_row(connection, last_enqueued_at=T)
    async with a_session(dsn, level=level) as leader, a_session(dsn, level=level) as operator:
        await leader.execute("BEGIN")
        assert await enqueue_next(leader)
        acting = asyncio.ensure_future(act(operator))
        await wait_until(lambda: waiting_sessions(connection), f"{action} waits for the row")
        await leader.execute("COMMIT")
        async with asyncio.timeout(5):
            outcome = await acting
    assert expected == outcome, "D03: an operator's action is not an error because the leader was first"
    assert [FIRE] == await fires_of(connection)


async def test_a_race_lost_in_the_callers_transaction_is_told_as_such(dsn: str, connection: Session) -> None:
    await write_row(connection, last_enqueued_at=T)
    async with a_session(dsn, level="repeatable read") as operator:
        await operator.execute("BEGIN")
        await operator.fetch("SELECT * FROM awa.cron_jobs")
        assert await enqueue_next(connection)
        with pytest.raises(DatabaseError) as caught:
            await actions.pause(operator, SCHEMA, "s")
    assert isinstance(caught.value.__cause__, asyncpg.SerializationError), "D03: only the caller can start again"


async def test_an_action_that_was_ended_as_a_deadlock_is_done_after_all(dsn: str, connection: Session) -> None:
    await write_row(connection)
    async with a_session(dsn) as operator, a_session(dsn) as other:
        await operator.execute("SET deadlock_timeout = '300ms'")
        await other.execute("SET deadlock_timeout = '60s'")
        await other.execute("BEGIN; SELECT 1 FROM awa.cron_jobs FOR UPDATE")
        removing = asyncio.create_task(actions.remove(operator, SCHEMA, "s"))
        await wait_until(lambda: waiting_sessions(connection), "the removal has its lock and waits for the row")
        async with asyncio.timeout(10):
            await other.execute("SELECT pg_advisory_xact_lock($1)", SCHEMA.sync_lock_key)
            await other.execute("COMMIT")
            assert await removing, "D03: an operator's action is not an error because somebody else was first"
    assert 1 == await deadlocks(connection)


@pytest.mark.parametrize("level", LEVELS)
async def test_p13_a_pause_between_read_and_write_holds_the_fire(dsn: str, connection: Session, level: str) -> None:
    await write_row(connection, last_enqueued_at=T)
    async with a_session(dsn, level=level) as leader:
        state = await actions.read_cron_state(leader, SCHEMA, clock=NOW)
        frozen, *_ = firing.freeze(state.schedules, NOW, 100)
        assert ["s"] == [each.name for each in frozen]
        await actions.pause(connection, SCHEMA, "s", by="ops")
        won = await actions.atomic_enqueue(leader, SCHEMA, frozen, actor="t", clock=NOW)
    assert ({}, [], T) == (won, await fires_of(connection), await last_of(connection)), "P13"


async def test_p10_a_stale_leader_does_no_harm(dsn: str, connection: Session) -> None:
    await write_row(connection, last_enqueued_at=T)
    state = await actions.read_cron_state(connection, SCHEMA, clock=NOW)
    frozen, *_ = firing.freeze(state.schedules, NOW, 100)
    async with a_session(dsn) as new_leader:
        assert await enqueue_next(new_leader)
        later = at("2026-01-01 12:00")
        assert await enqueue_next(new_leader, later, expected=FIRE, now=later)
    won = await actions.atomic_enqueue(connection, SCHEMA, frozen, actor="stale", clock=later)
    assert ({}, [FIRE, later]) == (won, await fires_of(connection)), "P07, P10"


async def test_opposite_batches_do_not_deadlock(dsn: str, connection: Session) -> None:
    names = [f"s{i:03}" for i in range(150)]
    for name in names:
        await write_row(connection, name, last_enqueued_at=T)
    minutes = [T + timedelta(minutes=i) for i in range(1, 21)]

    async def lead(session: Session, order: list[str]) -> None:
        for fire in minutes:
            read = {each.name: each for each in (await actions.read_cron_state(session, SCHEMA)).schedules}
            batch = [FrozenFires(read=read[name], fires=(fire,)) for name in order]
            await actions.atomic_enqueue(session, SCHEMA, batch, actor="t", clock=fire)

    async with a_session(dsn) as one, a_session(dsn) as other:
        await asyncio.gather(lead(one, names), lead(other, names[::-1]))
    doubled = await connection.fetchval(
        "SELECT count(*) FROM (SELECT 1 FROM awa.jobs GROUP BY metadata HAVING count(*) > 1) AS twice"
    )
    assert (0, 0) == (doubled, await deadlocks(connection)), (
        "P10, DESIGN 9: rows are locked in the order of their names"
    )


async def test_an_event_is_written_with_its_action_or_not_at_all(dsn: str, connection: Session) -> None:
    await write_row(connection, last_enqueued_at=T)
    async with a_session(dsn) as session:
        await session.execute("BEGIN")
        assert await enqueue_next(session)
        await session.execute("ROLLBACK")
    assert await enqueue_next(connection)
    assert not await enqueue_next(connection)
    rows = await connection.fetch(
        "SELECT action, fires, job_ids, last_enqueued_at, (details ->> 'expected')::timestamptz"
        " FROM awa.cron_events"
    )
    jobs = [row["id"] for row in await connection.fetch("SELECT id FROM awa.jobs")]
    expected = ("atomic_enqueue", [FIRE], jobs, FIRE, T)
    assert [expected] == [tuple(row) for row in rows], "P35: one event, of the winner, with what it had read"


@pytest.mark.parametrize("level", LEVELS)
async def test_workers_share_jobs_without_errors(dsn: str, connection: Session, level: str) -> None:
    await write_row(connection)
    for _ in range(60):
        await actions.trigger(connection, SCHEMA, "s")
    taken: list[int] = []

    async def work(session: Session, name: str) -> None:
        idle = 0
        while idle < 3:
            jobs = await queue_actions.claim(session, SCHEMA, kinds=["work"], queues=None, limit=7, worker=name)
            idle = 0 if jobs else idle + 1
            taken.extend(job.id for job in jobs)
            await queue_actions.heartbeat(session, SCHEMA, [(job.id, job.attempt) for job in jobs], worker=name)
            for job in jobs:
                settled = await queue_actions.finish(session, SCHEMA, [job], worker=name)
                while settled.held:
                    # A claim that saw the job waiting locks its row for a moment, and then leaves it alone.
                    await asyncio.sleep(0.01)
                    settled = await queue_actions.finish(session, SCHEMA, [job], worker=name)
                assert settled.written, "nobody else owns what this worker has claimed"

    async with AsyncExitStack() as open_sessions:
        sessions = [await open_sessions.enter_async_context(a_session(dsn, level=level)) for _ in range(4)]
        await asyncio.gather(*(work(session, f"w{i}") for i, session in enumerate(sessions)))
    assert sorted(set(taken)) == sorted(taken), "each job is claimed once"
    states = await connection.fetch("SELECT state, count(*)::int FROM awa.jobs GROUP BY state")
    assert [("completed", 60)] == [tuple(row) for row in states]
