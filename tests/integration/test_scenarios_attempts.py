"""Attempts: retries and their budget, fencing after a rescue, and what a stopping worker waits for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from awa_cron import queue_actions
from awa_cron.model import Job, JobState
from awa_cron.outcomes import Cancel, Snooze
from awa_cron.settings import Settings
from awa_cron.settling import retry_delay_s
from awa_cron.sql import Schema
from tests.integration.support import (
    LEVELS,
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


async def test_p27_a_failing_handler_is_retried_until_its_budget_is_used_up(dsn: str, connection: Session) -> None:
    attempts: list[int] = []

    def handler(job: Job) -> None:
        attempts.append(job.attempt)
        raise ValueError("boom\0 \ud800")

    job_id = await insert_job(connection, max_attempts=2)
    async with a_worker(dsn, handler):
        row = await reaches(connection, job_id, "retryable")
        waits_s = (row["run_at"] - row["attempted_at"]).total_seconds()
        assert 2 <= waits_s < 4, "P27: the backoff lies in the future"
        assert row["finalized_at"] is None
        assert [1] == attempts
        await connection.execute("UPDATE awa.jobs SET run_at = now() WHERE id = $1", job_id)
        row = await reaches(connection, job_id, "failed")
    assert [1, 2] == attempts, "P27: the job's own max_attempts"
    assert row["finalized_at"] is not None, "P27: dead-lettered, not lost"
    assert 2 == len(row["errors"])
    assert "ValueError: boom" in row["errors"][0]
    assert "test_scenarios_attempts.py" in row["errors"][0], "with the traceback"


@pytest.mark.parametrize(
    "raised",
    [
        asyncio.CancelledError,
        TimeoutError,
        lambda: RuntimeError("x" * 100_000),
        lambda: Odd("x"),
        lambda: Interrupting("x"),
        lambda: SystemExit(3),
        KeyboardInterrupt,
        GeneratorExit,
        StopIteration,
    ],
    ids=[
        "cancelled",
        "timeout",
        "long",
        "unprintable",
        "interrupting",
        "exit",
        "interrupt",
        "generator exit",
        "stop iteration",
    ],
)
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_p27_whatever_a_handler_raises_the_worker_goes_on(
    dsn: str, connection: Session, raised: Callable[[], BaseException], kind: str
) -> None:
    def in_a_thread(job: Job) -> None:
        if job.args:
            raise raised()

    async def on_the_loop(job: Job) -> None:
        in_a_thread(job)

    handler = on_the_loop if kind == "async" else in_a_thread
    bad = await insert_job(connection, args='{"bad": 1}')
    good = await insert_job(connection)
    async with a_worker(dsn, handler):
        await reaches(connection, good, "completed")
        row = await reaches(connection, bad, "retryable")
        again = await insert_job(connection)
        await reaches(connection, again, "completed")
    assert len(row["errors"][0]) < 50_000


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize(
    ("said", "state"), [(ValueError("only returned"), "completed"), (Snooze, "retryable"), (Cancel, "retryable")]
)
async def test_an_error_that_is_returned_is_none_and_a_class_that_is_returned_is_one(
    dsn: str, connection: Session, said: object, state: str, kind: str
) -> None:
    async def on_the_loop(_: Job) -> object:
        return said

    job_id = await insert_job(connection)
    async with a_worker(dsn, on_the_loop if kind == "async" else lambda _: said):
        row = await reaches(connection, job_id, state)
    if state == "retryable":
        assert "return Snooze(" in row["errors"][0] or "return Cancel(" in row["errors"][0]


async def test_a_coroutine_that_comes_after_the_deadline_is_not_begun(dsn: str, connection: Session) -> None:
    begun: list[int] = []

    async def later(job: Job) -> None:
        begun.append(job.id)

    def handler(job: Job) -> object:
        job.cancellation.wait(10)
        return later(job)

    job_id = await insert_job(connection, deadline_s=0.2)
    async with a_worker(dsn, handler):
        row = await reaches(connection, job_id, "retryable")
        assert "deadline" in row["errors"][0]
    assert [] == begun


UNREADABLE = {
    "nested": {"args": "[" * 3_000 + "]" * 3_000},
    "digits": {"args": "9" * 5_000},
    "metadata": {"metadata": '{"n": ' + "9" * 5_000 + "}"},
}
"""What Postgres stores, and Python does not read."""


@pytest.mark.parametrize("what", sorted(UNREADABLE))
async def test_a_job_that_cannot_be_read_fails_alone(dsn: str, connection: Session, what: str) -> None:
    bad = await insert_job(connection, **UNREADABLE[what])
    good = [await insert_job(connection, max_attempts=1) for _ in range(3)]
    ran: list[int] = []
    async with a_worker(dsn, lambda job: ran.append(job.id)):
        for job_id in good:
            await reaches(connection, job_id, "completed")
        row = await reaches(connection, bad, "retryable")
    assert "cannot be read" in row["errors"][0]
    assert good == sorted(ran)


@pytest.mark.parametrize("run_at", ["-infinity", "4000-01-01 BC"])
@pytest.mark.parametrize("column", ["run_at", "created_at"])
async def test_a_job_of_a_year_that_python_has_not_runs_all_the_same(
    dsn: str, connection: Session, column: str, run_at: str
) -> None:
    odd = await insert_job(connection)
    await connection.execute(f"UPDATE awa.jobs SET {column} = '{run_at}' WHERE id = {odd}")
    jobs = [odd] + [await insert_job(connection, max_attempts=1) for _ in range(3)]
    done = f"SELECT count(*) = 4 FROM awa.jobs WHERE state = 'completed' AND id IN {tuple(jobs)}"
    async with a_worker(dsn, lambda job: f"{job!r} {job.run_at.isoformat()}"):
        await wait_until(lambda: connection.fetchval(done), "all have run")


@pytest.mark.parametrize(("then_waits", "state"), [(False, "completed"), (True, "retryable")])
async def test_a_handler_that_cancels_its_own_task_harms_nobody_else(
    dsn: str, connection: Session, then_waits: bool, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_: Job) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if then_waits:
            await asyncio.sleep(60)

    caplog.set_level(logging.INFO, "awa_cron")
    job_id = await insert_job(connection)
    async with a_worker(dsn, handler):
        await reaches(connection, job_id, state)
        await wait_until(lambda: state in caplog.messages, "its outcome is told")


class Odd(Exception):
    def __str__(self) -> str:
        raise ValueError("an error that cannot be shown")


class Interrupting(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


def test_p27_the_backoff_grows_and_is_bounded() -> None:
    assert [2.0, 4.0, 8.0] == [retry_delay_s(attempt, 0) for attempt in (1, 2, 3)]
    assert 10.0 == retry_delay_s(3, 1)
    assert [86400.0] * 2 == [retry_delay_s(attempt, 1) for attempt in (17, 1000)]


@pytest.mark.parametrize("level", LEVELS)
async def test_a_worker_whose_job_was_rescued_can_write_nothing(dsn: str, connection: Session, level: str) -> None:
    job_id = await insert_job(connection)
    async with a_session(dsn, level=level) as slow, a_session(dsn, level=level) as other:
        (mine,) = await claim(slow, worker="slow")
        assert {} == await queue_actions.rescue(other, SCHEMA, silent_for_s=60), "it is not silent yet"
        later = datetime.now(UTC) + timedelta(seconds=61)
        rescued = await queue_actions.rescue(other, SCHEMA, silent_for_s=60, clock=later)
        assert {job_id: JobState.RETRYABLE} == rescued
        (theirs,) = await claim(other, worker="other", clock=later)
        before = await job_row(connection, job_id)
        assert not (await queue_actions.finish(slow, SCHEMA, [mine], worker="slow")).written
        failed = (await queue_actions.fail(slow, SCHEMA, [(mine, {}, 1)], worker="slow")).written
        assert not failed
        assert set() == await queue_actions.heartbeat(slow, SCHEMA, [(job_id, mine.attempt)], worker="slow")
        assert before == await job_row(connection, job_id), "fenced by worker and attempt"
        assert (2, 1) == (theirs.attempt, len(before["errors"]))
        assert (await queue_actions.finish(other, SCHEMA, [theirs], worker="other")).written


async def test_the_same_workers_earlier_attempt_is_fenced_too(connection: Session) -> None:
    await insert_job(connection)
    (first,) = await claim(connection)
    later = datetime.now(UTC) + timedelta(hours=1)
    await queue_actions.rescue(connection, SCHEMA, silent_for_s=60, clock=later)
    (second,) = await claim(connection, clock=later)
    assert not (await queue_actions.finish(connection, SCHEMA, [first], worker="w")).written
    assert not (await queue_actions.fail(connection, SCHEMA, [(first, {}, 1)], worker="w")).written  # fmt: skip
    assert (await queue_actions.finish(connection, SCHEMA, [second], worker="w")).written
    assert not (await queue_actions.finish(connection, SCHEMA, [second], worker="w")).written, "only once"


async def test_another_worker_cannot_end_an_attempt(connection: Session) -> None:
    job_id = await insert_job(connection)
    (mine,) = await claim(connection, worker="mine")
    before = await job_row(connection, job_id)
    assert not (await queue_actions.finish(connection, SCHEMA, [mine], worker="other")).written
    assert not (await queue_actions.fail(connection, SCHEMA, [(mine, {}, 1)], worker="other")).written
    assert set() == await queue_actions.heartbeat(connection, SCHEMA, [(job_id, mine.attempt)], worker="other")
    assert before == await job_row(connection, job_id)


async def test_p27_a_rescue_of_the_last_attempt_fails_the_job(connection: Session) -> None:
    job_id = await insert_job(connection, max_attempts=1)
    await claim(connection)
    later = datetime.now(UTC) + timedelta(hours=1)
    rescued = await queue_actions.rescue(connection, SCHEMA, silent_for_s=60, clock=later)
    row = await job_row(connection, job_id)
    assert ({job_id: JobState.FAILED}, later) == (rescued, row["finalized_at"])
    assert "fell silent" in row["errors"][0]


async def test_a_running_job_is_renewed_and_a_silent_one_rescued(dsn: str, connection: Session) -> None:
    settings = Settings(poll_interval_s=0.1, heartbeat_interval_s=0.1, rescue_after_s=0.6, shutdown_timeout_s=5)
    release = asyncio.Event()

    async def handler(job: Job) -> None:
        if job.attempt == 1 and job.args:
            await release.wait()

    silent = await insert_job(connection)
    await claim(connection, worker="dead")
    long = await insert_job(connection, args='{"long": 1}')
    async with a_worker(dsn, handler, settings):
        rescued = await reaches(connection, silent, "completed")
        await asyncio.sleep(0.7)
        running_row = await job_row(connection, long)
        release.set()
        await reaches(connection, long, "completed")
    assert (2, "the worker") == (rescued["attempt"], rescued["attempted_by"]), "taken from the dead worker"
    assert ("running", 1) == (running_row["state"], running_row["attempt"]), "its heartbeat kept it"


async def test_cancelling_a_worker_lets_its_handlers_finish(dsn: str, connection: Session) -> None:
    started = asyncio.Event()
    finished: list[str] = []

    async def handler(job: Job) -> None:
        started.set()
        await asyncio.sleep(0.4)
        finished.append("async")

    job_id = await insert_job(connection)
    async with a_worker(dsn, handler), asyncio.timeout(10):
        await started.wait()
        waiting = await insert_job(connection, run_at=datetime.now(UTC) + timedelta(seconds=60))
    assert ["async"] == finished, "drained"
    assert ["completed", "available"] == [(await job_row(connection, each))["state"] for each in (job_id, waiting)]


async def test_a_worker_that_stops_while_it_claims_still_runs_what_it_has_claimed(
    dsn: str, connection: Session
) -> None:
    ran: list[int] = []

    async def handler(job: Job) -> None:
        ran.append(job.id)

    await connection.execute(
        """
        CREATE FUNCTION claims_slowly() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_sleep(0.3);
            RETURN NEW;
        EXCEPTION WHEN query_canceled THEN
            RETURN NEW;  -- too late: it commits
        END
        $$;
        CREATE TRIGGER claims_slowly BEFORE UPDATE ON awa.jobs FOR EACH ROW
            WHEN (NEW.state = 'running' AND OLD.state = 'available') EXECUTE FUNCTION claims_slowly()
        """
    )
    jobs = [await insert_job(connection, max_attempts=1) for _ in range(2)]
    async with a_worker(dsn, handler):
        await wait_until(
            lambda: connection.fetchval("SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"),
            "it claims",
        )
    assert ["completed"] * 2 == [(await job_row(connection, job))["state"] for job in jobs]
    assert jobs == sorted(ran)


async def test_a_handler_that_takes_too_long_is_cancelled_and_its_job_waits_again(
    dsn: str, connection: Session
) -> None:
    started = asyncio.Event()

    async def handler(job: Job) -> None:
        started.set()
        await asyncio.sleep(60)

    settings = Settings(poll_interval_s=0.1, shutdown_timeout_s=0.2)
    job_id = await insert_job(connection)
    async with a_worker(dsn, handler, settings), asyncio.timeout(10):
        await started.wait()
    row = await job_row(connection, job_id)
    assert ("retryable", 1) == (row["state"], row["attempt"])
    assert "worker stopped" in row["errors"][0]
    assert set() == {task for task in asyncio.all_tasks() if task.get_name().startswith("awa_cron")}


async def test_an_outcome_that_cannot_be_written_at_once_is_written_later(dsn: str, connection: Session) -> None:
    async with a_session(dsn) as holder:

        async def handler(job: Job) -> None:
            await holder.execute("BEGIN; LOCK TABLE awa.jobs IN ACCESS EXCLUSIVE MODE")
            asyncio.get_running_loop().call_later(0.5, release.set)

        release = asyncio.Event()
        job_id = await insert_job(connection)
        async with a_worker(dsn, handler, Settings(statement_timeout_s=0.3, poll_interval_s=30)):
            await release.wait()
            await holder.execute("COMMIT")
            row = await reaches(connection, job_id, "completed")
    assert (1, []) == (row["attempt"], row["errors"]), "the handler's success outlives a short outage"


async def test_an_attempt_that_outlives_its_rescue_leaves_the_next_one_alone(dsn: str, connection: Session) -> None:
    """A worker that was frozen may claim, when it wakes, the very job that was taken from it."""
    gates = {1: asyncio.Event(), 2: asyncio.Event()}
    entered: list[int] = []

    async def handler(job: Job) -> None:
        entered.append(job.attempt)
        await gates[job.attempt].wait()

    job_id = await insert_job(connection)
    async with a_worker(dsn, handler) as worker:
        await wait_until(lambda: entered == [1], "the first attempt runs")
        await connection.execute("UPDATE awa.jobs SET heartbeat_at = now() - interval '1 day'")
        await queue_actions.rescue(connection, SCHEMA, silent_for_s=60)
        await wait_until(lambda: entered == [1, 2], "the same worker runs the second")
        gates[1].set()
        await asyncio.sleep(0.2)
        assert "running" == (await job_row(connection, job_id))["state"], "the first attempt's end changes nothing"
        asyncio.get_running_loop().call_later(0.3, gates[2].set)
    assert worker is not None
    row = await job_row(connection, job_id)
    assert ("completed", 2) == (row["state"], row["attempt"]), (
        "and the worker waited for the second when it stopped"
    )
