"""A pass reads what is due, not what exists: next fires are never late, whoever writes the row."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from datetime import UTC, datetime, timedelta

import pytest

from awa_cron import actions, cronexpr, firing
from awa_cron.actions import Page
from awa_cron.database import Database
from awa_cron.errors import StoredScheduleInvalid, UnknownTimezone
from awa_cron.model import NEVER, Kind
from awa_cron.scheduler import Scheduler
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from tests.integration.support import (
    HASTY,
    Session,
    a_node,
    a_session,
    at,
    every,
    fires_of,
    row_of,
    running,
    schedule,
    sync,
    wait_until,
    write_row,
)

SCHEMA = Schema()
NOON = at("2026-01-01 12:00")


async def read(session: Session, kind: Kind, now: datetime, **page: object) -> list[str]:
    """Return the names that a pass reads."""
    found = await actions.read_cron_state(session, SCHEMA, Page(kind=kind, **page), clock=now)  # type: ignore[arg-type]
    return [each.name for each in found.schedules]


async def known(session: Session, name: str) -> bool:
    return await next_of(session, name) is not None


def a_leader(database: Database) -> Scheduler:
    return Scheduler(database, lambda: (), "leader")


async def next_of(session: Session, name: str = "s") -> datetime | None:
    found: datetime | None = (await row_of(session, name))["next_fire_at"]
    return found


async def test_registering_works_out_the_next_fire(connection: Session) -> None:
    await sync(connection, NOON, schedule(), schedule("later", "0 0 29 2 *"))
    assert at("2026-01-01 13:00") == await next_of(connection)
    assert at("2028-02-29 00:00") == await next_of(connection, "later")
    assert [] == await read(connection, Kind.DUE, at("2026-01-01 12:59:59"))
    assert ["s"] == await read(connection, Kind.DUE, at("2026-01-01 13:00")), "due is due, to the second"
    assert [] == await read(connection, Kind.UNKNOWN, NOON)


async def test_an_enqueue_leaves_the_fire_that_follows(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(NOON, schedule())
        await node.evaluate(at("2026-01-01 15:20"))
    assert every("2026-01-01 15:00") == await fires_of(connection)
    assert at("2026-01-01 16:00") == await next_of(connection)


async def test_what_the_limit_of_a_pass_leaves_over_is_due_at_once(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection, pass_limit=2) as node:
        await node.sync(NOON, schedule(missed_fire_policy="catch_up"))
        await node.evaluate(at("2026-01-01 15:20"))
        assert at("2026-01-01 15:00") == await next_of(connection)
        assert ["s"] == await read(connection, Kind.DUE, at("2026-01-01 15:20"))
        await node.evaluate(at("2026-01-01 15:20"))
    assert every("2026-01-01 13:00", "2026-01-01 14:00", "2026-01-01 15:00") == await fires_of(connection)
    assert at("2026-01-01 16:00") == await next_of(connection)


async def test_an_edit_works_out_the_new_next_fire_and_an_unchanged_sync_keeps_it(connection: Session) -> None:
    await sync(connection, NOON, schedule())
    await sync(connection, at("2026-01-01 12:10"), schedule(cron_expr="30 * * * *"))
    assert at("2026-01-01 12:30") == await next_of(connection)
    await sync(connection, at("2026-01-01 12:20"), schedule(cron_expr="30 * * * *", priority=1))
    assert at("2026-01-01 12:30") == await next_of(connection), "only the priority is another"


async def test_an_insert_behind_the_clock_that_was_read_leaves_the_next_fire_unknown(connection: Session) -> None:
    async def planned(at_clock: datetime) -> None:
        """Read at noon, and write when the clock says something else."""
        text = SCHEMA.statement("sync")
        definition = (
            '[{"name":"s","cron_expr":"0 * * * *","timezone":"UTC","kind":"work","queue":"default","args":{},'
            '"priority":2,"max_attempts":25,"tags":[],"metadata":{},"missed_fire_policy":"coalesce",'
            '"row_version":null,"fires":[],"next_fire_at":"2026-01-01 13:00:00+00"}]'
        )
        await connection.execute("DELETE FROM awa.cron_jobs")
        await connection.fetch(text, definition, NOON, "t", at_clock)

    await planned(at("2026-01-01 11:59"))
    assert await next_of(connection) is None, "a fire at noon would be missed"
    await planned(NOON)
    assert at("2026-01-01 13:00") == await next_of(connection)


@pytest.mark.parametrize(
    "change",
    [
        "cron_expr = '*/5 * * * *'",
        "timezone = 'Asia/Kolkata'",
        "anchored_at = '2026-01-01 08:00Z'",
        "last_enqueued_at = '2026-01-01 09:00Z'",
        "missed_fire_policy = 'catch_up'",
    ],
)
async def test_what_is_changed_by_hand_is_evaluated_anew(dsn: str, connection: Session, change: str) -> None:
    await sync(connection, NOON, schedule())
    await connection.execute(f"UPDATE awa.cron_jobs SET {change}")
    assert await next_of(connection) is None
    assert ["s"] == await read(connection, Kind.UNKNOWN, NOON)
    async with a_node(dsn, connection) as node:
        node.now = at("2026-01-01 06:00")  # when nothing is due
        await node.scheduler.evaluate(Kind.UNKNOWN)
    [state] = (await actions.read_cron_state(connection, SCHEMA, clock=NOON)).schedules
    assert state.next_fire_at is not None
    assert firing.freeze([state], at("2026-01-01 06:00"), 1).noted == [], "it follows from the row"


@pytest.mark.parametrize("change", ["kind = 'other'", "priority = 1", "paused_at = now()", "updated_at = now()"])
async def test_what_the_next_fire_does_not_depend_on_leaves_it(connection: Session, change: str) -> None:
    await sync(connection, NOON, schedule())
    await connection.execute(f"UPDATE awa.cron_jobs SET {change}")
    assert at("2026-01-01 13:00") == await next_of(connection)


async def test_a_paused_schedule_is_read_when_it_is_resumed(connection: Session) -> None:
    await sync(connection, NOON, schedule())
    await actions.pause(connection, SCHEMA, "s")
    assert [] == await read(connection, Kind.DUE, at("2026-01-01 14:10"))
    await actions.resume(connection, SCHEMA, "s")
    assert ["s"] == await read(connection, Kind.DUE, at("2026-01-01 14:10"))


@pytest.mark.parametrize(
    "meanwhile",
    [
        "cron_expr = '*/5 * * * *'",
        "timezone = 'Asia/Kolkata'",
        "anchored_at = '2025-01-01 08:00Z'",
        "last_enqueued_at = '2025-01-01 09:00Z'",
        "missed_fire_policy = 'catch_up'",
    ],
)
async def test_a_note_of_a_row_that_was_changed_since_is_dropped(connection: Session, meanwhile: str) -> None:
    last = at("2026-01-01 12:00")
    await write_row(connection, last_enqueued_at=last, anchored_at=last)
    state = await actions.read_cron_state(connection, SCHEMA, Page(kind=Kind.UNKNOWN), clock=NOON)
    noted = firing.freeze(state.schedules, NOON, 1).noted
    assert [at("2026-01-01 13:00")] == [each.next_fire_at for each in noted]
    await connection.execute(f"UPDATE awa.cron_jobs SET {meanwhile}")
    assert () == await actions.note_next(connection, SCHEMA, noted)
    assert await next_of(connection) is None


async def test_a_note_is_no_event_and_no_change(connection: Session) -> None:
    await write_row(connection, anchored_at=NOON)
    before = await row_of(connection)
    state = await actions.read_cron_state(connection, SCHEMA, clock=NOON)
    assert ("s",) == await actions.note_next(connection, SCHEMA, firing.freeze(state.schedules, NOON, 1).noted)
    after = await row_of(connection)
    derived = {"next_fire_at", "xmin", "ctid"}
    assert {k: v for k, v in before.items() if k not in derived} == {
        k: v for k, v in after.items() if k not in derived
    }
    assert 0 == await connection.fetchval("SELECT count(*) FROM awa.cron_events")


async def test_a_row_that_somebody_holds_is_noted_later(dsn: str, connection: Session) -> None:
    await write_row(connection, anchored_at=NOON)
    state = await actions.read_cron_state(connection, SCHEMA, clock=NOON)
    noted = firing.freeze(state.schedules, NOON, 1).noted
    async with a_session(dsn) as other, other.transaction():
        await other.execute("SELECT FROM awa.cron_jobs FOR UPDATE")
        assert () == await asyncio.wait_for(actions.note_next(connection, SCHEMA, noted), 5)
    assert ("s",) == await actions.note_next(connection, SCHEMA, noted)


async def test_pages_bring_every_schedule_once_and_what_is_due_longest_first(connection: Session) -> None:
    names = [f"n{i:02}" for i in range(10)]
    for place, name in enumerate(names):
        await write_row(connection, name, anchored_at=NOON - timedelta(hours=place % 3))
    for kind in (Kind.UNKNOWN, Kind.ALL):
        assert names == await paged(connection, kind)
    state = await actions.read_cron_state(connection, SCHEMA, clock=NOON - timedelta(hours=3))
    noted = firing.freeze(state.schedules, NOON - timedelta(hours=3), 1).noted
    assert len(names) == len(await actions.note_next(connection, SCHEMA, noted))
    assert sorted(names, key=lambda name: (-(int(name[1:]) % 3), name)) == await paged(connection, Kind.DUE)
    assert [] == await read(connection, Kind.UNKNOWN, NOON)


async def paged(session: Session, kind: Kind) -> list[str]:
    """Read page by page, three at a time, when everything is due."""
    names, after = [], None
    while True:
        page = Page(kind=kind, after=after, size=3)
        found = await actions.read_cron_state(session, SCHEMA, page, clock=NOON + timedelta(hours=2))
        names += [each.name for each in found.schedules]
        if len(found.schedules) < 3:
            return names
        after = found.schedules[-1]


async def test_what_schedules_share_and_what_is_their_own(connection: Session) -> None:
    names = [f"n{i:02}" for i in range(24)]
    for number, name in enumerate(names):
        await write_row(
            connection,
            name,
            ("0 * * * *", "30 * * * *")[number % 2],
            missed_fire_policy=("coalesce", "catch_up")[number // 2 % 2],
            last_enqueued_at=(None, NOON, NOON + timedelta(minutes=30))[number // 4 % 3],
            anchored_at=NOON - timedelta(minutes=number % 5),
        )
    now = NOON + timedelta(hours=2)
    assert names == await paged(connection, Kind.ALL)
    state = await actions.read_cron_state(connection, SCHEMA, clock=now)
    assert names == [each.name for each in state.schedules]
    for each in state.schedules:
        row = await row_of(connection, each.name)
        assert all(row[field] == value for field, value in dataclasses.asdict(each).items()), each.name
    frozen = firing.freeze(state.schedules, now, 100).frozen
    assert set(names) == set(await actions.atomic_enqueue(connection, SCHEMA, frozen, actor="t", clock=now))
    for number, each in enumerate(state.schedules):
        after = max(each.last_enqueued_at or each.anchored_at, each.anchored_at)
        due = list(cronexpr.due_fires(each.cron_expr, "UTC", after=after, until=now))
        assert (due if number // 2 % 2 else due[-1:]) == await fires_of(connection, each.name)


async def test_a_zone_that_there_is_not_is_looked_for_once_and_not_in_every_pass(
    connection: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write_row(connection, timezone="Mars/Olympus_Mons")
    [state] = (await actions.read_cron_state(connection, SCHEMA, clock=NOON)).schedules
    looked: list[str] = []

    def zone(name: str) -> None:
        looked.append(name)
        raise UnknownTimezone(name)

    monkeypatch.setattr(cronexpr, "zone", zone)
    for number in range(3):
        assert 1 == len(firing.freeze([state], NOON + timedelta(seconds=number), 1).broken)
    assert ["Mars/Olympus_Mons"] == looked


async def test_a_pass_of_many_pages_enqueues_all(dsn: str, connection: Session) -> None:
    await sync(connection, NOON, *(schedule(f"n{i:02}") for i in range(23)))
    async with Database(dsn, SCHEMA, Settings(), pool_size=3) as database:
        scheduler = Scheduler(database, lambda: (), "node", lambda: at("2026-01-01 13:00:01"))
        for kind in (Kind.DUE, Kind.ALL):
            await scheduler._evaluator.make_pass(kind, page_size=5)
    assert 23 == await connection.fetchval("SELECT count(*) FROM awa.jobs")
    assert 23 == await connection.fetchval("SELECT count(DISTINCT metadata ->> 'cron_name') FROM awa.jobs")


async def test_a_schedule_without_another_fire_is_never_due(connection: Session) -> None:
    """Until the year 9947 every expression that is accepted fires again; a row may be anchored later by hand."""
    await write_row(connection, anchored_at=at("9990-01-01 00:00"))
    state = await actions.read_cron_state(connection, SCHEMA, clock=NOON)
    noted = firing.freeze(state.schedules, NOON, 1).noted
    assert [NEVER] == [each.next_fire_at for each in noted]
    await actions.note_next(connection, SCHEMA, noted)
    assert "infinity" == await connection.fetchval("SELECT next_fire_at::text FROM awa.cron_jobs")
    assert NEVER == (await actions.read_cron_state(connection, SCHEMA, clock=NOON)).schedules[0].next_fire_at
    assert [] == firing.freeze((await actions.read_cron_state(connection, SCHEMA)).schedules, NOON, 1).noted
    assert [] == await read(connection, Kind.DUE, at("9999-01-01 00:00"))


async def test_a_leader_learns_what_is_unknown(dsn: str, connection: Session) -> None:
    await write_row(connection, "0 aware", "0 0 1 1 *", anchored_at=datetime.now(UTC))
    async with Database(dsn, SCHEMA, HASTY, pool_size=4) as database, running(a_leader(database).run()):
        await wait_until(lambda: known(connection, "0 aware"), "the first sweep has come by")
        await write_row(connection, "s", "0 0 1 1 *", anchored_at=datetime.now(UTC))
        await wait_until(lambda: known(connection, "s"), "it is known long before the next sweep")


async def test_a_leader_sweeps_what_is_wrong(dsn: str, connection: Session) -> None:
    now = datetime.now(UTC)
    await write_row(connection, "s", "0 0 1 1 *", anchored_at=now, next_fire_at=at("9000-01-01 00:00"))

    async def right() -> bool:
        return await next_of(connection) == cronexpr.next_fires("0 0 1 1 *", "UTC", after=now, count=1)[0]

    async with Database(dsn, SCHEMA, HASTY, pool_size=4) as database, running(a_leader(database).run()):
        await wait_until(right, "what another release had written far too late is right")


async def test_two_due_fires_are_two_jobs(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(NOON, schedule(missed_fire_policy="catch_up"))
        await node.evaluate(at("2026-01-01 14:00"))
    assert every("2026-01-01 13:00", "2026-01-01 14:00") == await fires_of(connection)


async def test_a_row_that_cannot_be_read_is_reported_once(
    dsn: str, connection: Session, caplog: pytest.LogCaptureFixture
) -> None:
    await write_row(connection, cron_expr="no expression")
    await write_row(connection, "good", anchored_at=NOON)
    async with a_node(dsn, connection) as node:
        node.now = at("2026-01-01 12:30")
        with caplog.at_level(logging.ERROR, "awa_cron"):
            for kind in (Kind.UNKNOWN, Kind.DUE, Kind.UNKNOWN, Kind.ALL):
                await node.scheduler.evaluate(kind)
    assert ["s"] == [record.schedule for record in caplog.records]  # type: ignore[attr-defined]
    assert at("2026-01-01 13:00") == await next_of(connection, "good")


async def test_working_out_a_next_fire_of_a_broken_row_is_an_error(connection: Session) -> None:
    await write_row(connection, cron_expr="no expression")
    state = await actions.read_cron_state(connection, SCHEMA, clock=NOON)
    [(broken, error)] = firing.freeze(state.schedules, NOON, 1).broken
    assert "s" == broken.name
    assert isinstance(error, StoredScheduleInvalid)
