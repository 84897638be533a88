"""What the actions are given: instants need a zone, frozen fires an order; and what their errors carry."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

import awa_cron
from awa_cron import actions, queue_actions
from awa_cron.errors import DatabaseError, InvalidArgument
from awa_cron.model import FrozenFires, ScheduleState
from awa_cron.sql import Schema
from tests.integration.support import (
    FIRE,
    NOW,
    Session,
    T,
    a_session,
    enqueue_next,
    fires_of,
    last_of,
    row_of,
    schedule,
    write_row,
)

SCHEMA = Schema()


Act = Callable[[Session], Awaitable[object]]


NAIVE = datetime(2026, 1, 1, 11)  # noqa: DTZ001
READ = ScheduleState(
    name="s",
    cron_expr="0 * * * *",
    timezone="UTC",
    missed_fire_policy="coalesce",
    last_enqueued_at=None,
    anchored_at=T,
    paused_at=None,
)


@pytest.mark.parametrize(
    "call",
    [
        lambda: awa_cron.next_fires("* * * * *", "UTC", after=NAIVE, count=1),
        lambda: awa_cron.previous_fires("* * * * *", "UTC", before=NAIVE, count=1),
        lambda: list(awa_cron.due_fires("* * * * *", "UTC", after=NAIVE, until=NOW)),
        lambda: list(awa_cron.due_fires("* * * * *", "UTC", after=T, until=NAIVE)),
        lambda: FrozenFires(read=dataclasses.replace(READ, last_enqueued_at=NAIVE), fires=(FIRE,)),
        lambda: FrozenFires(read=dataclasses.replace(READ, anchored_at=NAIVE), fires=(FIRE,)),
        lambda: FrozenFires(read=READ, fires=(NAIVE,)),
        lambda: FrozenFires(read=READ, fires=(FIRE,), read_at=NAIVE),
        lambda: FrozenFires(read=READ, fires=(FIRE,), next_fire_at=NAIVE),
    ],
    ids=["next", "previous", "due-after", "due-until", "last", "anchor", "fire", "read", "next-fire"],
)
def test_d04_a_naive_datetime_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgument, match="aware datetime"):
        call()


@pytest.mark.parametrize("fire", ["2026-01-01T12:00:00Z", None, 0])
def test_a_fire_that_is_no_datetime_is_refused(fire: Any) -> None:
    with pytest.raises(InvalidArgument, match="fire must be a datetime, not "):
        FrozenFires(read=READ, fires=(fire,))


@pytest.mark.parametrize(
    "call",
    [
        lambda session: actions.read_cron_state(session, SCHEMA, clock=NAIVE),
        lambda session: enqueue_next(session, now=NAIVE),
        lambda session: actions.pause(session, SCHEMA, "s", clock=NAIVE),
        lambda session: actions.resume(session, SCHEMA, "s", clock=NAIVE),
        lambda session: actions.trigger(session, SCHEMA, "s", clock=NAIVE),
        lambda session: actions.remove(session, SCHEMA, "s", clock=NAIVE),
        lambda session: actions.sync(session, SCHEMA, [schedule()], actor="t", pass_limit=1, clock=NAIVE),
        lambda session: queue_actions.rescue(session, SCHEMA, silent_for_s=1, clock=NAIVE),
        lambda session: queue_actions.claim(
            session, SCHEMA, kinds=["work"], queues=None, limit=1, worker="w", clock=NAIVE
        ),
    ],
    ids=["read", "enqueue", "pause", "resume", "trigger", "remove", "sync", "rescue", "claim"],
)
async def test_d04_a_naive_clock_is_refused(connection: Session, call: Act) -> None:
    await write_row(connection, last_enqueued_at=T)
    before = await row_of(connection)
    with pytest.raises(InvalidArgument, match="clock is"):
        await call(connection)
    assert before == await row_of(connection), "D04: refused before anything is done"


async def test_d04_a_client_with_a_naive_clock_is_refused(dsn: str, connection: Session) -> None:
    await write_row(connection)
    async with awa_cron.Client(dsn, clock=lambda: NAIVE) as client:
        with pytest.raises(InvalidArgument, match="aware datetime"):
            await client.pause("s")


async def test_d04_clocks_of_other_zones_mean_the_same_instant(connection: Session) -> None:
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    await write_row(connection, last_enqueued_at=T)
    tokyo = ZoneInfo("Asia/Tokyo")
    assert await enqueue_next(
        connection, FIRE.astimezone(tokyo), expected=T.astimezone(tokyo), now=NOW.astimezone(tokyo)
    )
    assert [FIRE] == [fire.astimezone(UTC) for fire in await fires_of(connection)]


@pytest.mark.parametrize("fires", [(), (FIRE, T), (T, T), (FIRE.replace(microsecond=1),)], ids=str)
def test_p30_frozen_fires_are_ascending_whole_seconds(fires: tuple[datetime, ...]) -> None:
    with pytest.raises(InvalidArgument):
        FrozenFires(read=READ, fires=fires)


async def test_errors_carry_the_drivers_cause(dsn: str, connection: Session) -> None:
    await connection.execute("DROP TABLE awa.cron_events")
    await write_row(connection, last_enqueued_at=T)
    acts: list[Act] = [
        lambda session: actions.acquire_leader(session, SCHEMA, actor="t"),
        enqueue_next,
        lambda session: actions.pause(session, SCHEMA, "s"),
        lambda session: actions.trigger(session, SCHEMA, "s"),
        lambda session: actions.remove(session, SCHEMA, "s"),
        lambda session: actions.sync(session, SCHEMA, [schedule("new")], actor="t", pass_limit=1),
    ]
    for act in acts:
        async with a_session(dsn) as session:
            with pytest.raises(DatabaseError) as caught:
                await act(session)
        assert isinstance(caught.value.__cause__, asyncpg.UndefinedTableError)
    assert T == await last_of(connection), "P09: and nothing was done"
