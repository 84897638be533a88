"""Which fires become jobs: after outages, by policy, at registration, across leaders."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta
from typing import Any

import pytest

from awa_cron import actions, firing
from awa_cron.model import ScheduleState
from awa_cron.sql import Schema
from tests.integration.support import (
    Session,
    a_node,
    a_session,
    at,
    every,
    fires_in,
    fires_of,
    freeze,
    last_of,
    schedule,
    write_row,
)


async def test_c01_ten_years_missed_make_one_job(dsn: str, connection: Session) -> None:
    await write_row(connection, cron_expr="* * * * *", last_enqueued_at=at("2016-01-01 00:00"))
    async with a_node(dsn, connection) as node:
        first = await node.evaluate(at("2026-01-01 00:00:30"))
        second = await node.evaluate(at("2026-01-01 00:00:31"))
    assert ({"s": every("2026-01-01 00:00")}, {}) == (first, second), (
        "C01, P16: one job for the latest minute, then none"
    )


def test_c01_cost_does_not_grow_with_the_missed_minutes() -> None:
    state = ScheduleState(
        name="s",
        cron_expr="* * * * *",
        timezone="UTC",
        missed_fire_policy="coalesce",
        last_enqueued_at=at("2016-01-01 00:00"),
        anchored_at=at("2016-01-01 00:00"),
        paused_at=None,
    )
    firing.chosen_fires(state, at("2026-01-01 00:00:30"), 100)  # parses, and loads the zone
    started = time.process_time()
    fires = firing.chosen_fires(state, at("2026-01-01 00:00:31"), 100)
    spent_s = time.process_time() - started
    assert (at("2026-01-01 00:00"),) == fires
    assert spent_s < 0.1, "C01: 5,260,320 missed minutes are not walked through"


async def test_c02_catch_up_goes_on_where_the_limit_stopped_it(dsn: str, connection: Session) -> None:
    await write_row(connection, last_enqueued_at=at("2026-01-01 00:00"), missed_fire_policy="catch_up")
    async with a_node(dsn, connection, pass_limit=2) as node:
        passes = [await node.evaluate(at("2026-01-01 03:30")) for _ in range(3)]
    expected = [
        {"s": every("2026-01-01 01:00", "2026-01-01 02:00")},
        {"s": every("2026-01-01 03:00")},
        {},
    ]
    assert expected == passes, "C02, P17: oldest first, at most the limit per pass, none skipped"


async def test_c02b_catch_up_of_ten_years_takes_the_oldest_of_the_limit(dsn: str, connection: Session) -> None:
    start = at("2016-01-01 00:00")
    await write_row(connection, cron_expr="* * * * *", last_enqueued_at=start, missed_fire_policy="catch_up")
    async with a_node(dsn, connection, pass_limit=100) as node:
        first = await node.evaluate(at("2026-01-01 00:00:30"))
    expected = {"s": [start + timedelta(minutes=i) for i in range(1, 101)]}
    assert expected == first, "C02b, P17: exactly the 100 oldest, in order"
    assert start + timedelta(minutes=100) == await last_of(connection), "C02b: last is the newest of the pass"


async def test_c03_a_gap_in_the_expression_is_no_missed_fire(dsn: str, connection: Session) -> None:
    await write_row(connection, cron_expr="30 6-16/4 * * 1-5", last_enqueued_at=at("2026-01-02 14:30"))  # a Friday
    async with a_node(dsn, connection) as node:
        early = await node.evaluate(at("2026-01-05 05:00"))
        later = await node.evaluate(at("2026-01-05 11:00"))
    assert ({}, {"s": every("2026-01-05 10:30")}) == (early, later), "C03, P19: nothing due on Monday at 05:00"


async def test_c05_registering_never_fires(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 15:02:00"), schedule(cron_expr="0 15 * * *"))
        at_once = await node.evaluate(at("2026-01-01 15:02:01"))
        next_day = await node.evaluate(at("2026-01-02 15:00:00"))
    assert ({}, {"s": every("2026-01-02 15:00")}) == (at_once, next_day), "C05, P20: the past is not a missed fire"


async def test_c05_registering_before_the_fire_does_not_fire_early(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 14:02:00"), schedule(cron_expr="0 15 * * *"))
        fires = await node.evaluate(at("2026-01-01 14:02:01"))
    assert {} == fires, "C05, P19: registered at 14:02, due at 15:00"


async def test_c05_registering_at_the_very_instant_does_not_fire_for_it(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 15:00:00"), schedule(cron_expr="0 15 * * *"))
        fires = await node.evaluate(at("2026-01-01 15:00:00"))
    assert {} == fires, "C05, P20: only instants after the anchor are fires"


async def test_c05b_a_fire_after_creation_is_an_ordinary_missed_fire(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 14:59:00"), schedule(cron_expr="0 15 * * *"))
        fires = await node.evaluate(at("2026-01-01 15:01:00"))
    assert {"s": every("2026-01-01 15:00")} == fires, "C05b, P16: due while nobody led"


async def test_c05c_restarts_do_not_reset_the_clock(dsn: str, connection: Session) -> None:
    weekly = schedule(cron_expr="0 0 * * 0")
    fires = []
    for day in range(7):  # Monday 5 January to Sunday 11 January
        now = at("2026-01-05 09:00") + timedelta(days=day)
        async with a_node(dsn, connection) as node:
            await node.sync(now, weekly)
            fires.append(await node.evaluate(now))
    assert [{}] * 6 + [{"s": every("2026-01-11 00:00")}] == fires, "C05c, P04: it fires on Sunday"


async def test_c06_a_new_leader_does_not_repeat_the_last_fire(dsn: str, connection: Session) -> None:
    await write_row(connection, cron_expr="0 3 * * *", last_enqueued_at=at("2026-01-01 03:00"))
    async with a_node(dsn, connection) as node:
        fires = await node.evaluate(at("2026-01-01 03:00:20"))
    assert {} == fires, "C06, P10: 03:00 has its job already"


async def test_c06b_last_is_the_scheduled_instant(dsn: str, connection: Session) -> None:
    await write_row(connection, cron_expr="0 3 * * *", last_enqueued_at=at("2025-12-31 03:00"))
    async with a_node(dsn, connection) as node:
        fires = await node.evaluate(at("2026-01-01 03:00:40"))
    assert {"s": every("2026-01-01 03:00:00")} == fires, "C06b, P16: one job for 03:00:00"
    assert at("2026-01-01 03:00:00") == await last_of(connection), "C06b: not the time of enqueueing"


async def test_c06c_a_crash_before_the_commit_leaves_neither_mark_nor_job(dsn: str, connection: Session) -> None:
    await write_row(connection, cron_expr="0 3 * * *", last_enqueued_at=at("2025-12-31 03:00"))
    now = at("2026-01-01 03:00:01")
    async with a_session(dsn) as dying:
        await dying.execute("BEGIN")
        frozen = await freeze(dying, at("2026-01-01 03:00"), expected=at("2025-12-31 03:00"))
        marked = await actions.atomic_enqueue(dying, Schema(), [frozen], actor="dying", clock=now)
        assert {"s"} == marked.keys()
        dying.terminate()
        left = (await last_of(connection), await fires_of(connection))
        assert (at("2025-12-31 03:00"), []) == left, "C06c, P09: neither"
    async with a_node(dsn, connection) as node:
        for _ in range(200):  # the server may still be about to notice
            if fires := await node.evaluate(now):
                break
    assert {"s": every("2026-01-01 03:00")} == fires, "C06c: the next pass makes the job"


async def test_c08_a_backlog_and_five_hundred_schedules_fit_in_one_pass(dsn: str, connection: Session) -> None:
    start, now = at("2026-01-01 00:00"), at("2026-01-31 00:00:30")
    await connection.executemany(
        "INSERT INTO awa.cron_jobs (name, cron_expr, kind, last_enqueued_at, anchored_at)"
        " VALUES ($1, '0 * * * *', 'work', $2, $2)",
        [(f"hourly_{i:03}", start) for i in range(500)],
    )
    await write_row(
        connection, "backlog", "* * * * *", last_enqueued_at=start, missed_fire_policy="catch_up", queue="other"
    )
    async with a_node(dsn, connection, pass_limit=100) as node:
        fires = await node.evaluate(now)
    expected: dict[str, list[datetime]] = {f"hourly_{i:03}": every("2026-01-31 00:00") for i in range(500)}
    expected["backlog"] = [start + timedelta(minutes=i) for i in range(1, 101)]
    assert expected == fires, "C08, P17, P36: 500 + 100 jobs in the first pass"


@pytest.mark.parametrize(
    ("column", "value"),
    [("priority", 9), ("max_attempts", 2000), ("tags", [str(i) for i in range(21)]), ("kind", "k" * 201)],
)
async def test_c08_a_schedule_whose_jobs_are_refused_holds_back_no_other(
    dsn: str, connection: Session, caplog: pytest.LogCaptureFixture, column: str, value: Any
) -> None:
    for name in "abcdefg":
        await write_row(connection, name, last_enqueued_at=at("2026-01-01 00:00"))
    await write_row(connection, "bad", last_enqueued_at=at("2026-01-01 00:00"), **{column: value})
    async with a_node(dsn, connection) as node:
        first = await node.evaluate(at("2026-01-01 01:00:01"))
        await node.evaluate(at("2026-01-01 01:00:02"))
    assert dict.fromkeys("abcdefg", every("2026-01-01 01:00")) == first, "C08, P36: every other one fires"
    reports = [record for record in caplog.records if getattr(record, "schedule", "") == "bad"]
    assert 1 == len(reports), "C08, D09: the refusal is said once, not in every pass"


async def test_c08_a_job_beyond_a_limit_of_the_database_holds_back_no_other(dsn: str, connection: Session) -> None:
    await connection.execute("CREATE INDEX ON awa.jobs ((args ->> 'to'))")
    recipients = "".join(chr(0x4E00 + i) for i in range(20_000))  # an entry of an index takes 2.7 kB
    await write_row(connection, "bad", last_enqueued_at=at("2026-01-01 00:00"), args=json.dumps({"to": recipients}))
    await write_row(connection, "good", last_enqueued_at=at("2026-01-01 00:00"))
    async with a_node(dsn, connection) as node:
        fires = await node.evaluate(at("2026-01-01 01:00:01"))
    assert {"good": every("2026-01-01 01:00")} == fires, "C08, P36"


async def test_c08_a_held_row_holds_back_no_other(dsn: str, connection: Session) -> None:
    for name in "abc":
        await write_row(connection, name, last_enqueued_at=at("2026-01-01 00:00"))
    async with a_session(dsn) as holder, a_node(dsn, connection, statement_timeout_s=5) as node:
        await holder.execute("BEGIN; SELECT 1 FROM awa.cron_jobs WHERE name = 'b' FOR UPDATE")
        while_held = await node.evaluate(at("2026-01-01 01:00:01"))
        await holder.execute("ROLLBACK")
        after = await node.evaluate(at("2026-01-01 01:00:02"))
    expected = {"a": every("2026-01-01 01:00"), "c": every("2026-01-01 01:00")}
    assert (expected, {"b": every("2026-01-01 01:00")}) == (while_held, after), (
        "C08, P36: b waits for the next pass"
    )


async def test_p14_paused_and_unreadable_rows_are_not_tried(dsn: str, connection: Session) -> None:
    last = at("2026-01-01 00:00")
    await write_row(connection, "paused", last_enqueued_at=last, paused_at=last)
    await write_row(connection, "broken", "61 * * * *", last_enqueued_at=last)
    await write_row(connection, "good", last_enqueued_at=last)
    state = await actions.read_cron_state(connection, Schema(), clock=at("2026-01-01 01:00"))
    frozen, _, broken = firing.freeze(state.schedules, at("2026-01-01 01:00"), 100)
    assert {"broken", "good"} == {each.name for each in state.schedules}, "P14: a paused row is not even read"
    assert (["good"], ["broken"]) == ([each.name for each in frozen], [each.name for each, _ in broken])


async def test_p28_jobs_carry_their_labels_whatever_the_session_shows(dsn: str, connection: Session) -> None:
    await write_row(
        connection,
        cron_expr="30 * * * *",
        last_enqueued_at=at("2026-01-01 00:30"),
        missed_fire_policy="catch_up",
        metadata='{"team": "ops"}',
        args='{"to": "ops"}',
        tags=["digest"],
        queue="email",
        priority=3,
        max_attempts=7,
    )
    fires = every("2026-01-01 01:30", "2026-01-01 02:30")
    frozen = await freeze(connection, *fires, expected=at("2026-01-01 00:30"))
    odd = {"timezone": "Asia/Kathmandu", "datestyle": "SQL, DMY", "intervalstyle": "sql_standard"}
    async with a_session(dsn) as session:
        for name, value in odd.items():
            await session.execute("SELECT set_config($1, $2, false)", name, value)
        now = at("2026-01-01 02:30:01")
        ids = (await actions.atomic_enqueue(session, Schema(), [frozen], actor="t", clock=now))["s"]
    rows = await connection.fetch("SELECT *, metadata::text AS labels FROM awa.jobs ORDER BY id")
    assert ids == tuple(row["id"] for row in rows)
    expected = [
        f'{{"team": "ops", "cron_name": "s", "cron_fire_time": "2026-01-01T{hour}:30:00Z"}}'
        for hour in ("01", "02")
    ]
    assert expected == [row["labels"] for row in rows], "P28: ISO 8601 in UTC, independent of the session's zone"
    columns = ("kind", "queue", "priority", "max_attempts", "tags", "state", "attempt", "run_at")
    ordinary = {("work", "email", 3, 7, ("digest",), "available", 0, now)}
    assert ordinary == {tuple(tuple(row[c]) if c == "tags" else row[c] for c in columns) for row in rows}, "P28"
    assert {"s": list(frozen.fires)} == await fires_in(connection)
