"""What operators do: pause, resume, trigger, remove, and read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import awa_cron
from awa_cron import actions, queue_actions
from awa_cron.errors import InvalidSchedule, ScheduleNotFound
from awa_cron.sql import Schema
from tests.integration.support import (
    Session,
    a_node,
    a_session,
    at,
    events_of,
    every,
    fires_of,
    last_of,
    row_of,
    schedule,
    write_row,
)

SCHEMA = Schema()


@pytest.mark.parametrize("act", ["pause", "resume", "trigger", "remove", "get_schedule"])
async def test_e01b_an_unknown_name_is_not_found(dsn: str, connection: Session, act: str) -> None:
    async with awa_cron.Client(dsn) as client:
        with pytest.raises(ScheduleNotFound, match="'nobody'") as caught:
            await getattr(client, act)("nobody")
    assert "nobody" == caught.value.name
    counts = await connection.fetchrow(
        "SELECT (SELECT count(*) FROM awa.cron_jobs), (SELECT count(*) FROM awa.jobs),"
        " (SELECT count(*) FROM awa.cron_events)"
    )
    assert counts is not None
    assert (0, 0, 0) == tuple(counts), "E01b: no row is created"


async def test_e02_a_coalesced_schedule_fires_once_on_resume(dsn: str, connection: Session) -> None:
    await write_row(connection, cron_expr="0 2 * * *", last_enqueued_at=at("2026-01-09 02:00"))
    async with a_node(dsn, connection) as node:
        await actions.pause(connection, SCHEMA, "s", clock=at("2026-01-10 01:00"))
        paused = await node.evaluate(at("2026-01-10 14:59"))
        await actions.resume(connection, SCHEMA, "s", clock=at("2026-01-10 15:00"))
        resumed = [await node.evaluate(at(f"2026-01-10 15:00:0{i}")) for i in range(2)]
    assert ({}, [{"s": every("2026-01-10 02:00")}, {}]) == (paused, resumed), "E02, P18: one job, for 10 Jan 02:00"


async def test_e02b_nothing_was_missed_so_nothing_fires_on_resume(dsn: str, connection: Session) -> None:
    await write_row(connection, last_enqueued_at=at("2026-01-10 12:00"))
    async with a_node(dsn, connection) as node:
        await actions.pause(connection, SCHEMA, "s", clock=at("2026-01-10 12:05"))
        await actions.resume(connection, SCHEMA, "s", clock=at("2026-01-10 12:20"))
        passes = [await node.evaluate(at(f"2026-01-10 {time}")) for time in ("12:20", "12:59:59", "13:00")]
    assert [{}, {}, {"s": every("2026-01-10 13:00")}] == passes, "E02b, P18: next is 13:00"


async def test_e02c_a_catch_up_schedule_replays_in_order_on_resume(dsn: str, connection: Session) -> None:
    await write_row(connection, last_enqueued_at=at("2026-01-10 12:00"), missed_fire_policy="catch_up")
    async with a_node(dsn, connection) as node:
        await actions.pause(connection, SCHEMA, "s", clock=at("2026-01-10 12:05"))
        paused = await node.evaluate(at("2026-01-10 15:29"))
        await actions.resume(connection, SCHEMA, "s", clock=at("2026-01-10 15:30"))
        resumed = await node.evaluate(at("2026-01-10 15:30"))
    expected = {"s": every("2026-01-10 13:00", "2026-01-10 14:00", "2026-01-10 15:00")}
    assert ({}, expected) == (paused, resumed), "E02c, P17, P18"


async def test_e03_a_trigger_is_beside_the_schedule(dsn: str, connection: Session) -> None:
    await write_row(connection, last_enqueued_at=at("2026-01-01 14:00"), args='{"a": 1}', tags=["t"], priority=1)
    before = await row_of(connection)
    triggered = await actions.trigger(connection, SCHEMA, "s", by="ops", clock=at("2026-01-01 14:30:00.25"))
    assert triggered is not None
    assert before == await row_of(connection), "E03, P21: the row is not touched"
    async with a_node(dsn, connection) as node:
        fires = await node.evaluate(at("2026-01-01 15:00"))
    assert {"s": every("2026-01-01 15:00")} == fires, "E03: its own fire at 15:00 is a second job"
    assert 2 == await connection.fetchval("SELECT count(*) FROM awa.jobs")
    seen = (triggered.args, triggered.tags, triggered.priority, triggered.state, triggered.run_at)
    assert ({"a": 1}, ("t",), 1, "available", at("2026-01-01 14:30:00.25")) == seen
    labels = (triggered.cron_name, triggered.fire_time, triggered.metadata["cron_triggered_at"])
    assert ("s", None, "2026-01-01T14:30:00.250000Z") == labels, "P28: labelled, but not as a fire"


async def test_e03_two_triggers_in_one_second_make_two_jobs(connection: Session) -> None:
    await write_row(connection)
    jobs = [await actions.trigger(connection, SCHEMA, "s", clock=at("2026-01-01 14:30")) for _ in range(2)]
    assert 2 == len({job.id for job in jobs if job is not None}), "E03: distinct ids"
    events = await events_of(connection, action="trigger")
    assert [[job.id] for job in jobs if job] == [event["job_ids"] for event in events]


async def test_e03b_a_trigger_works_while_paused(connection: Session) -> None:
    paused = at("2026-01-01 14:00")
    await write_row(connection, paused_at=paused, paused_by="ops", last_enqueued_at=paused)
    before = await row_of(connection)
    job = await actions.trigger(connection, SCHEMA, "s")
    assert job is not None, "E03b, P21: an explicit action is always allowed"
    assert before == await row_of(connection), "E03b: still paused, and nothing else changed"
    assert 1 == await connection.fetchval("SELECT count(*) FROM awa.jobs")


async def test_e03_a_trigger_does_not_wait_for_a_held_row(dsn: str, connection: Session) -> None:
    await write_row(connection)
    async with a_session(dsn) as holder:
        await holder.execute("BEGIN; SELECT 1 FROM awa.cron_jobs FOR UPDATE")
        async with asyncio.timeout(5):
            assert await actions.trigger(connection, SCHEMA, "s"), "P21: an enqueue or edit does not hold it up"


@pytest.mark.parametrize("last", [None, at("2026-01-01 14:00")], ids=["null", "last"])
async def test_p15_pause_and_resume_touch_only_the_pause(connection: Session, last: Any) -> None:
    await write_row(
        connection, last_enqueued_at=last, anchored_at=at("2026-01-01 10:00"), updated_at=last or at("2026-01-01")
    )
    ignored = {"paused_at", "paused_by", "xmin", "ctid"}

    async def rest() -> dict[str, Any]:
        return {key: value for key, value in (await row_of(connection)).items() if key not in ignored}

    before = await rest()
    assert await actions.pause(connection, SCHEMA, "s", by="ops", clock=at("2026-01-01 14:10"))
    paused = await row_of(connection)
    assert (at("2026-01-01 14:10"), "ops") == (paused["paused_at"], paused["paused_by"])
    assert before == await rest(), "P15: pause"
    assert await actions.resume(connection, SCHEMA, "s", by="ops", clock=at("2026-01-01 14:20"))
    resumed = await row_of(connection)
    assert (None, None) == (resumed["paused_at"], resumed["paused_by"])
    assert before == await rest(), "P15: resume"
    assert [("pause", last), ("resume", last)] == [
        (event["action"], event["last_enqueued_at"]) for event in await events_of(connection)
    ]


async def test_a_second_pause_keeps_the_first_label(connection: Session) -> None:
    await write_row(connection)
    outcomes = [
        await actions.resume(connection, SCHEMA, "s"),
        await actions.pause(connection, SCHEMA, "s", by="first", clock=at("2026-01-01 14:00")),
        await actions.pause(connection, SCHEMA, "s", by="second", clock=at("2026-01-01 15:00")),
    ]
    row = await row_of(connection)
    assert [False, True, False] == outcomes
    assert ("first", at("2026-01-01 14:00")) == (row["paused_by"], row["paused_at"])
    assert ["first"] == [event["actor"] for event in await events_of(connection)], "an idle action writes no event"


async def test_p22_remove_deletes_the_row_and_leaves_the_jobs(dsn: str, connection: Session) -> None:
    await write_row(connection, last_enqueued_at=at("2026-01-01 14:00"))
    await write_row(connection, "other", last_enqueued_at=at("2026-01-01 14:00"))
    async with a_node(dsn, connection) as node:
        await node.evaluate(at("2026-01-01 15:00"))
    other = await row_of(connection, "other")
    jobs = await connection.fetch("SELECT * FROM awa.jobs ORDER BY id")
    async with awa_cron.Client(dsn) as client:
        await client.remove("s", by="ops")
        assert ["other"] == [each.name for each in await client.list_schedules()]
    assert jobs == await connection.fetch("SELECT * FROM awa.jobs ORDER BY id"), "P22: jobs already made stay"
    assert other == await row_of(connection, "other"), "P22: and so does every other schedule"
    (event,) = await events_of(connection, action="remove")
    assert ("ops", at("2026-01-01 15:00")) == (event["actor"], event["last_enqueued_at"]), (
        "P12: how far it had come"
    )


async def test_p23_a_pause_leaves_the_jobs_alone(connection: Session) -> None:
    await write_row(connection)
    states = ["available", "running", "retryable", "failed", "scheduled", "completed", "cancelled"]
    for state in states:
        job = await actions.trigger(connection, SCHEMA, "s")
        assert job is not None
        await connection.execute("UPDATE awa.jobs SET state = $1 WHERE id = $2", state, job.id)
    before = await connection.fetch("SELECT *, xmin::text FROM awa.jobs ORDER BY id")
    await actions.pause(connection, SCHEMA, "s")
    after = await connection.fetch("SELECT *, xmin::text FROM awa.jobs ORDER BY id")
    assert states == [row["state"] for row in after]
    assert before == after, "P23: whatever their state, jobs stay as they are"
    claimed = await queue_actions.claim(connection, SCHEMA, kinds=["work"], queues=None, limit=9, worker="w")
    assert 3 == len(claimed), "P23: and workers still pick up those that wait"


async def test_history_tells_what_happened_newest_first(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 10:00"), schedule())
        await node.evaluate(at("2026-01-01 11:00"))
    async with awa_cron.Client(dsn) as client:
        await client.pause("s", by="ops")
        await client.resume("s", by="ops")
        await client.trigger("s", by="ops")
        await client.remove("s", by="ops")
        events = await client.history("s")
        newest = await client.history("s", limit=2)
        everything = await client.history()
    actions_seen = ["remove", "trigger", "resume", "pause", "atomic_enqueue", "sync"]
    assert actions_seen == [event.action for event in events]
    assert events[:2] == newest
    assert events == everything
    fired = events[4]
    assert (tuple(every("2026-01-01 11:00")), at("2026-01-01 11:00")) == (fired.fires, fired.clock)
    assert 1 == len(fired.job_ids)


async def test_a_listing_shows_the_whole_row(dsn: str, connection: Session) -> None:
    full = schedule(
        "full", "*/5 * * * *", timezone="Asia/Tokyo", queue="q", args={"a": [1]}, priority=1, max_attempts=3,
        tags=["x"], metadata={"m": 1}, missed_fire_policy="catch_up",
    )  # fmt: skip
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 10:00"), full, schedule("plain"), schedule("resumed", queue="r"))
    await connection.execute("INSERT INTO awa.queue_meta (queue, paused_at) VALUES ('q', now()), ('r', NULL)")
    async with awa_cron.Client(dsn) as client:
        await client.pause("full", by="ops")
        stored = await client.get_schedule("full")
        listed = await client.list_schedules()
    assert stored == listed[0]
    assert [("full", True), ("plain", False), ("resumed", False)] == [
        (each.name, each.queue_paused) for each in listed
    ]
    for field in ("cron_expr", "timezone", "queue", "priority", "max_attempts", "tags", "args", "kind"):
        assert getattr(full, field) == getattr(stored, field), field
    assert ({"m": 1}, True, "ops", None) == (stored.metadata, stored.queue_paused, stored.paused_by, stored.broken)
    assert (None, at("2026-01-01 10:00")) == (stored.last_enqueued_at, stored.anchored_at)


@pytest.mark.parametrize("by", ["", " ", " ops", "a\0b", "x" * 201, 5])
async def test_an_operators_label_is_checked(dsn: str, connection: Session, by: Any) -> None:
    await write_row(connection)
    async with awa_cron.Client(dsn) as client:
        with pytest.raises(InvalidSchedule, match=r"\Aby "):
            await client.pause("s", by=by)
    assert (await row_of(connection))["paused_at"] is None


async def test_a_last_that_nobody_reads_is_not_needed(connection: Session) -> None:
    """Names that differ only in what SQL or a pattern could read into them are different schedules."""
    for name in ("a%", "a_", "ab", "A%"):
        await write_row(connection, name)
    await actions.pause(connection, SCHEMA, "a_")
    paused = await connection.fetch("SELECT name FROM awa.cron_jobs WHERE paused_at IS NOT NULL")
    assert ["a_"] == [row["name"] for row in paused]
    assert await last_of(connection, "ab") is None
    assert [] == await fires_of(connection, "a_")
    assert await actions.remove(connection, SCHEMA, "a%")
    left = await connection.fetch("SELECT name FROM awa.cron_jobs")
    assert {"a_", "ab", "A%"} == {row["name"] for row in left}
