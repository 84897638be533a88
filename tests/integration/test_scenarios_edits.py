"""Sync: editing, re-registering and removing, also when somebody is faster."""

from __future__ import annotations

import logging
from datetime import timedelta
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
    events_of,
    every,
    fires_in,
    fires_of,
    flat,
    last_of,
    row_of,
    schedule,
    sync,
    write_row,
)

SCHEMA = Schema()


async def test_c04_an_edit_does_not_fire_for_the_past(dsn: str, connection: Session) -> None:
    await write_row(connection, cron_expr="5 * * * *", last_enqueued_at=at("2026-01-01 10:05"))
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 10:20"), schedule(cron_expr="10 * * * *"))
        passes = [await node.evaluate(at(f"2026-01-01 {time}")) for time in ("10:20", "11:09", "11:10")]
    assert [{}, {}, {"s": every("2026-01-01 11:10")}] == passes, "C04, P20: nothing at 10:20, next is 11:10"


async def test_c04b_an_edit_makes_no_backlog(dsn: str, connection: Session) -> None:
    last = at("2026-01-01 00:00")
    await write_row(connection, cron_expr="0 0 1 * *", last_enqueued_at=last, missed_fire_policy="catch_up")
    edited = schedule(cron_expr="* * * * *", missed_fire_policy="catch_up")
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-31 12:00"), edited)
        passes = [await node.evaluate(at(f"2026-01-31 12:0{minute}")) for minute in (0, 1)]
    assert [{}, {"s": every("2026-01-31 12:01")}] == passes, "C04b, P20: no backlog of 43,920, next is 12:01"


async def test_c04c_another_zone_does_not_fire_for_the_past(dsn: str, connection: Session) -> None:
    await write_row(connection, cron_expr="0 9 * * *", last_enqueued_at=at("2026-01-05 09:00"))
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-05 15:00"), schedule(cron_expr="0 9 * * *", timezone="America/New_York"))
        passes = [await node.evaluate(at(time)) for time in ("2026-01-05 15:00:01", "2026-01-06 14:00")]
    assert [{}, {"s": every("2026-01-06 14:00")}] == passes, "C04c, P20: next is tomorrow 14:00 UTC"
    assert at("2026-01-05 15:00") == (await row_of(connection))["anchored_at"], "C04c: a new zone moves the anchor"


async def test_c04d_the_same_definition_rewrites_nothing(dsn: str, connection: Session) -> None:
    fields = {"queue": "q", "args": {"a": [1, 2.5, None, "é"]}, "priority": 1, "max_attempts": 3}
    labels = {"tags": ["x", "y"], "metadata": {"m": {}}, "missed_fire_policy": "catch_up"}
    same = [schedule("plain"), schedule("full", "*/5 * * * *", timezone="Asia/Tokyo", **fields, **labels)]
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 10:00"), *same)
        before = [await row_of(connection, each.name) for each in same]
        for minute in range(1, 4):
            await node.sync(at("2026-01-01 10:00") + timedelta(minutes=minute), *same)
        after = [await row_of(connection, each.name) for each in same]
    assert before == after, "C04d, P04: xmin, ctid and the anchor stay"
    events = flat([await events_of(connection, each.name) for each in same])
    assert ["inserted"] * 2 == [event["details"]["change"] for event in events], "C04d: and no event is written"


@pytest.mark.parametrize(
    "change",
    [{"kind": "other"}, {"queue": "q"}, {"args": {"a": 1}}, {"priority": 1}, {"max_attempts": 3}, {"tags": ["x"]},
     {"metadata": {"m": 1}}, {"missed_fire_policy": "catch_up"}],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
async def test_c04d_a_change_that_leaves_the_fires_leaves_the_anchor(
    dsn: str, connection: Session, change: dict[str, Any]
) -> None:
    anchor = at("2026-01-01 10:00")
    async with a_node(dsn, connection) as node:
        await node.sync(anchor, schedule())
        before = await row_of(connection)
        await node.sync(at("2026-01-01 12:30"), schedule(**change))
        after = await row_of(connection)
        fires = await node.evaluate(at("2026-01-01 12:31"))
    field = next(iter(change))
    assert before[field] != after[field], "sync writes what differs"
    assert anchor == after["anchored_at"], "P20: only cron_expr and timezone move the anchor"
    assert fires, "what was due before the change is still due after it"


async def test_c04e_edit_settles_first(dsn: str, connection: Session) -> None:
    await write_row(connection, cron_expr="0 3 * * *", last_enqueued_at=at("2025-12-31 03:00"), args='{"v": 1}')
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 03:05"), schedule(cron_expr="0 3,15 * * *", args={"v": 2}))
        settled = await fires_in(connection)
        passes = [await node.evaluate(at(f"2026-01-01 {time}")) for time in ("03:10", "14:59", "15:00")]
    assert {"s": every("2026-01-01 03:00")} == settled, "C04e, P20b: the old definition's own fire"
    assert [{}, {}, {"s": every("2026-01-01 15:00")}] == passes, "C04e: the next is 15:00"
    args = [row["args"] for row in await connection.fetch("SELECT args FROM awa.jobs ORDER BY id")]
    assert ['{"v": 1}', '{"v": 2}'] == args, "C04e: the settled job has the arguments of its own definition"
    (event,) = await events_of(connection, action="sync")
    assert (every("2026-01-01 03:00"), "redefined") == (event["fires"], event["details"]["change"])
    assert "dropped" not in event["details"], "C04e: nothing was given up"


async def test_c04e_another_zone_settles_first_too(dsn: str, connection: Session) -> None:
    await write_row(connection, cron_expr="0 3 * * *", last_enqueued_at=at("2025-12-31 03:00"))
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 03:05"), schedule(cron_expr="0 3 * * *", timezone="Asia/Tokyo"))
        later = await node.evaluate(at("2026-01-01 18:00"))
    assert {"s": every("2026-01-01 18:00")} == later
    assert every("2026-01-01 03:00", "2026-01-01 18:00") == await fires_of(connection), "C04e, P20b"


async def test_p28_settled_jobs_carry_their_labels_whatever_the_session_shows(
    dsn: str, connection: Session
) -> None:
    await write_row(connection, last_enqueued_at=at("2026-01-01 00:00"))
    async with a_session(dsn) as session:
        await session.execute("SET timezone = 'Asia/Kathmandu'")
        await sync(session, at("2026-01-01 01:05"), schedule(cron_expr="30 * * * *"))
    label = await connection.fetchval("SELECT metadata ->> 'cron_fire_time' FROM awa.jobs")
    assert "2026-01-01T01:00:00Z" == label, "P28: ISO 8601 in UTC, independent of the session's zone"


async def test_c04e_a_long_coalesced_outage_settles_with_one_job(dsn: str, connection: Session) -> None:
    await write_row(connection, cron_expr="* * * * *", last_enqueued_at=at("2016-01-01 00:00"))
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 00:00:30"), schedule(cron_expr="0 12 * * *"))
    assert every("2026-01-01 00:00") == await fires_of(connection), "C04e, P16: the latest stands for the others"
    (event,) = await events_of(connection, action="sync")
    assert "dropped" not in event["details"], "C04e: coalesced fires are not dropped ones"


async def test_c04e_what_the_limit_leaves_over_is_said(dsn: str, connection: Session) -> None:
    last = at("2026-01-01 00:00")
    await write_row(connection, cron_expr="0 * * * *", last_enqueued_at=last, missed_fire_policy="catch_up")
    edited = schedule(cron_expr="30 * * * *", missed_fire_policy="catch_up")
    async with a_node(dsn, connection, pass_limit=2) as node:
        await node.sync(at("2026-01-01 06:10"), edited)
        later = await node.evaluate(at("2026-01-01 06:30"))
    assert {"s": every("2026-01-01 06:30")} == later, "C04e, P20: what was dropped stays dropped"
    settled = every("2026-01-01 01:00", "2026-01-01 02:00")
    assert [*settled, at("2026-01-01 06:30")] == await fires_of(connection), "C04e, P20b: as many as the limit"
    (event,) = await events_of(connection, action="sync")
    expected = {
        "count": 4,
        "counted_all": True,
        "first": "2026-01-01T03:00:00+00:00",
        "last": "2026-01-01T06:00:00+00:00",
    }
    assert expected == event["details"]["dropped"], "C04e, P20b: how many, from when to when"
    assert (settled, settled[-1]) == (event["fires"], event["last_enqueued_at"])
    assert [1, 2] == event["job_ids"], "P35: each id stands where its fire stands"


@pytest.mark.parametrize("policy", ["coalesce", "catch_up"])
async def test_c04e_what_a_pause_held_back_is_dropped_and_said(dsn: str, connection: Session, policy: str) -> None:
    last = at("2026-01-01 00:00")
    await write_row(connection, last_enqueued_at=last, paused_at=at("2026-01-01 00:30"), missed_fire_policy=policy)
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 02:10"), schedule(cron_expr="30 * * * *", missed_fire_policy=policy))
    assert [] == await fires_of(connection), "C04e, P13: a paused schedule settles nothing"
    assert last == await last_of(connection)
    (event,) = await events_of(connection, action="sync")
    expected = {
        "count": 2,
        "counted_all": True,
        "first": "2026-01-01T01:00:00+00:00",
        "last": "2026-01-01T02:00:00+00:00",
    }
    assert expected == event["details"]["dropped"], "C04e, P20b"


async def test_c04e_dropped_fires_are_counted_up_to_a_bound(dsn: str, connection: Session) -> None:
    last = at("2016-01-01 00:00")
    await write_row(connection, cron_expr="* * * * *", last_enqueued_at=last, missed_fire_policy="catch_up")
    async with a_node(dsn, connection, pass_limit=10) as node:
        await node.sync(at("2026-01-01 00:00:30"), schedule())
    (event,) = await events_of(connection, action="sync")
    expected = {
        "count": 1000,
        "counted_all": False,
        "first": "2016-01-01T00:11:00+00:00",
        "last": "2026-01-01T00:00:00+00:00",
    }
    assert expected == event["details"]["dropped"], "C04e: ten years of minutes are not walked through"


@pytest.mark.parametrize(("more", "counted_all"), [(0, True), (1, False)])
def test_c04e_as_many_as_are_counted_are_all(more: int, counted_all: bool) -> None:
    start = at("2026-01-01 00:00")
    state = ScheduleState(
        name="s",
        cron_expr="* * * * *",
        timezone="UTC",
        missed_fire_policy="catch_up",
        last_enqueued_at=None,
        anchored_at=start,
        paused_at=start,
    )
    bound = firing.MAX_DROPPED_COUNTED
    fires, dropped = firing.settle(state, start + timedelta(minutes=bound + more), 100)
    assert dropped is not None
    assert ((), bound, counted_all) == (fires, dropped.count, dropped.counted_all), "C04e, P20b"


@pytest.mark.parametrize("bad", [{"cron_expr": "61 * * * *"}, {"timezone": "Mars/Phobos"}])
async def test_c04e_an_unreadable_definition_is_replaced(
    dsn: str, connection: Session, bad: dict[str, str]
) -> None:
    columns: dict[str, Any] = {"last_enqueued_at": at("2026-01-01 00:00")} | bad
    await write_row(connection, **columns)
    result = await sync(connection, at("2026-01-01 02:10"), schedule(cron_expr="30 * * * *"))
    (outcome,) = result.outcomes
    assert ("redefined", ()) == (outcome.change, outcome.job_ids)
    assert outcome.unreadable is not None, "C04e, D09: that nothing could be settled is said"
    (event,) = await events_of(connection, action="sync")
    assert {"unreadable": outcome.unreadable} == event["details"]["dropped"]
    async with a_node(dsn, connection) as node:
        assert {"s": every("2026-01-01 02:30")} == await node.evaluate(at("2026-01-01 02:30"))


async def test_e01_redeploying_keeps_the_pause_and_its_label(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 10:00"), schedule())
        await node.evaluate(at("2026-01-01 11:00"))
    await actions.pause(connection, SCHEMA, "s", by="ops", clock=at("2026-01-01 11:01"))
    before = await row_of(connection)
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 11:02"), schedule())
        same = await row_of(connection)
        await node.sync(at("2026-01-01 11:03"), schedule(cron_expr="30 * * * *", args={"a": 1}))
        edited = await row_of(connection)
        fires = await node.evaluate(at("2026-01-01 12:00"))
    assert before == same, "E01, P03, P04: an unchanged sync writes nothing"
    kept = ("paused_at", "paused_by", "last_enqueued_at", "created_at")
    assert [before[column] for column in kept] == [edited[column] for column in kept], "E01, P03"
    assert ("ops", "30 * * * *") == (edited["paused_by"], edited["cron_expr"]), "E01: the expression is the new one"
    assert {} == fires, "E01, P13: still paused"


async def test_e04_deployments_leave_each_other_alone(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as first, a_node(dsn, connection) as second:
        await first.sync(at("2026-01-01 10:00"), schedule("a"))
        row = await row_of(connection, "a")
        await second.sync(at("2026-01-01 10:01"), schedule("b"))
        assert row == await row_of(connection, "a"), "E04, P02: another deployment's row is not touched"
        fires = await second.evaluate(at("2026-01-01 11:00"))
    expected = {"a": every("2026-01-01 11:00"), "b": every("2026-01-01 11:00")}
    assert expected == fires, "E04, P02: the leader evaluates every row, also those that it does not register"


async def test_e04b_a_removed_schedule_comes_back_fresh_and_not_for_the_past(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 10:00"), schedule())
        await node.evaluate(at("2026-01-01 11:00"))
        await actions.pause(connection, SCHEMA, "s", by="ops", clock=at("2026-01-01 11:05"))
        assert await actions.remove(connection, SCHEMA, "s", by="ops", clock=at("2026-01-01 11:10"))
        assert every("2026-01-01 11:00") == await fires_of(connection), "E04b, P22: jobs already made stay"
        await node.sync(at("2026-01-01 12:30"), schedule())
        row = await row_of(connection)
        passes = [await node.evaluate(at(f"2026-01-01 {time}")) for time in ("12:31", "13:00")]
    assert (None, None, None) == (row["paused_at"], row["paused_by"], row["last_enqueued_at"]), "E04b, P22: fresh"
    assert [{}, {"s": every("2026-01-01 13:00")}] == passes, "E04b, P12: it does not fire for the past"


async def test_e04b_no_instant_twice_when_the_clock_steps_back(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 10:00"), schedule())
        await node.evaluate(at("2026-01-01 12:00"))
        await actions.remove(connection, SCHEMA, "s", clock=at("2026-01-01 12:01"))
        await node.sync(at("2026-01-01 11:30"), schedule())
        passes = [await node.evaluate(at(f"2026-01-01 {time}")) for time in ("11:45", "12:00", "12:59", "13:00")]
    assert [{}, {}, {}, {"s": every("2026-01-01 13:00")}] == passes, "E04b, P12: 12:00 had its job before"


async def test_e04b_the_highest_of_several_removals_counts(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        for fire, removed in (("12:00", "12:01"), ("11:00", "11:01")):
            await write_row(connection, last_enqueued_at=at(f"2026-01-01 {fire}"))
            await actions.remove(connection, SCHEMA, "s", clock=at(f"2026-01-01 {removed}"))
        await node.sync(at("2026-01-01 10:30"), schedule(), schedule("other"))
    anchors = [(await row_of(connection, name))["anchored_at"] for name in ("s", "other")]
    assert every("2026-01-01 12:00", "2026-01-01 10:30") == anchors, "E04b, P12: of its own removals only"


async def test_e04b_an_edit_does_not_move_the_anchor_back(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 10:00"), schedule())
        await node.evaluate(at("2026-01-01 12:00"))
        await actions.remove(connection, SCHEMA, "s", clock=at("2026-01-01 12:01"))
        await node.sync(at("2026-01-01 11:30"), schedule())  # anchored at 12:00
        await node.sync(at("2026-01-01 11:31"), schedule(cron_expr="0,15 * * * *"))
        passes = [await node.evaluate(at(f"2026-01-01 {time}")) for time in ("12:00", "12:15")]
    assert [{}, {"s": every("2026-01-01 12:15")}] == passes, "E04b, P12: 12:00 had its job before"


async def test_of_many_that_are_synced_together_one_line_tells_but_of_what_is_given_up_each(
    dsn: str, connection: Session, caplog: pytest.LogCaptureFixture
) -> None:
    many = [schedule(f"s{number:03}") for number in range(150)]
    await sync(connection, at("2026-01-01 10:00"), many[0])
    await connection.execute("UPDATE awa.cron_jobs SET cron_expr = 'nonsense'")
    caplog.set_level(logging.INFO, "awa_cron")
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 10:01"), *many)
    told = [(record.message, getattr(record, "schedule", None)) for record in caplog.records]
    assert [("synced; the old definition was unreadable", "s000"), ("synced many", None)] == told
    assert {"inserted": 149} == getattr(caplog.records[-1], "changes")  # noqa: B009
    caplog.clear()
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 12:30"), *[schedule(each.name, cron_expr="30 * * * *") for each in many])
    assert (["synced many"], 150) == (caplog.messages, getattr(caplog.records[-1], "settled_jobs"))  # noqa: B009
