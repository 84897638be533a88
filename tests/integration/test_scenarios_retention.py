"""Retention: what is old goes, and nothing that anybody still asks."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

import awa_cron
from awa_cron import actions, queue_actions, retention
from awa_cron.errors import InvalidArgument
from awa_cron.insight.reasons import Reason
from awa_cron.retention import Purged
from awa_cron.sql import Schema
from tests.integration import commands
from tests.integration.support import (
    Session,
    a_node,
    at,
    enqueue,
    events_of,
    fires_of,
    freeze,
    insert_job,
    running,
    schedule,
    sync,
    wait_until,
    write_row,
)

SCHEMA = Schema()
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
ALL_STATES = ("scheduled", "available", "running", "retryable", "completed", "failed", "cancelled")


async def age_events(session: Session, than: str = "true", days: int = 40) -> None:
    """Let events be recorded so many days earlier."""
    await session.execute(
        f"UPDATE awa.cron_events SET recorded_at = recorded_at - interval '{days} days' WHERE {than}"
    )


async def old_job(session: Session, state: str = "completed") -> int:
    final = LONG_AGO + HOUR if state in {"completed", "failed", "cancelled"} else None
    return await insert_job(session, state=state, created_at=LONG_AGO, finalized_at=final)


async def purge(dsn: str, days: float = 30, *, jobs: bool = True, events: bool = True) -> Purged:
    async with awa_cron.Client(dsn) as client:
        return await client.purge(days * 86_400, jobs=jobs, events=events, by="ops")


async def test_old_jobs_that_are_done_with_are_deleted_and_no_others(dsn: str, connection: Session) -> None:
    ids = {state: await old_job(connection, state) for state in ALL_STATES}
    young = await insert_job(connection, state="completed", finalized_at=datetime.now(UTC))
    assert Purged(jobs=2, events=0) == await purge(dsn)
    left = {row["id"] for row in await connection.fetch("SELECT id FROM awa.jobs")}
    assert {young, *ids.values()} - {ids["completed"], ids["cancelled"]} == left
    (event,) = await events_of(connection, None)
    assert ("purge_finished", "ops", {"jobs": 2}) == (event["action"], event["actor"], event["details"])


async def test_a_job_made_long_ago_and_done_with_today_stays(dsn: str, connection: Session) -> None:
    job_id = await insert_job(connection, state="completed", created_at=LONG_AGO, finalized_at=datetime.now(UTC))
    assert Purged(jobs=0, events=0) == await purge(dsn)
    assert [job_id] == [row["id"] for row in await connection.fetch("SELECT id FROM awa.jobs")]


async def test_a_purge_goes_on_from_page_to_page(dsn: str, connection: Session) -> None:
    await connection.execute(
        "INSERT INTO awa.jobs (kind, state, created_at, finalized_at)"
        " SELECT 'work', CASE WHEN n % 2 = 0 THEN 'completed' ELSE 'failed' END, $1, $1"
        " FROM generate_series(1, $2::int) AS n",
        LONG_AGO,
        2 * retention.PAGE + 2,
    )
    assert Purged(jobs=retention.PAGE + 1, events=0) == await purge(dsn)


async def test_a_purge_reads_no_more_than_is_old(connection: Session) -> None:
    await old_job(connection)
    for _ in range(3):
        await insert_job(connection)
    first = await queue_actions.purge_finished(connection, SCHEMA, datetime.now(UTC) - HOUR, size=2)
    assert (1, True) == (first.purged, first.more)
    second = await queue_actions.purge_finished(
        connection, SCHEMA, datetime.now(UTC) - HOUR, after=first.last, size=2
    )
    assert (0, False) == (second.purged, second.more), "a whole page is younger"


@pytest.mark.parametrize("table", ["jobs", "cron_events"])
async def test_a_page_is_read_by_the_primary_key_however_long_the_table(connection: Session, table: str) -> None:
    await connection.execute("INSERT INTO awa.jobs (kind) SELECT 'work' FROM generate_series(1, 20000)")
    await connection.execute(
        "INSERT INTO awa.cron_events (clock, action) SELECT now(), 'remove' FROM generate_series(1, 20000)"
    )
    await connection.execute("ANALYZE")
    statement = SCHEMA.statement("purge_finished" if table == "jobs" else "purge_events")
    plan = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {statement}", LONG_AGO, 5_000, 1_000, None, None)
    found = {(node["Node Type"], node.get("Index Name")) for node in _nodes(json.loads(plan)[0]["Plan"])}
    assert ("Index Scan", f"{table}_pkey") in found, found
    assert not {kind for kind, _ in found if kind == "Seq Scan"}, found


def _nodes(plan: dict[str, object]) -> list[dict[str, object]]:
    below = plan.get("Plans", [])
    assert isinstance(below, list)
    return [plan, *(node for each in below for node in _nodes(each))]


async def test_an_instant_whose_job_and_events_are_deleted_does_not_fire_again(
    dsn: str, connection: Session
) -> None:
    fire = at("2026-01-01 01:00")
    await write_row(connection, anchored_at=at("2026-01-01 00:30"))
    stale = await freeze(connection, fire, expected=None)
    assert await enqueue(connection, fire, None)
    await connection.execute("UPDATE awa.jobs SET state = 'completed', created_at = $1, finalized_at = $1", fire)
    await age_events(connection)
    assert Purged(jobs=1, events=1) == await purge(dsn)
    assert {} == await actions.atomic_enqueue(connection, SCHEMA, [stale], actor="stale", clock=fire + HOUR / 2)
    async with a_node(dsn, connection) as node:
        assert {} == await node.evaluate(fire + HOUR / 2)


async def test_a_schedule_that_comes_back_after_a_purge_does_not_fire_again_for_the_past(
    dsn: str, connection: Session
) -> None:
    fire = at("2026-01-01 05:00")
    await write_row(connection, anchored_at=at("2026-01-01 00:30"))
    assert await enqueue(connection, fire, None)
    await actions.remove(connection, SCHEMA, "s", clock=fire)
    # It comes back and goes again before it has fired; that removal tells nothing.
    await sync(connection, fire, schedule())
    await actions.remove(connection, SCHEMA, "s", clock=fire)
    await age_events(connection)
    await purge(dsn)
    kept = await events_of(connection)
    assert [("remove", fire)] == [(each["action"], each["last_enqueued_at"]) for each in kept]
    back = fire - 3 * HOUR  # the clock has stepped back
    await sync(connection, back, schedule())
    async with a_node(dsn, connection) as node:
        for hours in range(5):
            await node.evaluate(back + hours * HOUR)
    assert [fire, fire + HOUR] == await fires_of(connection)


async def test_of_several_removals_the_one_that_tells_most_is_kept(dsn: str, connection: Session) -> None:
    await connection.execute(
        "INSERT INTO awa.cron_events (recorded_at, clock, action, name, last_enqueued_at)"
        " SELECT $1::timestamptz, $1, 'remove', 's', $1 + hours * interval '1 hour'"
        " FROM unnest('{1, 3, 2, 3}'::int[]) AS hours",
        LONG_AGO,
    )
    assert 3 == (await purge(dsn)).events
    (kept,) = await events_of(connection)
    assert (4, LONG_AGO + 3 * HOUR) == (kept["id"], kept["last_enqueued_at"])


async def test_events_are_deleted_up_to_the_first_that_is_younger(dsn: str, connection: Session) -> None:
    for _ in range(4):
        await write_row(connection)
        await actions.pause(connection, SCHEMA, "s")
        await connection.execute("DELETE FROM awa.cron_jobs")
    ids = [event["id"] for event in await events_of(connection)]
    await age_events(connection, f"id <> {ids[1]}")
    assert Purged(jobs=0, events=1) == await purge(dsn)
    assert ids[1:] == [event["id"] for event in await events_of(connection)], "no hole is left"


async def test_who_leads_is_known_after_a_purge(dsn: str, connection: Session) -> None:
    await actions.acquire_leader(connection, SCHEMA, actor="before")
    await actions.lose_leader(connection, SCHEMA, actor="before")
    await actions.acquire_leader(connection, SCHEMA, actor="now")
    await age_events(connection)
    assert 2 == (await purge(dsn)).events
    async with awa_cron.Client(dsn) as client:
        assert "now" == (await client.leadership()).actor


async def test_a_purged_log_still_balances_and_is_not_taken_for_a_whole_one(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await actions.acquire_leader(connection, SCHEMA, actor="node")
        await node.sync(at("2026-01-01 00:30"), schedule(), schedule("gone"), schedule("silent", "0 0 1 1 *"))
        for hour in range(1, 6):
            await node.evaluate(at(f"2026-01-01 {hour:02}:00"))
            if hour == 3:
                await actions.remove(connection, SCHEMA, "gone", clock=node.now)
                await connection.execute("UPDATE awa.jobs SET state = 'completed', finalized_at = created_at")
                last = await connection.fetchval("SELECT max(id) FROM awa.cron_events")
        await age_events(connection, f"id <= {last}")
        await connection.execute("UPDATE awa.jobs SET created_at = run_at")
    async with awa_cron.Client(dsn, clock=lambda: at("2026-01-01 05:30")) as client:
        assert (await client.verify()).from_start
    assert (await purge(dsn, jobs=False)).events > 5
    async with awa_cron.Client(dsn, clock=lambda: at("2026-01-01 05:30")) as client:
        verdict = await client.verify()
        assert verdict.balances, verdict.findings
        assert not verdict.from_start
        (told,) = await client.explain("s", at=at("2026-01-01 04:00"))
        assert Reason.ENQUEUED == told.reason


async def test_the_leader_deletes_what_its_settings_do_not_keep(dsn: str, connection: Session) -> None:
    job_id, dead = await old_job(connection), await old_job(connection, "failed")
    await queue_actions.pause_queue(connection, SCHEMA, "q")
    await age_events(connection)
    settings = awa_cron.Settings(
        keep_jobs_s=86_400, keep_events_s=86_400, purge_interval_s=0.1, election_interval_s=0.1
    )
    async with awa_cron.Client(dsn, settings=settings) as client, running(client.run_forever(work=False)):

        async def gone() -> bool:
            return not await connection.fetchval("SELECT count(*) FROM awa.jobs WHERE id = $1", job_id)

        await wait_until(gone, "the old job is deleted")
        await wait_until(
            lambda: connection.fetchval("SELECT count(*) = 0 FROM awa.cron_events WHERE action = 'pause_queue'"),
            "the old event is deleted",
        )
    assert 1 == await connection.fetchval("SELECT count(*) FROM awa.jobs WHERE id = $1", dead)


async def test_by_default_nothing_is_deleted(dsn: str, connection: Session) -> None:
    job_id = await old_job(connection)
    settings = awa_cron.Settings(purge_interval_s=0.05, election_interval_s=0.1, evaluate_interval_s=0.1)
    client = awa_cron.Client(dsn, settings=settings)
    client.periodic("s", "* * * * * *", kind="work")
    async with client, running(client.run_forever(work=False)):

        async def several() -> bool:
            return len(await fires_of(connection)) > 1

        await wait_until(several, "it has led for a while")
    assert await connection.fetchval("SELECT count(*) FROM awa.jobs WHERE id = $1", job_id)


@pytest.mark.parametrize("name", ["keep_jobs_s", "keep_events_s", "purge_interval_s"])
def test_a_time_to_keep_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"Settings.{name} is 0: it must be a number of seconds above 0"):
        awa_cron.Settings(**{name: 0})


@pytest.mark.parametrize("age", [0, -1, float("nan"), True, "30d"])
async def test_an_age_that_is_no_number_of_seconds_is_refused(dsn: str, age: float) -> None:
    async with awa_cron.Client(dsn) as client:
        with pytest.raises(InvalidArgument, match="older_than_s"):
            await client.purge(age)


async def test_the_command_counts_and_deletes(dsn: str, connection: Session) -> None:
    await old_job(connection)
    await old_job(connection, "failed")
    await connection.execute(
        "INSERT INTO awa.cron_events (recorded_at, clock, action, name, last_enqueued_at) VALUES"
        " ($1, $1, 'remove', 's', $1), ($1, $1, 'pause', 's', $1), ($1, $1, 'acquire_leader', NULL, NULL)",
        LONG_AGO,
    )

    def said(*arguments: str) -> str:
        done = commands.run("purge", *arguments, "--dsn", dsn)
        assert 0 == done.returncode, done.stderr
        return done.stdout.strip()

    old = ("--older-than", "30d", "--jobs", "--events")
    assert "would purge 1 jobs and 1 events" == said(*old, "--dry-run")
    assert "would purge 1 jobs" == said("--older-than", "30d", "--jobs", "--dry-run")
    assert "would purge 0 jobs and 0 events" == said("--older-than", "9999w", "--jobs", "--events", "--dry-run")
    assert "purged 1 jobs and 1 events" == said(*old)
    assert {"jobs": 0, "events": 0} == json.loads(said(*old, "--json"))


@pytest.mark.parametrize(
    "arguments", [("30d",), ("30", "--jobs"), ("0d", "--jobs"), ("-1d", "--jobs"), ("30y", "--jobs")]
)
def test_the_command_refuses_what_it_does_not_understand(arguments: tuple[str, ...]) -> None:
    done = commands.run("purge", "--older-than", *arguments, "--dsn", "postgresql://nowhere.invalid/x")
    assert 2 == done.returncode
    assert "--jobs" in done.stderr or "as in 30d" in done.stderr
