"""Rows written by hand or by another version: one bad row stops nothing. And names that look like code."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

import awa_cron
from awa_cron import actions, firing, queue_actions
from awa_cron.model import ScheduleState
from awa_cron.sql import Schema
from tests.integration.support import (
    Session,
    a_node,
    at,
    every,
    fires_in,
    row_of,
    running,
    schedule,
    wait_until,
    write_row,
)

SCHEMA = Schema()
T = at("2026-01-01 10:00")

BROKEN: dict[str, str] = {
    "minute": "cron_expr = '61 * * * *'",
    "empty": "cron_expr = ''",
    "long": "cron_expr = repeat('* ', 100000)",
    "words": "cron_expr = 'DROP TABLE'",
    "impossible": "cron_expr = '0 0 30 2 *'",
    "mars": "timezone = 'Mars/Phobos'",
    "folder": "timezone = 'Europe'",
    "path": "timezone = '../../etc/passwd'",
    "no_zone": "timezone = ''",
    "policy": "missed_fire_policy = 'skip'",
    "infinite": "last_enqueued_at = 'infinity'",
    "minus_infinite": "last_enqueued_at = '-infinity'",
    "infinite_anchor": "anchored_at = 'infinity'",
    "year_20000": "last_enqueued_at = '20000-01-01'",
    "anchor_20000": "anchored_at = '20000-01-01'",
    "before_christ": "last_enqueued_at = '0044-03-15 BC'",
}
"""By name, what is wrong with a row."""

UNUSUAL = {"year_9999": "last_enqueued_at = '9999-12-31'", "year_1": "anchored_at = '0001-01-01'"}
"""What looks wrong and is not."""


async def write_broken(session: Session) -> None:
    for name, assignment in BROKEN.items():
        await write_row(session, name, last_enqueued_at=T)
        await session.execute(f"UPDATE awa.cron_jobs SET {assignment} WHERE name = $1", name)
    await write_row(session, "good", last_enqueued_at=T)


async def test_d09_one_bad_row_stops_nothing(
    dsn: str, connection: Session, caplog: pytest.LogCaptureFixture
) -> None:
    await write_broken(connection)
    async with a_node(dsn, connection) as node:
        passes = [await node.evaluate(at(f"2026-01-01 {time}")) for time in ("11:00", "11:00:01", "12:00")]
    expected = [{"good": every("2026-01-01 11:00")}, {}, {"good": every("2026-01-01 12:00")}]
    assert expected == passes, "D09, P36: the good one fires"
    reported = [record.schedule for record in caplog.records if "broken" in record.message]  # type: ignore[attr-defined]
    assert sorted(BROKEN) == sorted(reported), "D09: each bad row is logged once, not in every pass"


async def test_d09_a_bad_row_is_reported_again_when_it_changes(
    dsn: str, connection: Session, caplog: pytest.LogCaptureFixture
) -> None:
    await write_row(connection, "bad", "61 * * * *")
    async with a_node(dsn, connection) as node:
        for expression in ("61 * * * *", "62 * * * *", "0 * * * *", "61 * * * *"):
            await connection.execute("UPDATE awa.cron_jobs SET cron_expr = $1", expression)
            for second in range(3):
                await node.evaluate(T.replace(second=second))
    reasons = [record.reason for record in caplog.records if "broken" in record.message]  # type: ignore[attr-defined]
    assert 3 == len(reasons), "D09: once per content"
    assert "62" in reasons[1]


@pytest.mark.parametrize("policy", ["coalesce", "catch_up"])
@pytest.mark.parametrize("name", UNUSUAL)
async def test_d09_extreme_instants_are_evaluated(dsn: str, connection: Session, name: str, policy: str) -> None:
    await write_row(connection, "odd", missed_fire_policy=policy)
    await connection.execute(f"UPDATE awa.cron_jobs SET {UNUSUAL[name]}")
    await write_row(connection, "good", last_enqueued_at=T)
    async with a_node(dsn, connection) as node:
        fires = await node.evaluate(at("2026-01-01 11:00"))
    assert every("2026-01-01 11:00") == fires["good"], "D09, P36"


async def test_d09_the_leader_goes_on_leading(dsn: str, connection: Session) -> None:
    await write_broken(connection)
    await write_row(connection, "each_second", "* * * * * *", anchored_at=datetime.now(UTC))
    async with awa_cron.Client(dsn) as client, running(client.run_forever()) as task:
        await wait_until(lambda: client.leading, "leads")

        async def fired_twice() -> bool:
            return len((await fires_in(connection)).get("each_second", [])) >= 2

        await wait_until(fired_twice, "the good schedule fires while the bad ones stay")
        assert client.leading, "D09: the process stays leader"
        assert not task.done()


async def test_d09_operators_see_what_is_broken(dsn: str, connection: Session) -> None:
    await write_broken(connection)
    async with awa_cron.Client(dsn) as client:
        listed = {each.name: each.broken for each in await client.list_schedules()}
        one = await client.get_schedule("mars")
        history = [await client.history(name) for name in BROKEN]
    assert sorted(BROKEN) == sorted(name for name, reason in listed.items() if reason), "D09: shown to operators"
    assert listed["good"] is None
    assert one.broken is not None
    assert "Mars/Phobos" in one.broken
    assert [[]] * len(BROKEN) == history


@pytest.mark.parametrize("column", ["last_enqueued_at", "anchored_at", "paused_at", "created_at", "updated_at"])
@pytest.mark.parametrize("instant", ["infinity", "-infinity", "4000-01-01 BC", "290000-01-01"])
async def test_d09_operators_see_rows_of_any_year(dsn: str, connection: Session, column: str, instant: str) -> None:
    await write_row(connection, "odd", last_enqueued_at=T)
    await connection.execute(f"UPDATE awa.cron_jobs SET {column} = '{instant}'")
    async with awa_cron.Client(dsn) as client:
        (seen,) = await client.overview()
    value: datetime = getattr(seen.schedule, column)
    assert value.astimezone(UTC).year in {1, 9999}


async def test_d09_operators_can_act_on_a_broken_row(dsn: str, connection: Session) -> None:
    await write_broken(connection)
    async with awa_cron.Client(dsn) as client:
        for name in BROKEN:
            assert await client.pause(name, by="ops"), name
            assert await client.resume(name), name
            assert name == (await client.trigger(name)).cron_name
            assert await client.history(name), name
            await client.remove(name)
            assert ["remove", "trigger", "resume", "pause"] == [
                event.action for event in await client.history(name)
            ]


async def test_d09_json_that_python_does_not_read_hides_no_other_row(dsn: str, connection: Session) -> None:
    deep, digits = "[" * 3_000 + "]" * 3_000, "9" * 5_000
    await write_row(connection, "deep", last_enqueued_at=T, args=deep)
    await write_row(connection, "good", last_enqueued_at=T)
    for args, error in ((digits, '{"error": "x"}'), ("{}", f'{{"error": {digits}}}'), ("{}", '{"error": "x"}')):
        await connection.execute(
            "INSERT INTO awa.jobs (kind, args, errors, state, metadata, finalized_at)"
            """ VALUES ('work', $1, ARRAY[$2::jsonb], 'failed', '{"cron_name": "good"}', now())""",
            args,
            error,
        )
    async with awa_cron.Client(dsn) as client:
        listed = {view.name: view.schedule for view in await client.overview()}
        dead = await client.list_dead()
        jobs = await client.jobs_of("good")
    assert "unreadable" in listed["deep"].args
    assert {} == listed["good"].args
    assert [{}, {}] == [job.args for job in dead[:2]]
    assert "digits" in dead[2].args["unreadable"]
    assert ["error", "unreadable", "error"] == [next(iter(job.errors[0])) for job in dead]
    assert [job.errors for job in dead] == [job.errors for job in jobs]


async def test_d09_code_repairs_a_broken_row(dsn: str, connection: Session) -> None:
    await write_broken(connection)
    repairs = [schedule(name, "30 * * * *") for name in BROKEN]
    async with a_node(dsn, connection) as node:
        await node.sync(at("2026-01-01 11:10"), *repairs)
        await node.sync(at("2026-01-01 11:11"), *repairs)
        fires = await node.evaluate(at("2026-01-01 11:30"))
    # What lies in last_enqueued_at or anchored_at stays: a definition says nothing about it. Remove is the remedy.
    stay = {name for name, assignment in BROKEN.items() if "_at = " in assignment}
    repaired = {name: every("2026-01-01 11:30") for name in BROKEN.keys() - stay}
    fires.pop("good")
    assert repaired == fires, "D09: a new definition makes the row good, from now on"


@pytest.mark.parametrize("value", ["[1]", "5", '"x"', "null", "[]"])
async def test_d09_args_that_are_no_object_are_handed_on(dsn: str, connection: Session, value: str) -> None:
    await write_row(connection, "good", last_enqueued_at=T)
    await write_row(connection, "odd", last_enqueued_at=T, args=value)
    async with a_node(dsn, connection) as node:
        fires = await node.evaluate(at("2026-01-01 11:00"))
    assert {"good": every("2026-01-01 11:00"), "odd": every("2026-01-01 11:00")} == fires
    async with awa_cron.Client(dsn) as client:
        assert json.loads(value) == (await client.trigger("odd")).args
        assert json.loads(value) == (await client.get_schedule("odd")).args


@pytest.mark.parametrize("table", ["cron_jobs", "jobs"])
async def test_p28_metadata_that_could_not_carry_labels_cannot_be_stored(connection: Session, table: str) -> None:
    await write_row(connection)
    await actions.trigger(connection, SCHEMA, "s")
    with pytest.raises(asyncpg.CheckViolationError):
        await connection.execute(f"UPDATE awa.{table} SET metadata = '[1]'")


async def test_p28_a_label_written_by_hand_is_overruled(dsn: str, connection: Session) -> None:
    by_hand = '{"cron_name": "other", "cron_fire_time": "x", "cron_triggered_at": "x", "mine": 1}'
    await write_row(connection, "s", last_enqueued_at=T, metadata=by_hand)
    async with a_node(dsn, connection) as node:
        await connection.execute("UPDATE awa.cron_jobs SET metadata = metadata - 'cron_triggered_at'")
        fires = await node.evaluate(at("2026-01-01 11:00"))
        await node.sync(at("2026-01-01 12:10"), schedule(cron_expr="30 * * * *"))
    assert {"s": every("2026-01-01 11:00")} == fires, "P28: the label is the schedule's own"
    settled = await connection.fetchval("SELECT metadata ->> 'cron_name' FROM awa.jobs ORDER BY id DESC LIMIT 1")
    assert "s" == settled


async def test_p14_problem_and_evaluation_agree() -> None:
    state: dict[str, Any] = {
        "name": "s",
        "cron_expr": "0 * * * *",
        "timezone": "UTC",
        "missed_fire_policy": "coalesce",
        "last_enqueued_at": None,
        "anchored_at": T,
        "paused_at": None,
    }
    assert firing.problem(ScheduleState(**state)) is None
    for change in ({"cron_expr": "x"}, {"timezone": "x"}, {"missed_fire_policy": "x"}):
        broken = ScheduleState(**state | change)
        assert firing.problem(broken) is not None
        assert [broken] == [each for each, _ in firing.freeze([broken], T, 1).broken]


async def test_e05_what_registration_accepts_comes_back_from_the_database(dsn: str, connection: Session) -> None:
    deep: dict[str, Any] = {}
    for _ in range(97):
        deep = {"d": deep}
    args = {
        "types": [None, True, False, 0, -1, 1.5, 1.0, 5e-324, 0.1, "", [], {}],
        "digits": 10**999,
        "deep": deep,
        "text": "\x01\x1f\x7f\u2028\ufeff\uffff\U0010ffff \\ \" ' $1 %s",
        "\x01 key \\": 1,
        "long": "é" * 100_000,
    }
    full = schedule(args=args, metadata={"own": args})
    async with a_node(dsn, connection) as node:
        await node.sync(T, full)
        before = await row_of(connection)
        await node.sync(T, full)
        assert before == await row_of(connection), "E05, P04"
        await node.evaluate(at("2026-01-01 11:00"))
    (job,) = await queue_actions.claim(
        connection, SCHEMA, kinds=["work"], queues=None, limit=1, worker="w", clock=at("2026-01-01 11:00")
    )
    assert args == job.args, "E05: nothing that is accepted is refused or changed at fire time"
    assert args == job.metadata["own"]
    assert [type(value) for value in args["types"]] == [type(value) for value in job.args["types"]]  # type: ignore[attr-defined]


NAMES = [
    "a'b; DROP TABLE awa.cron_jobs;--",
    "😀",
    "%s $1 {x}",
    'q"uote',
    "back\\slash",
    "x" * 200,
    "a, b",
    "{a}",
    "NULL",
]


async def test_e06_odd_names_go_through_everything(dsn: str, connection: Session) -> None:
    odd = [schedule(name, kind=name, queue=name, tags=[name], args={name: name}) for name in NAMES]
    async with a_node(dsn, connection) as node:
        await node.sync(T, *odd)
        before = [await row_of(connection, name) for name in NAMES]
        await node.sync(T, *odd)
        assert before == [await row_of(connection, name) for name in NAMES], "E06, P04"
        fires = await node.evaluate(at("2026-01-01 11:00"))
        await node.sync(at("2026-01-01 11:01"), *(schedule(name, "30 * * * *", kind="k") for name in NAMES))
    assert {name: every("2026-01-01 11:00") for name in NAMES} == fires, "E06: stored and fired literally"
    async with awa_cron.Client(dsn) as client:
        assert sorted(NAMES) == sorted(each.name for each in await client.list_schedules())
        for name in NAMES:
            await client.pause(name, by=name)
            assert name == (await client.get_schedule(name)).paused_by
            await client.resume(name)
            assert name == (await client.trigger(name)).cron_name
            await client.remove(name)
            assert 7 == len(await client.history(name))
    jobs = await connection.fetch(
        "SELECT kind, queue, tags, args::jsonb ->> kind AS arg FROM awa.jobs WHERE kind != 'k'"
    )
    assert {(name, name, (name,), name) for name in NAMES} == {
        (job["kind"], job["queue"], tuple(job["tags"]), job["arg"]) for job in jobs
    }


async def test_e06_ids_of_a_pass_belong_to_their_names(connection: Session) -> None:
    for name in NAMES:
        await write_row(connection, name, last_enqueued_at=T, missed_fire_policy="catch_up")
    state = await actions.read_cron_state(connection, SCHEMA, clock=at("2026-01-01 13:00"))
    frozen, *_ = firing.freeze(state.schedules, at("2026-01-01 13:00"), 100)
    made = await actions.atomic_enqueue(connection, SCHEMA, frozen, actor="t", clock=at("2026-01-01 13:00"))
    for name, ids in made.items():
        jobs = await connection.fetch(
            "SELECT metadata ->> 'cron_name', (metadata ->> 'cron_fire_time')::timestamptz FROM awa.jobs"
            " WHERE id = ANY ($1) ORDER BY id",
            ids,
        )
        instants = every("2026-01-01 11:00", "2026-01-01 12:00", "2026-01-01 13:00")
        assert [(name, instant) for instant in instants] == [tuple(job) for job in jobs], "P17: oldest first"
        assert sorted(ids) == list(ids), "P35: each id stands where its fire stands"
