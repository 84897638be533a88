"""Runs jobs: claim, hand to the handler, write what it says; renew what runs, rescue what fell silent.

Delivery is at least once: a worker that dies or loses the database after its handler has returned leaves a job
that somebody runs again.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeAlias

from awa_cron import queue_actions, telemetry
from awa_cron.database import Database
from awa_cron.errors import DatabaseError
from awa_cron.model import Job, JobState
from awa_cron.outcomes import Cancel, RetryAfter, Snooze
from awa_cron.settling import Failed, Outcome, Settler
from awa_cron.sql import DRIVER_ERRORS, told
from awa_cron.typed import Reader

Handler: TypeAlias = Callable[[Job], object]
"""Async, or sync to run in a thread. It returns ``Snooze``, ``RetryAfter``, ``Cancel``; else it is done."""

log = logging.getLogger(__name__)

MAX_ERROR_CHARACTERS = 10_000
STOP_GRACE_S = 5.0
"""How long a handler that was told to stop may take, before the outcome is written without it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """What runs the jobs of one kind: a handler, and what reads their arguments if it takes a type of its own."""

    handler: Handler
    read: Reader | None = None
    in_loop: bool = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "in_loop", inspect.iscoroutinefunction(self.handler))


class _Attempt:
    """An attempt that runs here.

    ``over`` is done when the handler has ended, which is ``returned``, or when it has to stop, for ``stop``;
    ``settled`` is set when nothing more will be written of it. An attempt that is ``lost`` is void: the job is
    somebody else's, or nobody's.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.settled = asyncio.Event()
        self.returned = False
        self.stop: str | None = None
        self.lost = False
        self.in_thread = False
        self.task: asyncio.Task[None] | None = None

    def end(self, reason: str, *, lost: bool = False) -> None:
        """Have the handler stop; the first reason counts. What is lost is lost, whyever it was to stop before."""
        self.lost = self.lost or lost
        if self.stop is None:
            self.stop = reason
            self._wake()

    def has_returned(self) -> None:
        self.returned = True
        self._wake()

    def _wake(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


class Worker:
    """Runs the jobs of some kinds, a bounded number at once.

    Args:
        database: Open.
        tasks: By kind.
        queues: Only these; with a number for each, at most so many of its jobs at once here; None for all.
        actor: This instance; the fence of its claims.
    """

    def __init__(
        self,
        database: Database,
        tasks: Mapping[str, Task],
        queues: Sequence[str] | Mapping[str, int] | None,
        actor: str,
    ) -> None:
        self._database = database
        self._tasks = tasks
        self._queues = queues
        self._turn = 0
        self._full = False
        self._actor = actor
        self._settler = Settler(database, actor)
        # By job and attempt: a worker that was frozen may have lost a job, and get it again while it still runs.
        self._running: dict[tuple[int, int], _Attempt] = {}
        self._wake = asyncio.Event()
        self._beat = asyncio.Event()
        self._threads = ThreadPoolExecutor(
            max_workers=database.settings.concurrency, thread_name_prefix="awa_cron job"
        )

    async def run(self) -> None:
        """Work until cancelled; then wait for the running handlers, and stop those that take too long."""
        if not self._tasks:
            return
        async with asyncio.TaskGroup() as outer:
            beats = outer.create_task(self._heartbeat_forever(), name="awa_cron heartbeat")
            try:
                async with asyncio.TaskGroup() as loops:
                    loops.create_task(self._listen_forever(), name="awa_cron listen")
                    loops.create_task(self._rescue_forever(), name="awa_cron rescue")
                    loops.create_task(self._claim_forever(), name="awa_cron claim")
            finally:
                await self._drain()
                beats.cancel()

    async def _claim_forever(self) -> None:
        settings = self._database.settings
        while True:
            self._wake.clear()
            free = self._room()
            self._full = free <= 0
            claimed = 0
            try:
                claimed = await self._claim(free)
            except DatabaseError as error:
                log.warning("cannot claim", extra={"error": str(error)})
            if claimed and claimed == free:
                continue
            try:
                async with asyncio.timeout(settings.poll_interval_s):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def _room(self) -> int:
        """Return how many jobs may be claimed now.

        As many again as may run can be waiting for their outcomes to be written; none where one runs at a time, so
        that its outcome is stored before the next begins.
        """
        concurrency = self._database.settings.concurrency
        handlers = sum(not attempt.returned for attempt in self._running.values())
        unsettled = 2 * concurrency if concurrency > 1 else 1
        return min(concurrency - handlers, unsettled - len(self._running))

    async def _claim(self, free: int) -> int:
        claimed = 0
        if free <= 0:
            return claimed  # and it stays the same queue's turn
        for queues, room in self._rooms():
            limit = min(room, free - claimed)
            if limit > 0:
                claimed += await self._claim_from(queues, limit)
        return claimed

    def _rooms(self) -> list[tuple[list[str] | None, int]]:
        """Return which queues are asked together, and for how many jobs at most; each is first in its turn."""
        if not isinstance(self._queues, Mapping):
            return [(None if self._queues is None else list(self._queues), self._database.settings.concurrency)]
        running = Counter(attempt.job.queue for attempt in self._running.values())
        rooms: list[tuple[list[str] | None, int]] = [
            ([queue], limit - running[queue]) for queue, limit in self._queues.items()
        ]
        self._turn = (self._turn + 1) % len(rooms)
        return rooms[self._turn :] + rooms[: self._turn]

    async def _claim_from(self, queues: list[str] | None, limit: int) -> int:
        async with self._database.session() as connection:
            claimed = await queue_actions.claim(
                connection,
                self._database.schema,
                kinds=list(self._tasks),
                queues=queues,
                limit=limit,
                worker=self._actor,
            )
            # No await between the claim and this: a cancelled worker knows every job it has.
            for job in claimed:
                attempt = _Attempt(job)
                attempt.task = asyncio.create_task(self._perform(attempt), name=f"awa_cron job {job.id}")
                self._running[job.id, job.attempt] = attempt
        return len(claimed)

    async def _perform(self, attempt: _Attempt) -> None:
        job = attempt.job
        handler = asyncio.create_task(self._call(attempt), name=f"awa_cron handler {job.id}")
        handler.add_done_callback(lambda _: self._returned(attempt))
        try:
            outcome = await self._outcome(attempt, handler)
            if not attempt.lost:
                await self._settle(job, outcome)
            attempt.settled.set()
            # One that does not stop keeps its place, or more would run here than may.
            if not handler.done():
                await asyncio.wait({handler})
        finally:
            attempt.settled.set()
            handler.cancel()
            del self._running[job.id, job.attempt]
            if self._full or isinstance(self._queues, Mapping):  # else nothing waits for its place
                self._wake.set()

    def _returned(self, attempt: _Attempt) -> None:
        attempt.has_returned()
        if self._full:
            self._wake.set()

    async def _outcome(self, attempt: _Attempt, handler: asyncio.Task[Outcome]) -> Outcome:
        """Wait for the handler; or tell it to stop, and then it has failed, whatever it still says."""
        job = attempt.job
        alarm = None if job.deadline_s is None else _at_deadline(job.deadline_s, attempt)
        try:
            await attempt.over
        finally:
            if alarm is not None:
                alarm.cancel()
        if handler.done():
            return handler.result()
        assert attempt.stop is not None
        reason = attempt.stop
        log.warning("told to stop", extra=_fields(job) | {"reason": reason})
        job.cancellation.set(reason)
        if not attempt.in_thread:
            handler.cancel()
        await asyncio.wait({handler}, timeout=min(STOP_GRACE_S, self._database.settings.shutdown_timeout_s))
        return Failed({"error": reason})

    @telemetry.handling
    async def _call(self, attempt: _Attempt) -> Outcome:
        """Run the handler, and return what becomes of the job; whatever it raises, it takes no others along."""
        job, task = attempt.job, self._tasks[attempt.job.kind]
        try:
            if task.read is not None:
                job = dataclasses.replace(job, args=task.read(job.args))
            if task.in_loop:
                said = await task.handler(job)  # type: ignore[misc]
            else:
                said = await self._in_thread(attempt, task.handler, job)
        except BaseException as error:  # a handler that exits has failed; it must not take the worker along
            if not job.cancellation.is_set():
                log.exception("attempt failed", extra=_fields(job))
            text = "".join(traceback.format_exception(error))[-MAX_ERROR_CHARACTERS:]
            return Failed({"error": _told(error)[:MAX_ERROR_CHARACTERS], "traceback": text})
        return said if isinstance(said, (Snooze, RetryAfter, Cancel)) else None

    async def _in_thread(self, attempt: _Attempt, handler: Handler, job: Job) -> object:
        attempt.in_thread = True
        outcome = await asyncio.get_running_loop().run_in_executor(self._threads, _called, handler, job)
        attempt.in_thread = False
        if isinstance(outcome, BaseException):
            raise outcome
        return await outcome if inspect.isawaitable(outcome) else outcome

    async def _settle(self, job: Job, outcome: Outcome) -> None:
        """Write the outcome; if the database stays away, the job is rescued and runs again."""
        for pause_s in (0.1, 0.5, 2.0, None):
            try:
                became = await self._settler.settle(job, outcome)
            except DatabaseError as trouble:
                log.warning("cannot write the outcome", extra={"job": job.id, "error": str(trouble)})
                if pause_s is None:
                    return
                await asyncio.sleep(pause_s)
            else:
                if became is None:
                    log.warning("no longer ours; its outcome is not written", extra={"job": job.id})
                elif became is JobState.FAILED:
                    log.error("failed for good", extra=_fields(job))
                elif log.isEnabledFor(logging.INFO):
                    log.info(str(became), extra=_fields(job))
                if became is not None:
                    telemetry.settled(job, became)
                return

    async def _heartbeat_forever(self) -> None:
        """Renew what runs, all in one statement; sooner when somebody says that running jobs were cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._database.settings.heartbeat_interval_s):
                    await self._beat.wait()
            except TimeoutError:
                pass
            self._beat.clear()
            mine = {key for key, attempt in self._running.items() if not attempt.lost}
            if not mine:
                continue
            try:
                async with self._database.session() as connection:
                    ours = await queue_actions.heartbeat(
                        connection, self._database.schema, mine, worker=self._actor
                    )
            except DatabaseError as error:
                log.warning("cannot renew", extra={"jobs": len(mine), "error": str(error)})
                continue
            for key in mine - ours:
                if key in self._running:
                    self._running[key].end("it was cancelled, or somebody rescued it", lost=True)

    async def _rescue_forever(self) -> None:
        settings = self._database.settings
        while True:
            try:
                async with self._database.session() as connection:
                    rescued = await queue_actions.rescue(
                        connection, self._database.schema, silent_for_s=settings.rescue_after_s
                    )
                for job_id, state in rescued.items():
                    log.warning("rescued from a silent worker", extra={"job": job_id, "state": str(state)})
                if rescued:
                    self._wake.set()
            except DatabaseError as error:
                log.warning("cannot rescue", extra={"error": str(error)})
            await asyncio.sleep(settings.rescue_after_s / 4)

    async def _listen_forever(self) -> None:
        """Wake on notifications; while the connection is away, polling goes on."""
        reported = ""
        while True:
            try:
                await self._listen()
                reported = ""
            except DatabaseError as error:
                if str(error) != reported:
                    log.warning("not listening", extra={"error": str(error)})
                reported = str(error)
            await asyncio.sleep(self._database.settings.poll_interval_s)

    async def _listen(self) -> None:
        connection = await self._database.dedicated("listener", idle_session_timeout="0")
        ended = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: ended.set())
            async with asyncio.timeout(self._database.settings.statement_timeout_s):
                await connection.add_listener(self._database.schema.jobs_channel, self._notified)
                await connection.add_listener(self._database.schema.cancel_channel, lambda *_: self._beat.set())
            self._wake.set()
            await ended.wait()
        except DRIVER_ERRORS as error:
            raise DatabaseError(f"listen: {told(error)}") from error
        finally:
            connection.terminate()

    def _notified(self, _connection: object, _pid: int, _channel: str, queue: object) -> None:
        if self._queues is None or queue in self._queues:
            self._wake.set()

    async def _drain(self) -> None:
        """Let running handlers finish, then stop them; those that do not stop are left behind."""
        settings = self._database.settings
        await self._ended(settings.shutdown_timeout_s)
        for attempt in self._running.values():
            attempt.end("the worker stopped before the handler had finished")
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_GRACE_S + settings.statement_timeout_s):
                for attempt in list(self._running.values()):
                    await attempt.settled.wait()
                await asyncio.sleep(0)  # those that have stopped leave
        if self._running:
            log.error("handlers that do not stop", extra={"jobs": sorted(job for job, _ in self._running)})
        for attempt in self._running.values():
            assert attempt.task is not None
            attempt.task.cancel()
        await self._ended(STOP_GRACE_S)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _ended(self, timeout_s: float) -> None:
        tasks = [attempt.task for attempt in self._running.values() if attempt.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)


def _at_deadline(deadline_s: float, attempt: _Attempt) -> asyncio.TimerHandle:
    late = f"its deadline of {deadline_s} s has passed"
    return asyncio.get_running_loop().call_later(deadline_s, attempt.end, late)


def _fields(job: Job) -> dict[str, object]:
    return {"job": job.id, "kind": job.kind, "attempt": job.attempt, "schedule": job.cron_name}


def _called(handler: Handler, job: Job) -> object:
    """Call a sync handler in its thread; what it raises is handed back, since a future refuses StopIteration."""
    try:
        return handler(job)
    except BaseException as error:  # noqa: BLE001
        return error


def _told(error: BaseException) -> str:
    """Return an error in one line, also one whose own text fails."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001
        return type(error).__name__
