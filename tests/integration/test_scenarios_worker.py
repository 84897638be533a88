"""Jobs are run: in order, once at a time, again after failures, and not by those who lost them."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

import awa_cron
from awa_cron import actions
from awa_cron.model import Job, JobState
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from tests.integration.support import (
    HASTY,
    Session,
    a_session,
    a_worker,
    claim,
    insert_job,
    job_row,
    reaches,
    running,
    wait_until,
    write_row,
)

SCHEMA = Schema()


PATIENT = Settings(poll_interval_s=30, statement_timeout_s=5, shutdown_timeout_s=5)


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


@pytest.mark.parametrize(("concurrency", "queues"), [(1, None), (5, {"default": 1})])
async def test_where_one_runs_at_a_time_its_outcome_is_stored_before_the_next(
    dsn: str, connection: Session, concurrency: int, queues: dict[str, int] | None
) -> None:
    seen: list[int] = []

    async def handler(job: Job) -> None:
        async with a_session(dsn) as session:
            seen.append(await session.fetchval("SELECT count(*) FROM awa.jobs WHERE state = 'running'"))

    for _ in range(10):
        last = await insert_job(connection)
    settings = Settings(poll_interval_s=30, concurrency=concurrency, shutdown_timeout_s=5)
    async with a_worker(dsn, handler, settings, queues=queues):
        await reaches(connection, last, "completed")
    assert [1] * 10 == seen


async def test_the_next_job_begins_while_an_outcome_is_still_being_written(dsn: str, connection: Session) -> None:
    jobs: list[int] = []
    third = asyncio.Event()
    listening = (
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
    )

    async with a_session(dsn) as holder:
        transaction = holder.transaction()

        async def handler(job: Job) -> None:
            match jobs.index(job.id):
                case 0:
                    await transaction.start()
                    await holder.execute("SELECT FROM awa.jobs WHERE id = $1 FOR UPDATE", job.id)
                    await asyncio.sleep(0.5)  # the notification of these jobs has come, and found no room
                case 1:
                    await third.wait()
                case 2:
                    third.set()

        settings = Settings(poll_interval_s=30, concurrency=2, shutdown_timeout_s=5)
        async with a_worker(dsn, handler, settings), asyncio.timeout(10):
            await wait_until(lambda: connection.fetchval(listening), "nothing else wakes the worker")
            async with connection.transaction():
                jobs += [await insert_job(connection) for _ in range(3)]
            await third.wait()
            assert "running" == (await job_row(connection, jobs[0]))["state"]
            await transaction.rollback()
            await reaches(connection, jobs[0], "completed")


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
