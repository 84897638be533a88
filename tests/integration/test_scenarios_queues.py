"""Queues as operators see them: pauses of both kinds, cancelling by schedule, the dead, jobs made by hand."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

import awa_cron
from awa_cron import actions, migrate, queue_actions
from awa_cron.errors import DatabaseError, DeadJobNotFound, InvalidArgument, ScheduleNotFound
from awa_cron.model import Job
from awa_cron.queue_actions import Selection
from awa_cron.sql import Schema
from tests.integration.support import (
    LEVELS,
    Session,
    a_node,
    a_session,
    a_worker,
    at,
    claim,
    events_of,
    every,
    insert_job,
    job_row,
    reaches,
    row_of,
    wait_until,
    waiting_sessions,
    write_row,
)

SCHEMA = Schema()
LABEL = '{"cron_name": "s"}'
ALL_STATES = ("scheduled", "available", "retryable", "running", "completed", "failed", "cancelled")


@pytest.mark.parametrize("schedule_paused", [False, True])
@pytest.mark.parametrize("queue_paused", [False, True])
async def test_p25_the_two_pauses_are_independent(
    dsn: str, connection: Session, schedule_paused: bool, queue_paused: bool
) -> None:
    await write_row(connection, last_enqueued_at=at("2026-01-01 00:00"), queue="email")
    earlier = await insert_job(connection, queue="email", metadata=LABEL, run_at=at("2026-01-01 00:00"))
    if schedule_paused:
        await actions.pause(connection, SCHEMA, "s", by="ops", clock=at("2026-01-01 00:30"))
    if queue_paused:
        assert await queue_actions.pause_queue(connection, SCHEMA, "email", by="ops", clock=at("2026-01-01 00:30"))
    async with a_node(dsn, connection) as node:
        fires = await node.evaluate(at("2026-01-01 01:00"))
    assert ({} if schedule_paused else {"s": every("2026-01-01 01:00")}) == fires, (
        "the schedule's pause alone decides"
    )
    last = at("2026-01-01 00:00") if schedule_paused else at("2026-01-01 01:00")
    assert last == (await row_of(connection))["last_enqueued_at"], "P24: a queue's pause does not hold it"
    claimed = await claim(connection, clock=at("2026-01-01 02:00"))
    heap = 1 if schedule_paused else 2
    assert (0 if queue_paused else heap) == len(claimed), "P23: the queue's pause alone decides"
    if queue_paused:
        assert await queue_actions.resume_queue(connection, SCHEMA, "email", clock=at("2026-01-01 02:00"))
        resumed = await claim(connection, clock=at("2026-01-01 02:00"))
        assert (heap, earlier) == (len(resumed), resumed[0].id), "P24: the heap is handed out, the oldest first"
    row = await row_of(connection)
    assert ((at("2026-01-01 00:30"), "ops") if schedule_paused else (None, None)) == (
        row["paused_at"], row["paused_by"],
    )  # fmt: skip


async def test_a_queues_pause_keeps_its_first_label_and_time(connection: Session) -> None:
    first, second = at("2026-01-01 10:00"), at("2026-01-01 11:00")
    assert await queue_actions.pause_queue(connection, SCHEMA, "email", by="ann", clock=first)
    assert not await queue_actions.pause_queue(connection, SCHEMA, "email", by="ben", clock=second)
    (row,) = await connection.fetch("SELECT * FROM awa.queue_meta")
    assert ("email", first, "ann") == tuple(row)
    assert await queue_actions.resume_queue(connection, SCHEMA, "email", by="cem", clock=second)
    assert not await queue_actions.resume_queue(connection, SCHEMA, "email", clock=second)
    assert not await queue_actions.resume_queue(connection, SCHEMA, "other", clock=second)
    (row,) = await connection.fetch("SELECT * FROM awa.queue_meta")
    assert ("email", None, None) == tuple(row)
    events = await events_of(connection, None)
    assert [
        ("pause_queue", "ann", first, {"queue": "email"}),
        ("resume_queue", "cem", second, {"queue": "email"}),
    ] == [(event["action"], event["actor"], event["clock"], event["details"]) for event in events]


@pytest.mark.parametrize("level", LEVELS)
async def test_of_two_who_pause_a_queue_at_once_one_did_it(dsn: str, connection: Session, level: str) -> None:
    async with a_session(dsn, level=level) as one, a_session(dsn, level=level) as other:
        await one.execute("BEGIN")
        assert await queue_actions.pause_queue(one, SCHEMA, "email", by="one")
        second = asyncio.ensure_future(queue_actions.pause_queue(other, SCHEMA, "email", by="other"))
        await wait_until(lambda: waiting_sessions(connection), "the second waits for the first")
        await one.execute("COMMIT")
        assert not await second
    assert "one" == await connection.fetchval("SELECT paused_by FROM awa.queue_meta")


async def test_a_resumed_queue_wakes_its_workers(dsn: str, connection: Session) -> None:
    ran: list[int] = []

    async def handler(job: Job) -> None:
        ran.append(job.id)

    await queue_actions.pause_queue(connection, SCHEMA, "default")
    job_id = await insert_job(connection)
    settings = awa_cron.Settings(poll_interval_s=30, shutdown_timeout_s=5)
    async with a_worker(dsn, handler, settings):
        listening = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
        await wait_until(lambda: connection.fetchval(listening), "it listens")
        assert [] == ran
        await queue_actions.resume_queue(connection, SCHEMA, "default")
        await wait_until(lambda: ran == [job_id], "without waiting for its poll of 30 s")


async def test_p24_in_a_paused_queue_all_but_claims_goes_on(connection: Session) -> None:
    for _ in range(5):
        await insert_job(connection, max_attempts=1, metadata=LABEL)
    done, failed, snoozed, void, silent = await claim(connection)
    await insert_job(connection, metadata=LABEL)
    await queue_actions.pause_queue(connection, SCHEMA, "default")
    assert (await queue_actions.finish(connection, SCHEMA, [done], worker="w")).written
    assert (await queue_actions.fail(connection, SCHEMA, [(failed, {}, 0)], worker="w")).written
    assert (await queue_actions.snooze(connection, SCHEMA, [(snoozed, 0)], worker="w")).written
    assert (await queue_actions.cancel_own(connection, SCHEMA, [(void, {})], worker="w")).written
    later = datetime.now(UTC) + timedelta(hours=1)
    assert {silent.id} == set(await queue_actions.rescue(connection, SCHEMA, silent_for_s=60, clock=later))
    assert [failed.id] == await queue_actions.retry_dead(connection, SCHEMA, Selection(ids=(failed.id,)))
    cancelled = await queue_actions.cancel_jobs(connection, SCHEMA, "s")
    assert cancelled is not None
    assert 3 == cancelled.waiting
    assert [] == await claim(connection, clock=later)


@pytest.mark.parametrize("running", [False, True])
async def test_p26_cancel_takes_a_schedules_jobs_and_only_them(
    dsn: str, connection: Session, running: bool
) -> None:
    await write_row(connection)
    named = {state: await insert_job(connection, state=state, metadata=LABEL) for state in ALL_STATES}
    others = [
        await insert_job(connection, state=state, metadata=metadata)
        for state in ALL_STATES
        for metadata in ('{"cron_name": "S"}', '{"other": "s"}', "{}")
    ]
    schedule_before = await row_of(connection)
    before = [await job_row(connection, job_id) for job_id in others]
    async with awa_cron.Client(dsn) as client:
        cancelled = await client.cancel_jobs("s", running=running, by="ops")
    counts = (cancelled.waiting, cancelled.signalled, cancelled.running)
    assert ((3, 1, 0) if running else (3, 0, 1)) == counts, "P26: says how many of each"
    expected = {
        state: "cancelled"
        if state in {"scheduled", "available", "retryable"} or (running and state == "running")
        else state
        for state in ALL_STATES
    }
    assert expected == {state: (await job_row(connection, job_id))["state"] for state, job_id in named.items()}
    assert before == [await job_row(connection, job_id) for job_id in others]
    assert schedule_before == await row_of(connection)
    (event,) = await events_of(connection, action="cancel_jobs")
    assert ("ops", {"waiting": 3, "signalled": int(running)}) == (event["actor"], event["details"])
    assert ([], []) == (event["fires"], event["job_ids"])


async def test_p26_a_removed_schedules_jobs_can_be_cancelled_and_an_unknown_name_is_not_found(
    dsn: str, connection: Session
) -> None:
    await insert_job(connection, metadata='{"cron_name": "gone"}')
    await write_row(connection, "idle")
    async with awa_cron.Client(dsn) as client:
        assert 1 == (await client.cancel_jobs("gone")).waiting
        assert 0 == (await client.cancel_jobs("gone")).waiting, "known by its cancelled job"
        assert 0 == (await client.cancel_jobs("idle")).waiting
        with pytest.raises(ScheduleNotFound, match="'nobody'"):
            await client.cancel_jobs("nobody")
    assert 1 == len(await events_of(connection, "gone")), "what changed nothing has no event"
    assert [] == await events_of(connection, "idle")


async def test_p26_verify_finds_no_fault_with_a_cancellation(dsn: str, connection: Session) -> None:
    client = awa_cron.Client(dsn)
    client.periodic("s", "* * * * *", kind="work")
    await actions.sync(connection, SCHEMA, client.schedules, actor="t", pass_limit=100)
    async with client:
        await client.trigger("s")
        await client.cancel_jobs("s")
        await client.pause_queue("default")
        assert (await client.verify(jobs_kept=True)).balances


async def dead_job(connection: Session, **columns: Any) -> int:
    """Return a job that has used up its attempts."""
    job_id = await insert_job(connection, max_attempts=1, **columns)
    (job,) = [each for each in await claim(connection) if each.id == job_id]
    await queue_actions.fail(connection, SCHEMA, [(job, {"error": "boom"}, 0)], worker="w")
    return job_id


async def test_p27_an_exhausted_job_is_among_the_dead_with_its_errors(dsn: str, connection: Session) -> None:
    job_id = await insert_job(connection, max_attempts=2, args='{"a": 1}', metadata=LABEL)
    for _ in range(2):
        (job,) = await claim(connection)
        assert [] == await connection.fetch("SELECT id FROM awa.jobs_dead")
        await queue_actions.fail(connection, SCHEMA, [(job, {"error": f"boom {job.attempt}"}, 0)], worker="w")
    (row,) = await connection.fetch("SELECT * FROM awa.jobs_dead")
    assert (job_id, 2, 2) == (row["id"], row["attempt"], len(row["errors"]))
    async with awa_cron.Client(dsn) as client:
        (dead,) = await client.list_dead()
        assert [dead] == await client.list_dead(cron_name="s", kind="work", queue="default")
        assert [] == await client.list_dead(cron_name="other")
        assert [] == await client.list_dead(queue="other")
    assert (["boom 1", "boom 2"], {"a": 1}) == ([error["error"] for error in dead.errors], dead.args)
    assert row["died_at"] == dead.died_at


async def test_p27_a_dead_job_that_is_retried_has_a_second_life_of_its_own_budget(
    dsn: str, connection: Session
) -> None:
    job_id = await dead_job(connection)
    async with awa_cron.Client(dsn) as client:
        assert [job_id] == await client.retry_dead([job_id], attempts=2, by="ops")
        with pytest.raises(DeadJobNotFound, match=str(job_id)):
            await client.retry_dead([job_id])
        row = await job_row(connection, job_id)
        assert ("available", 1, 3, None) == (
            row["state"], row["attempt"], row["max_attempts"], row["finalized_at"],
        )  # fmt: skip
        assert 1 == len(row["errors"]), "what it died of is kept"
        for _ in range(2):
            (job,) = await claim(connection)
            await queue_actions.fail(connection, SCHEMA, [(job, {}, 0)], worker="w")
        assert [job_id] == [job.id for job in await client.list_dead()]
    (event,) = await events_of(connection, None)
    assert ("retry_dead", "ops", {"jobs": 1}) == (event["action"], event["actor"], event["details"])


async def test_a_late_outcome_of_the_first_life_does_not_fit_the_second(connection: Session) -> None:
    job_id = await insert_job(connection, max_attempts=1)
    (first,) = await claim(connection)
    later = datetime.now(UTC) + timedelta(hours=1)
    await queue_actions.rescue(connection, SCHEMA, silent_for_s=60, clock=later)
    await queue_actions.retry_dead(connection, SCHEMA, Selection(ids=(job_id,)), clock=later)
    (second,) = await claim(connection, clock=later)
    assert not (await queue_actions.finish(connection, SCHEMA, [first], worker="w")).written
    assert (await queue_actions.finish(connection, SCHEMA, [second], worker="w")).written


async def test_only_the_dead_are_retried_or_purged(dsn: str, connection: Session) -> None:
    ids = {state: await insert_job(connection, state=state) for state in ALL_STATES}
    async with awa_cron.Client(dsn) as client:
        for act in (client.retry_dead, client.purge_dead):
            with pytest.raises(InvalidArgument, match="which dead jobs"):
                await act()
        assert [ids["failed"]] == await client.retry_dead(everything=True)
        await connection.execute("UPDATE awa.jobs SET state = 'failed' WHERE id = $1", ids["failed"])
        for state, job_id in ids.items():
            if state != "failed":
                with pytest.raises(DeadJobNotFound):
                    await client.purge_dead([job_id])
        assert [ids["failed"]] == await client.purge_dead(everything=True)
    left = await connection.fetch("SELECT state FROM awa.jobs ORDER BY id")
    assert [state for state in ALL_STATES if state != "failed"] == [row["state"] for row in left]


async def test_the_dead_are_chosen_by_what_they_are(dsn: str, connection: Session) -> None:
    old = await insert_job(connection, state="failed", finalized_at=at("2026-01-01 00:00"), metadata=LABEL)
    email = await insert_job(connection, state="failed", finalized_at=at("2026-01-02 00:00"), queue="email")
    other = await insert_job(connection, state="failed", finalized_at=at("2026-01-03 00:00"), kind="other")
    async with awa_cron.Client(dsn) as client:
        assert [] == await client.purge_dead(cron_name="s", queue="email"), "all that is given has to fit"
        assert [old] == await client.purge_dead(cron_name="s")
        assert [email] == await client.purge_dead(before=at("2026-01-03 00:00"))
        assert [other] == await client.retry_dead(kind="other")


async def test_a_second_life_beyond_the_limit_is_refused(dsn: str, connection: Session) -> None:
    job_id = await insert_job(connection, state="failed", attempt=999, max_attempts=999)
    async with awa_cron.Client(dsn) as client:
        with pytest.raises(DeadJobNotFound):
            await client.retry_dead([job_id], attempts=2)
        assert [job_id] == await client.retry_dead([job_id], attempts=1)
        for attempts in (0, 1001, True, 1.5):
            with pytest.raises(InvalidArgument, match="attempts"):
                await client.retry_dead([job_id], attempts=attempts)  # type: ignore[arg-type]
        for bad in (-1, 2**63, "1", None):
            with pytest.raises(InvalidArgument, match="job id"):
                await client.purge_dead([bad])  # type: ignore[list-item]


async def test_queues_are_listed_with_what_is_in_them(dsn: str, connection: Session) -> None:
    await write_row(connection, queue="reports")
    for state in ALL_STATES:
        await insert_job(connection, state=state, queue="email")
    await insert_job(connection, state="completed", queue="history")
    async with awa_cron.Client(dsn) as client:
        await client.pause_queue("email", by="ops")
        await client.pause_queue("ahead")
        queues = {queue.name: queue for queue in await client.list_queues()}
    assert ["ahead", "email", "reports"] == sorted(queues)
    email = queues["email"]
    assert (0, 3, 1, 1, "ops") == (email.schedules, email.waiting, email.running, email.dead, email.paused_by)
    assert (1, None) == (queues["reports"].schedules, queues["reports"].paused_at)


@pytest.mark.parametrize("name", ["", " ", "a\n", "x" * 201, 5, None])
async def test_a_queue_that_no_job_can_have_is_refused(dsn: str, connection: Session, name: object) -> None:
    async with awa_cron.Client(dsn) as client:
        for act in (client.pause_queue, client.resume_queue):
            with pytest.raises(InvalidArgument, match="queue"):
                await act(name)  # type: ignore[arg-type]


async def test_a_job_made_by_hand_runs_like_any_other(dsn: str, connection: Session) -> None:
    seen: list[Job] = []

    async def handler(job: Job) -> None:
        seen.append(job)

    async with awa_cron.Client(dsn) as client, a_worker(dsn, handler):
        made = await client.enqueue(
            "work", {"n": 1}, queue="email", priority=1, max_attempts=3, tags=["t"], metadata={"m": 2}, deadline_s=9
        )
        await reaches(connection, made.id, "completed")
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        later = await client.enqueue("work", run_at=tomorrow)
    (job,) = seen
    assert (made.id, {"n": 1}, "email", 1, 3, ("t",), {"m": 2}, 9.0, None, None) == (
        job.id, job.args, job.queue, job.priority, job.max_attempts, job.tags, job.metadata, job.deadline_s,
        job.cron_name, job.fire_time,
    )  # fmt: skip
    row = await job_row(connection, later.id)
    assert ("scheduled", tomorrow, "{}") == (row["state"], row["run_at"], row["args"])


async def test_a_job_of_the_callers_transaction_comes_with_its_commit(dsn: str, connection: Session) -> None:
    client = awa_cron.Client()
    async with a_session(dsn) as session:
        await session.execute("BEGIN")
        await client.enqueue("work", connection=session)
        await session.execute("ROLLBACK")
        assert [] == await connection.fetch("SELECT id FROM awa.jobs")
        async with session.transaction():
            job = await client.enqueue("work", connection=session)
            assert [] == await connection.fetch("SELECT id FROM awa.jobs")
        assert [job.id] == [row["id"] for row in await connection.fetch("SELECT id FROM awa.jobs")]
    async with asyncpg.create_pool(dsn, min_size=1, max_size=1) as pool, pool.acquire() as lent:
        assert job.id < (await client.enqueue("work", connection=lent)).id, "a pool's connection too"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"kind": ""}, "kind"),
        ({"args": [1]}, "args"),
        ({"args": {"at": datetime.now(UTC)}}, "args"),
        ({"args": {"x": float("nan")}}, "args"),
        ({"priority": 5}, "priority"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"queue": " email"}, "queue"),
        ({"tags": "t"}, "tags"),
        ({"metadata": {"cron_name": "s"}}, "cron_name"),
        ({"run_at": datetime(2026, 1, 1)}, "run_at"),  # noqa: DTZ001
        ({"run_at": "tomorrow"}, "run_at"),
        ({"run_at": datetime.min.replace(tzinfo=UTC)}, "years 2 to 9998"),
        ({"run_at": datetime.max.replace(tzinfo=UTC)}, "years 2 to 9998"),
        ({"deadline_s": 0}, "deadline_s"),
        ({"connection": object()}, "asyncpg"),
    ],
)
async def test_a_job_that_cannot_be_stored_is_refused(dsn: str, values: dict[str, Any], said: str) -> None:
    async with awa_cron.Client(dsn) as client:
        with pytest.raises(InvalidArgument, match=said):
            await client.enqueue(**({"kind": "work"} | values))


async def test_a_client_that_is_not_entered_cannot_enqueue_on_its_own() -> None:
    with pytest.raises(InvalidArgument, match="not connected"):
        await awa_cron.Client("postgresql://nowhere").enqueue("work")


async def test_an_aborted_transaction_is_a_database_error(dsn: str) -> None:
    async with a_session(dsn) as session:
        await session.execute("BEGIN")
        with pytest.raises(asyncpg.PostgresError):
            await session.execute("SELECT 1 / 0")
        with pytest.raises(DatabaseError, match="submit"):
            await awa_cron.Client().enqueue("work", connection=session)


async def test_an_existing_deployment_migrates_and_keeps_its_rows(connection: Session) -> None:
    await connection.execute("DROP SCHEMA awa CASCADE; CREATE SCHEMA awa")
    (_, title, first), *_ = SCHEMA.migrations()
    await connection.execute("CREATE TABLE awa.cron_migrations (version integer PRIMARY KEY, name text NOT NULL,"
                             " applied_at timestamptz NOT NULL DEFAULT now())")  # fmt: skip
    await connection.execute(first)
    await connection.execute("INSERT INTO awa.cron_migrations (version, name) VALUES (1, $1)", title)
    await write_row(connection)
    job_id = await insert_job(connection, state="failed", errors=[json.dumps({"error": "boom"})])
    assert [2, 3] == await migrate.migrate(connection, SCHEMA)
    assert (await row_of(connection))["next_fire_at"] is None, "the next leader works it out"
    assert [job_id] == [row["id"] for row in await connection.fetch("SELECT id FROM awa.jobs_dead")]
    assert (await row_of(connection))["deadline_s"] is None
