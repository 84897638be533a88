"""What a handler may say and hear: snooze, retry after, cancel; deadlines, cancellation, and limits per queue."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

import awa_cron
from awa_cron import queue_actions
from awa_cron.attempt import Handler
from awa_cron.errors import AttemptCancelled, InvalidArgument
from awa_cron.model import Job
from awa_cron.outcomes import Cancel, Cancellation, RetryAfter, Snooze
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from awa_cron.worker import Worker
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
PATIENT = Settings(poll_interval_s=0.1, heartbeat_interval_s=30, rescue_after_s=60, shutdown_timeout_s=5)


async def test_a_snoozed_job_waits_and_its_attempt_does_not_count(dsn: str, connection: Session) -> None:
    said: list[object] = [Snooze(3600), None]

    async def handler(job: Job) -> object:
        return said.pop(0)

    job_id = await insert_job(connection, max_attempts=1)
    async with a_worker(dsn, handler):
        row = await reaches(connection, job_id, "scheduled")
        waits = row["run_at"] - row["attempted_at"]
        assert timedelta(seconds=3590) < waits < timedelta(seconds=3610)
        assert (1, 2, [], None) == (row["attempt"], row["max_attempts"], row["errors"], row["finalized_at"])
        await connection.execute("UPDATE awa.jobs SET run_at = now()")
        row = await reaches(connection, job_id, "completed")
    assert (2, 2) == (row["attempt"], row["max_attempts"]), "one attempt was given back by raising the budget"


async def test_a_job_at_the_limit_of_attempts_cannot_be_snoozed_and_fails(dsn: str, connection: Session) -> None:
    job_id = await insert_job(connection, attempt=999, max_attempts=1000)
    async with a_worker(dsn, lambda _: Snooze(1)):
        row = await reaches(connection, job_id, "failed")
    assert "cannot be snoozed" in row["errors"][0]


async def test_retry_after_replaces_the_backoff_but_not_the_budget(dsn: str, connection: Session) -> None:
    job_id = await insert_job(connection, max_attempts=2)
    async with a_worker(dsn, lambda _: RetryAfter(600, "the other side is busy")):
        row = await reaches(connection, job_id, "retryable")
        assert timedelta(seconds=590) < row["run_at"] - row["attempted_at"] < timedelta(seconds=610)
        assert "the other side is busy" in row["errors"][0]
        await connection.execute("UPDATE awa.jobs SET run_at = now()")
        row = await reaches(connection, job_id, "failed")
    assert (2, 2) == (row["attempt"], len(row["errors"]))


async def test_a_handler_can_cancel_its_job(dsn: str, connection: Session) -> None:
    job_id = await insert_job(connection)
    async with a_worker(dsn, lambda _: Cancel("the order is void")):
        row = await reaches(connection, job_id, "cancelled")
    assert row["finalized_at"] is not None
    assert (1, True) == (row["attempt"], "the order is void" in row["errors"][0])


@pytest.mark.parametrize("outcome", ["snooze", "cancel_own"])
async def test_an_outcome_of_an_attempt_that_was_taken_away_writes_nothing(
    dsn: str, connection: Session, outcome: str
) -> None:
    job_id = await insert_job(connection)
    (mine,) = await claim(connection, worker="slow")
    later = datetime.now(UTC) + timedelta(hours=1)
    await queue_actions.rescue(connection, SCHEMA, silent_for_s=60, clock=later)
    (again,) = await claim(connection, worker="slow", clock=later)

    async def write(job: Job, worker: str) -> bool:
        if outcome == "snooze":
            return bool((await queue_actions.snooze(connection, SCHEMA, [(job, 0)], worker=worker)).written)
        return bool((await queue_actions.cancel_own(connection, SCHEMA, [(job, {})], worker=worker)).written)

    before = await job_row(connection, job_id)
    assert not await write(mine, "slow"), "an earlier attempt"
    assert not await write(again, "other"), "another worker"
    assert before == await job_row(connection, job_id)
    assert await write(again, "slow")
    assert not await write(again, "slow"), "only once"


async def test_a_heartbeat_of_an_earlier_attempt_does_not_renew_the_next(connection: Session) -> None:
    job_id = await insert_job(connection)
    (first,) = await claim(connection)
    later = datetime.now(UTC) + timedelta(hours=1)
    await queue_actions.rescue(connection, SCHEMA, silent_for_s=60, clock=later)
    (second,) = await claim(connection, clock=later)
    much_later = later + timedelta(seconds=50)
    beats = [(job_id, first.attempt)]
    assert set() == await queue_actions.heartbeat(connection, SCHEMA, beats, worker="w", clock=much_later)
    assert later == (await job_row(connection, job_id))["heartbeat_at"]
    beats = [(job_id, second.attempt)]
    assert set(beats) == await queue_actions.heartbeat(connection, SCHEMA, beats, worker="w", clock=much_later)


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), 10**400, True, "5", None, 400 * 24 * 3600])
def test_a_delay_that_cannot_be_waited_is_refused(delay: object) -> None:
    for outcome in (Snooze, RetryAfter):
        with pytest.raises(InvalidArgument, match="delay_s"):
            outcome(delay)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="reason"):
        Cancel(5)  # type: ignore[arg-type]


async def test_an_async_handler_is_cancelled_at_its_deadline(dsn: str, connection: Session) -> None:
    heard: list[str | None] = []

    async def handler(job: Job) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            heard.append(job.cancellation.reason)

    job_id = await insert_job(connection, deadline_s=0.2)
    async with a_worker(dsn, handler):
        row = await reaches(connection, job_id, "retryable")
    assert ["its deadline of 0.2 s has passed"] == heard
    assert "its deadline of 0.2 s has passed" in row["errors"][0]


async def test_an_async_handler_that_takes_no_notice_of_its_deadline_has_failed_whatever_it_returns(
    dsn: str, connection: Session
) -> None:
    async def handler(_: Job) -> Snooze:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(0.1)
        return Snooze(3600)

    job_id = await insert_job(connection, deadline_s=0.2)
    async with a_worker(dsn, handler):
        row = await reaches(connection, job_id, "retryable")
    assert "its deadline of 0.2 s has passed" in row["errors"][0]


async def test_a_job_that_is_lost_after_its_deadline_is_left_to_whoever_has_it(
    dsn: str, connection: Session, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_: Job) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await connection.execute("UPDATE awa.jobs SET attempt = attempt + 1, attempted_by = 'another'")
            await asyncio.sleep(0.5)  # heartbeats go on

    job_id = await insert_job(connection, deadline_s=0.2)
    async with a_worker(dsn, handler, dataclasses.replace(PATIENT, heartbeat_interval_s=0.1)) as worker:
        another = "SELECT attempted_by = 'another' FROM awa.jobs WHERE id = $1"
        await wait_until(lambda: connection.fetchval(another, job_id), "it is somebody else's")
        await wait_until(lambda: _idle(worker), "the attempt has ended")
    assert "told to stop" in caplog.messages
    assert "no longer ours; its outcome is not written" not in caplog.messages, "nobody tried to"


def test_who_asks_late_hears_at_once_that_it_is_to_stop() -> None:
    cancellation = Cancellation()
    assert not cancellation.wait(0.01)
    cancellation.set("the first")
    cancellation.set("the second")
    assert cancellation.wait(60)
    assert (True, "the first") == (cancellation.is_set(), cancellation.reason)
    late = Cancellation()
    late.set("before anybody waits")
    assert late.wait(60)


async def _idle(worker: Worker) -> bool:
    return not worker._running


async def test_a_sync_handler_hears_of_its_deadline_and_has_failed_whatever_it_returns(
    dsn: str, connection: Session
) -> None:
    heard: list[bool] = []

    def handler(job: Job) -> None:
        heard.append(job.cancellation.wait(30))
        with pytest.raises(AttemptCancelled, match="deadline"):
            job.cancellation.check()

    job_id = await insert_job(connection, deadline_s=0.2)
    async with a_worker(dsn, handler):
        await reaches(connection, job_id, "retryable")
    assert [True] == heard


async def test_sync_handlers_that_do_not_listen_keep_their_places_but_not_their_jobs(
    dsn: str, connection: Session, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(poll_interval_s=0.05, concurrency=2, shutdown_timeout_s=0.2)
    ended: list[float | None] = []

    def handler(job: Job) -> None:
        if job.deadline_s is not None:
            time.sleep(2.0)
        ended.append(job.deadline_s)

    deaf = [await insert_job(connection, deadline_s=0.1) for _ in range(2)]
    other = await insert_job(connection, priority=4)
    async with a_worker(dsn, handler, settings):
        for job_id in deaf:
            await reaches(connection, job_id, "retryable")
        await asyncio.sleep(0.3)  # polls go by
        state = (await job_row(connection, other))["state"]
        assert [] == ended, "they are failed while their threads go on"
        assert "available" == state, "no third job beside them"
        await reaches(connection, other, "completed")
    assert {0.1, None} == set(ended)
    assert "no longer ours; its outcome is not written" not in caplog.messages, "one outcome of each"


async def test_within_its_deadline_a_job_is_left_alone(dsn: str, connection: Session) -> None:
    async def handler(job: Job) -> None:
        await asyncio.sleep(0.1)

    job_id = await insert_job(connection, deadline_s=20.0)
    async with a_worker(dsn, handler):
        await reaches(connection, job_id, "completed")


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_p26_a_running_handler_hears_at_once_that_its_job_was_cancelled(
    dsn: str, connection: Session, kind: str
) -> None:
    heard: list[str | None] = []
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def on_the_loop(job: Job) -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            heard.append(job.cancellation.reason)

    def in_a_thread(job: Job) -> None:
        loop.call_soon_threadsafe(began.set)
        job.cancellation.wait(60)
        heard.append(job.cancellation.reason)

    handler: Handler = on_the_loop if kind == "async" else in_a_thread
    job_id = await insert_job(connection, metadata='{"cron_name": "s"}')
    async with a_worker(dsn, handler, PATIENT):
        listening = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
        await wait_until(lambda: connection.fetchval(listening), "it listens")
        await began.wait()
        await asyncio.sleep(0.1)
        cancelled = await queue_actions.cancel_jobs(connection, SCHEMA, "s", running=True)
        assert cancelled is not None
        assert (0, 1, 0) == (cancelled.waiting, cancelled.signalled, cancelled.running)
        started = time.monotonic()
        await wait_until(lambda: heard, "it hears")
        assert time.monotonic() - started < 5, "well under the heartbeat of 30 s"
    assert ["it was cancelled, or somebody rescued it"] == heard
    row = await job_row(connection, job_id)
    assert ("cancelled", []) == (row["state"], row["errors"]), "and what the handler says no longer counts"


async def test_a_queue_has_no_more_running_than_its_own_number(dsn: str, connection: Session) -> None:
    at_once: dict[str, int] = {"email": 0, "default": 0}
    most = dict(at_once)

    async def handler(job: Job) -> None:
        at_once[job.queue] += 1
        most[job.queue] = max(most[job.queue], at_once[job.queue])
        await asyncio.sleep(0.05)
        at_once[job.queue] -= 1

    for i in range(24):
        await insert_job(connection, queue="email" if i < 12 else "default")
    other = await insert_job(connection, queue="other")
    settings = Settings(poll_interval_s=30, concurrency=4, shutdown_timeout_s=5)
    async with a_worker(dsn, handler, settings, {"email": 1, "default": 3}):

        async def all_done() -> bool:
            left: int = await connection.fetchval("SELECT count(*) FROM awa.jobs WHERE state != 'completed'")
            return left == 1

        await wait_until(all_done, "all are run, without waiting for the poll interval of 30 s")
    assert {"email": 1, "default": 3} == most
    assert "available" == (await job_row(connection, other))["state"]


async def test_of_two_queues_that_share_the_places_both_get_some(dsn: str, connection: Session) -> None:
    order: list[str] = []

    async def handler(job: Job) -> None:
        order.append(job.queue)

    for queue in ("a", "b"):
        for _ in range(10):
            last = await insert_job(connection, queue=queue)
    settings = Settings(poll_interval_s=0.05, concurrency=1, shutdown_timeout_s=5)
    async with a_worker(dsn, handler, settings, {"a": 5, "b": 5}):
        await reaches(connection, last, "completed")
    assert {"a", "b"} == set(order[:4])


@pytest.mark.parametrize(
    "queues", ["email", 5, [], {}, [""], {"email": 0}, {"email": True}, {"email": "2"}, {"": 1}]
)
def test_queues_that_cannot_be_worked_on_are_refused(queues: object) -> None:
    with pytest.raises(ValueError, match="queue"):
        awa_cron.Client(queues=queues)  # type: ignore[arg-type]


@pytest.mark.parametrize("deadline_s", [0, -1, float("nan"), float("inf"), 10**400, True, "5"])
async def test_a_deadline_that_is_none_is_refused(connection: Session, deadline_s: object) -> None:
    client = awa_cron.Client()
    with pytest.raises(ValueError, match="deadline_s"):
        client.periodic("s", "* * * * *", kind="k", deadline_s=deadline_s)  # type: ignore[arg-type]


async def test_a_schedules_deadline_goes_to_its_jobs(dsn: str, connection: Session) -> None:
    client = awa_cron.Client(dsn, settings=Settings(evaluate_interval_s=0.2, election_interval_s=0.1))
    client.periodic("s", "* * * * * *", kind="nobody", deadline_s=7)
    async with client:
        task = asyncio.ensure_future(client.run_forever())
        await wait_until(lambda: connection.fetchval("SELECT count(*) > 0 FROM awa.jobs"), "a fire")
        triggered = await client.trigger("s")
        stored = await client.get_schedule("s")
        task.cancel()
    assert (7.0, 7.0) == (triggered.deadline_s, stored.deadline_s)
    assert [7.0] == [row[0] for row in await connection.fetch("SELECT DISTINCT deadline_s FROM awa.jobs")]


async def test_two_workers_take_disjoint_jobs_many_at_a_time(dsn: str, connection: Session) -> None:
    for _ in range(50):
        await insert_job(connection)
    async with a_session(dsn) as one, a_session(dsn) as other:
        taken = await asyncio.gather(*(claim(each, limit=25, worker=str(i)) for i, each in enumerate((one, other))))
    ids = [job.id for jobs in taken for job in jobs]
    assert len(ids) == len(set(ids)) > 25


@dataclasses.dataclass
class Greeting:
    to: str
    times: int = 1


async def test_a_typed_handler_gets_its_type_and_a_misfit_fails_with_the_reason(
    dsn: str, connection: Session
) -> None:
    seen: list[Greeting] = []
    client = awa_cron.Client(dsn, settings=Settings(poll_interval_s=0.1, shutdown_timeout_s=5))

    @client.task("greet", args=Greeting)
    async def greet(job: Job[Greeting]) -> None:
        seen.append(job.args)

    async with client:
        task = asyncio.ensure_future(client.run_forever(evaluate=False))
        good = await client.enqueue("greet", Greeting("you", 2))
        bad = await insert_job(connection, kind="greet", args='{"to": 5}')
        await reaches(connection, good.id, "completed")
        row = await reaches(connection, bad, "retryable")
        task.cancel()
        with pytest.raises(InvalidArgument, match="job: args of kind 'greet' are no Greeting"):
            await client.enqueue("greet", {"to": 5})
    assert [Greeting("you", 2)] == seen
    assert "args of kind 'greet' are no Greeting: args.to is 5, not str" in row["errors"][0]
