"""Jobs are run: in order, once at a time, again after failures, and not by those who lost them."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import awa_cron
from awa_cron import actions, queue_actions
from awa_cron.database import Database
from awa_cron.model import Job, JobState
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from awa_cron.worker import Handler, Worker, retry_delay_s
from tests.integration.support import LEVELS, Session, a_session, running, wait_until, write_row

SCHEMA = Schema()
HASTY = Settings(poll_interval_s=0.1, statement_timeout_s=5, shutdown_timeout_s=5)
PATIENT = Settings(poll_interval_s=30, statement_timeout_s=5, shutdown_timeout_s=5)


async def insert_job(session: Session, **columns: Any) -> int:
    values = {"kind": "work"} | columns
    places = ", ".join(f"${i}" for i in range(1, len(values) + 1))
    job_id: int = await session.fetchval(
        f"INSERT INTO awa.jobs ({', '.join(values)}) VALUES ({places}) RETURNING id", *values.values()
    )
    return job_id


async def job_row(session: Session, job_id: int) -> dict[str, Any]:
    row = await session.fetchrow("SELECT * FROM awa.jobs WHERE id = $1", job_id)
    assert row is not None
    return dict(row)


async def reaches(session: Session, job_id: int, state: str) -> dict[str, Any]:
    async def there() -> bool:
        return bool((await job_row(session, job_id))["state"] == state)

    await wait_until(there, f"job {job_id} is {state}")
    return await job_row(session, job_id)


async def claim(session: Session, *, limit: int = 10, worker: str = "w", **fields: Any) -> list[Job]:
    arguments = {"kinds": ["work"], "queues": None} | fields
    return await queue_actions.claim(session, SCHEMA, limit=limit, worker=worker, **arguments)


@asynccontextmanager
async def a_worker(
    dsn: str, handler: Handler, settings: Settings = HASTY, queues: list[str] | None = None
) -> AsyncIterator[Worker]:
    async with Database(dsn, SCHEMA, settings, pool_size=4) as database:
        worker = Worker(database, {"work": handler}, queues, "the worker")
        async with running(worker.run()):
            yield worker


async def test_async_and_sync_handlers_get_the_job(dsn: str, connection: Session) -> None:
    await write_row(connection, args='{"to": ["ops"]}', metadata='{"m": 1}', tags=["t"], queue="q", priority=3)
    seen: dict[str, Job] = {}
    threads: set[str] = set()

    async def async_handler(job: Job) -> None:
        await asyncio.sleep(0)
        seen["async"] = job

    def sync_handler(job: Job) -> None:
        threads.add(threading.current_thread().name)
        seen["sync"] = job

    for name, handler in {"async": async_handler, "sync": sync_handler}.items():
        made = await actions.trigger(connection, SCHEMA, "s")
        assert made is not None
        async with a_worker(dsn, handler):
            row = await reaches(connection, made.id, "completed")
        job = seen[name]
        assert (made.id, {"to": ["ops"]}, "s", ("t",), "q", 3) == (
            job.id, job.args, job.cron_name, job.tags, job.queue, job.priority,
        )  # fmt: skip
        assert (1, 1, "the worker", JobState.RUNNING) == (
            row["attempt"],
            job.attempt,
            row["attempted_by"],
            job.state,
        )
        assert row["finalized_at"] >= row["attempted_at"]
    (thread,) = threads
    assert thread.startswith("awa_cron job"), "a sync handler does not block the loop"


async def test_a_callable_object_and_a_sync_function_that_returns_a_coroutine_are_handlers(
    dsn: str, connection: Session
) -> None:
    done: list[int] = []

    class Handles:
        async def __call__(self, job: Job) -> None:
            await asyncio.sleep(0)
            done.append(job.id)

    async def keyword(job: Job, *, extra: int) -> None:
        await asyncio.sleep(0)
        done.append(job.id + extra)

    for handler in (Handles(), functools.partial(keyword, extra=0)):
        job_id = await insert_job(connection)
        async with a_worker(dsn, handler):
            await reaches(connection, job_id, "completed")
    assert [1, 2] == done, "completed means that the coroutine has run"


async def test_a_notification_wakes_a_worker_before_its_poll(dsn: str, connection: Session) -> None:
    ran = asyncio.Event()

    async def handler(job: Job) -> None:
        ran.set()

    async with a_worker(dsn, handler, PATIENT, ["email"]):
        listening = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
        await wait_until(lambda: connection.fetchval(listening), "it listens")
        await asyncio.sleep(0.2)  # the claim after LISTEN is over
        started = time.monotonic()
        await insert_job(connection, queue="email")
        async with asyncio.timeout(5):
            await ran.wait()
        woken_s = time.monotonic() - started
    assert woken_s < 2, "well under the poll interval of 30 s"


async def test_a_worker_goes_on_when_its_listening_session_ends(dsn: str, connection: Session) -> None:
    ran = asyncio.Event()

    async def handler(job: Job) -> None:
        ran.set()

    async with a_worker(dsn, handler, HASTY):
        listener = "SELECT pid FROM pg_stat_activity WHERE application_name = 'awa_cron listener'"
        listener += " AND datname = current_database()"
        await wait_until(lambda: connection.fetchval(listener), "it listens")
        pid = await connection.fetchval(listener)
        await connection.execute("SELECT pg_terminate_backend($1)", pid)

        async def another() -> bool:
            return await connection.fetchval(listener) not in {None, pid}

        await insert_job(connection)
        async with asyncio.timeout(5):
            await ran.wait()
        await wait_until(another, "it listens again")


async def test_jobs_are_handed_out_by_priority_then_age(connection: Session) -> None:
    now = datetime.now(UTC)
    older, newer = now - timedelta(minutes=2), now - timedelta(minutes=1)
    low = await insert_job(connection, priority=4, run_at=older)
    second = await insert_job(connection, priority=1, run_at=newer)
    first = await insert_job(connection, priority=1, run_at=older)
    third = await insert_job(connection, priority=1, run_at=newer)
    await insert_job(connection, priority=1, run_at=now + timedelta(hours=1))
    await insert_job(connection, priority=1, kind="unknown")
    claimed = [[job.id for job in await claim(connection, limit=2)] for _ in range(3)]
    assert [[first, second], [third, low], []] == claimed, "(priority, run_at, id), and only what is due and known"


@pytest.mark.parametrize(
    ("state", "handed_out"),
    [("scheduled", True), ("available", True), ("retryable", True), ("running", False), ("completed", False),
     ("failed", False), ("cancelled", False)],
)  # fmt: skip
async def test_only_waiting_jobs_are_handed_out(connection: Session, state: str, handed_out: bool) -> None:
    job_id = await insert_job(connection, state=state)
    assert ([job_id] if handed_out else []) == [job.id for job in await claim(connection)]


async def test_a_worker_takes_jobs_of_its_queues_only(dsn: str, connection: Session) -> None:
    done: list[str] = []

    async def handler(job: Job) -> None:
        done.append(job.queue)

    other = await insert_job(connection, queue="other")
    mine = await insert_job(connection, queue="email")
    async with a_worker(dsn, handler, HASTY, ["email"]):
        await reaches(connection, mine, "completed")
    assert ["email"] == done
    assert "available" == (await job_row(connection, other))["state"]


async def test_a_job_that_is_being_claimed_is_passed_over(dsn: str, connection: Session) -> None:
    held, free = await insert_job(connection), await insert_job(connection)
    async with a_session(dsn) as holder:
        await holder.execute(f"BEGIN; SELECT 1 FROM awa.jobs WHERE id = {held} FOR UPDATE")
        async with asyncio.timeout(5):
            assert [free] == [job.id for job in await claim(connection)], "SKIP LOCKED: nobody waits"


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
    assert "test_scenarios_worker.py" in row["errors"][0], "with the traceback"


@pytest.mark.parametrize(
    "raised",
    [
        asyncio.CancelledError,
        TimeoutError,
        lambda: RuntimeError("x" * 100_000),
        lambda: Odd("x"),
    ],
    ids=["cancelled", "timeout", "long", "unprintable"],
)
async def test_p27_whatever_a_handler_raises_the_worker_goes_on(
    dsn: str, connection: Session, raised: Callable[[], BaseException]
) -> None:
    async def handler(job: Job) -> None:
        if job.args:
            raise raised()

    bad = await insert_job(connection, args='{"bad": 1}')
    good = await insert_job(connection)
    async with a_worker(dsn, handler):
        await reaches(connection, good, "completed")
        row = await reaches(connection, bad, "retryable")
        again = await insert_job(connection)
        await reaches(connection, again, "completed")
    assert len(row["errors"][0]) < 50_000


class Odd(Exception):
    def __str__(self) -> str:
        raise ValueError("an error that cannot be shown")


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
        assert not await queue_actions.finish(slow, SCHEMA, mine, worker="slow")
        failed = await queue_actions.fail(slow, SCHEMA, mine, worker="slow", error={}, retry_delay_s=1)
        assert failed is None
        assert set() == await queue_actions.heartbeat(slow, SCHEMA, [job_id], worker="slow")
        assert before == await job_row(connection, job_id), "fenced by worker and attempt"
        assert (2, 1) == (theirs.attempt, len(before["errors"]))
        assert await queue_actions.finish(other, SCHEMA, theirs, worker="other")


async def test_the_same_workers_earlier_attempt_is_fenced_too(connection: Session) -> None:
    await insert_job(connection)
    (first,) = await claim(connection)
    later = datetime.now(UTC) + timedelta(hours=1)
    await queue_actions.rescue(connection, SCHEMA, silent_for_s=60, clock=later)
    (second,) = await claim(connection, clock=later)
    assert not await queue_actions.finish(connection, SCHEMA, first, worker="w")
    assert await queue_actions.fail(
        connection, SCHEMA, first, worker="w", error={}, retry_delay_s=1
    ) is None  # fmt: skip
    assert await queue_actions.finish(connection, SCHEMA, second, worker="w")
    assert not await queue_actions.finish(connection, SCHEMA, second, worker="w"), "only once"


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


async def test_no_more_than_the_given_number_run_at_once(dsn: str, connection: Session) -> None:
    at_once, most = 0, 0

    async def handler(job: Job) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.02)
        at_once -= 1

    for _ in range(20):
        last = await insert_job(connection)
    settings = Settings(poll_interval_s=30, concurrency=3, shutdown_timeout_s=5)
    async with a_worker(dsn, handler, settings):
        await reaches(connection, last, "completed")

        async def all_done() -> bool:
            left: int = await connection.fetchval("SELECT count(*) FROM awa.jobs WHERE state != 'completed'")
            return left == 0

        await wait_until(all_done, "all are run, without waiting for the poll interval of 30 s")
    assert 3 == most


async def test_a_paused_queue_hands_out_nothing(connection: Session) -> None:
    await insert_job(connection, queue="email")
    free = await insert_job(connection, queue="other")
    await connection.execute(
        "INSERT INTO awa.queue_meta (queue, paused_at) VALUES ('email', now()), ('other', NULL)"
    )
    assert [free] == [job.id for job in await claim(connection)], "P24: a pause stops dispatch"


async def test_a_client_runs_what_it_schedules(dsn: str, connection: Session) -> None:
    client = awa_cron.Client(dsn, settings=Settings(evaluate_interval_s=0.2, election_interval_s=0.1))
    client.periodic("tick", "* * * * * *", kind="tick", args={"n": 1})
    seen: list[Job] = []

    @client.task("tick")
    async def tick(job: Job) -> None:
        seen.append(job)

    async with client, running(client.run_forever()):
        await wait_until(lambda: len(seen) >= 2, "two fires have run")
    fires = [job.fire_time for job in seen]
    assert sorted(set(fires), key=str) == fires
    assert {("tick", 1)} == {(job.cron_name, job.args["n"]) for job in seen}
