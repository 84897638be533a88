"""Claims and outcomes, many at a time: each job of a batch is a step of its own."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from awa_cron import queue_actions
from awa_cron.database import Database
from awa_cron.errors import DatabaseError
from awa_cron.model import Job, JobState
from awa_cron.outcomes import Snooze
from awa_cron.settings import Settings
from awa_cron.settling import Settler
from awa_cron.sql import Schema
from tests.integration.support import (
    Session,
    a_session,
    a_worker,
    claim,
    insert_job,
    job_row,
    reaches,
    wait_until,
)

SCHEMA = Schema()


async def test_an_urgent_job_goes_before_any_number_of_older_ones(connection: Session) -> None:
    await connection.execute("INSERT INTO awa.jobs (kind, priority) SELECT 'work', 4 FROM generate_series(1, 200)")
    urgent = await insert_job(connection, priority=1)
    assert [urgent] == [job.id for job in await claim(connection, limit=1)]


async def test_a_worker_of_all_queues_takes_the_foremost_of_any(connection: Session) -> None:
    ids = {
        queue: await insert_job(connection, queue=queue, priority=priority)
        for queue, priority in (("a", 3), ("b", 1), ("c", 2), ("d", 1))
    }
    claimed = [(await claim(connection, limit=1))[0].id for _ in ids]
    assert [ids[queue] for queue in "bdca"] == claimed
    assert [] == await claim(connection)


async def test_what_others_are_claiming_is_passed_over_also_when_it_is_as_many_as_are_wanted(
    dsn: str, connection: Session
) -> None:
    ids = [await insert_job(connection) for _ in range(3)]
    async with a_session(dsn) as other, other.transaction():
        assert ids[:2] == [job.id for job in await claim(other, limit=2)]
        assert ids[2:] == [job.id for job in await claim(connection, limit=1)]


async def test_a_paused_backlog_keeps_no_other_queue_from_its_jobs(connection: Session) -> None:
    await connection.execute(
        "INSERT INTO awa.jobs (kind, queue, priority) SELECT 'work', 'paused', 1 FROM generate_series(1, 200)"
    )
    await queue_actions.pause_queue(connection, SCHEMA, "paused")
    other = await insert_job(connection, priority=4)
    assert [other] == [job.id for job in await claim(connection)]


async def test_in_a_batch_each_outcome_is_fenced_by_itself(connection: Session) -> None:
    lost_id, kept_id = [await insert_job(connection) for _ in range(2)]
    lost, kept = await claim(connection, limit=2)
    await connection.execute("UPDATE awa.jobs SET state = 'cancelled' WHERE id = $1", lost_id)
    settled = await queue_actions.finish(connection, SCHEMA, [lost, kept], worker="w")
    assert {(kept_id, 1): JobState.COMPLETED} == settled.written
    assert frozenset() == settled.held
    assert "cancelled" == (await job_row(connection, lost_id))["state"]


@pytest.mark.parametrize("action", ["finish", "fail", "snooze", "cancel_own"])
async def test_of_two_attempts_of_one_job_in_a_batch_the_last_is_written(connection: Session, action: str) -> None:
    job_id = await insert_job(connection)
    (first,) = await claim(connection)
    later = datetime.now(UTC) + timedelta(hours=1)
    await queue_actions.rescue(connection, SCHEMA, silent_for_s=60, clock=later)
    (second,) = await claim(connection, clock=later)
    match action:
        case "finish":
            settled = await queue_actions.finish(connection, SCHEMA, [first, second], worker="w")
        case "fail":
            both = [(first, {"error": "first"}, 0.0), (second, {"error": "second"}, 0.0)]
            settled = await queue_actions.fail(connection, SCHEMA, both, worker="w")
        case "snooze":
            settled = await queue_actions.snooze(connection, SCHEMA, [(first, 1), (second, 1)], worker="w")
        case _:
            reasons = [(first, {"error": "first"}), (second, {"error": "second"})]
            settled = await queue_actions.cancel_own(connection, SCHEMA, reasons, worker="w")
    assert [(job_id, 2)] == list(settled.written)
    assert "first" not in str((await job_row(connection, job_id))["errors"])


async def test_a_row_that_somebody_holds_keeps_no_other_outcome_waiting(dsn: str, connection: Session) -> None:
    held, free = [await insert_job(connection) for _ in range(2)]
    go = asyncio.Event()

    async def handle(_: Job) -> None:
        await go.wait()

    async with a_worker(dsn, handle):
        for job_id in (held, free):
            await reaches(connection, job_id, "running")
        async with a_session(dsn) as outsider, outsider.transaction():
            await outsider.execute("SELECT FROM awa.jobs WHERE id = $1 FOR UPDATE", held)
            go.set()
            await reaches(connection, free, "completed")
        row = await reaches(connection, held, "completed")
    assert (1, []) == (row["attempt"], row["errors"]), "written later, by the same attempt"


async def test_outcomes_that_come_together_are_one_statement(dsn: str, connection: Session) -> None:
    for _ in range(5):
        await insert_job(connection)
    jobs = await claim(connection, limit=5)
    async with Database(dsn, SCHEMA, Settings()) as database:
        settler = Settler(database, "w")
        outcomes = [Snooze(60.0) if number == 4 else None for number in range(5)]
        became = await asyncio.gather(*map(settler.settle, jobs, outcomes))
    assert [JobState.COMPLETED] * 4 + [JobState.SCHEDULED] == became
    finished = await connection.fetch("SELECT DISTINCT xmin::text FROM awa.jobs WHERE state = 'completed'")
    assert 1 == len(finished)


async def test_an_outcome_that_is_refused_takes_no_other_along(dsn: str, connection: Session) -> None:
    for _ in range(5):
        await insert_job(connection)
    jobs = await claim(connection, limit=5)
    await connection.execute(
        f"""
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$;
        CREATE TRIGGER refuse BEFORE UPDATE ON awa.jobs FOR EACH ROW WHEN (OLD.id = {jobs[2].id})
        EXECUTE FUNCTION refuse()
        """
    )
    async with Database(dsn, SCHEMA, Settings()) as database:
        settler = Settler(database, "w")
        became = await asyncio.gather(*(settler.settle(job, None) for job in jobs), return_exceptions=True)
    refused = became.pop(2)
    assert isinstance(refused, DatabaseError)
    assert "not this one" in str(refused)
    assert [JobState.COMPLETED] * 4 == became


async def test_a_row_that_is_held_for_too_long_is_an_error_that_names_the_job(
    dsn: str, connection: Session
) -> None:
    job_id = await insert_job(connection)
    (job,) = await claim(connection)
    async with (
        Database(dsn, SCHEMA, Settings(statement_timeout_s=0.2)) as database,
        a_session(dsn) as outsider,
        outsider.transaction(),
    ):
        await outsider.execute("SELECT FROM awa.jobs WHERE id = $1 FOR UPDATE", job_id)
        with pytest.raises(DatabaseError, match=f"another transaction holds the row of job {job_id}"):
            await Settler(database, "w").settle(job, None)


async def test_a_worker_that_is_cancelled_writes_the_outcomes_that_it_has(dsn: str, connection: Session) -> None:
    ids = [await insert_job(connection) for _ in range(5)]
    begun = 0

    async def handle(_: Job) -> None:
        nonlocal begun
        begun += 1
        await asyncio.sleep(0.3)

    async with a_worker(dsn, handle):

        async def all_have_begun() -> bool:
            return begun == len(ids)

        await wait_until(all_have_begun, "the handlers have begun")
    states = [(await job_row(connection, job_id))["state"] for job_id in ids]
    assert ["completed"] * 5 == states
