"""Runs jobs: claim, hand to the handler, finish or fail; renew what runs, rescue what fell silent.

Delivery is at least once: a worker that dies or loses the database after its handler has returned leaves a job
that somebody runs again.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import traceback
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from awa_cron import queue_actions
from awa_cron.database import Database
from awa_cron.errors import DatabaseError
from awa_cron.model import Job, JobState
from awa_cron.sql import DRIVER_ERRORS, told

Handler: TypeAlias = Callable[[Job], Awaitable[None] | None]

log = logging.getLogger(__name__)

MAX_RETRY_DELAY_S = 24 * 3600.0
FINISH_ATTEMPTS = 4
MAX_ERROR_CHARACTERS = 10_000


def retry_delay_s(attempt: int, jitter: float) -> float:
    """Return the seconds to wait after a failed attempt: 2, 4, 8, … and up to a quarter more, at most a day.

    Args:
        attempt: The attempt that failed, from 1.
        jitter: From 0 to 1.
    """
    return min(2.0 ** min(attempt, 20) * (1 + jitter / 4), MAX_RETRY_DELAY_S)


class Worker:
    """Runs the jobs of some kinds, a bounded number at once.

    Args:
        database: Open.
        handlers: By kind; a sync handler runs in a thread.
        queues: Only these; None for all.
        actor: This instance; the fence of its claims.
    """

    def __init__(
        self, database: Database, handlers: Mapping[str, Handler], queues: list[str] | None, actor: str
    ) -> None:
        self._database = database
        self._handlers = handlers
        self._queues = queues
        self._actor = actor
        # By job and attempt: a worker that was frozen may have lost a job, and get it again while it still runs.
        self._running: dict[tuple[int, int], asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._threads = ThreadPoolExecutor(
            max_workers=database.settings.concurrency, thread_name_prefix="awa_cron job"
        )

    async def run(self) -> None:
        """Work until cancelled; then wait for the running handlers, and cancel those that take too long."""
        if not self._handlers:
            return
        try:
            async with asyncio.TaskGroup() as loops:
                loops.create_task(self._listen_forever(), name="awa_cron listen")
                loops.create_task(self._rescue_forever(), name="awa_cron rescue")
                loops.create_task(self._claim_forever(), name="awa_cron claim")
        finally:
            await self._drain()

    async def _claim_forever(self) -> None:
        settings = self._database.settings
        while True:
            self._wake.clear()
            free = settings.concurrency - len(self._running)
            claimed: list[Job] = []
            if free > 0:
                try:
                    claimed = await self._claim(free)
                except DatabaseError as error:
                    log.warning("cannot claim", extra={"error": str(error)})
            if claimed and len(claimed) == free:
                continue
            try:
                async with asyncio.timeout(settings.poll_interval_s):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _claim(self, limit: int) -> list[Job]:
        async with self._database.session() as connection:
            claimed = await queue_actions.claim(
                connection,
                self._database.schema,
                kinds=list(self._handlers),
                queues=self._queues,
                limit=limit,
                worker=self._actor,
            )
            # No await between the claim and this: a cancelled worker knows every job it has.
            for job in claimed:
                attempt = asyncio.create_task(self._attempt(job), name=f"awa_cron job {job.id}")
                self._running[job.id, job.attempt] = attempt
        return claimed

    async def _attempt(self, job: Job) -> None:
        beats = asyncio.create_task(self._heartbeat_forever(job), name=f"awa_cron heartbeat {job.id}")
        try:
            error = await self._handle(job)
            await self._settle(job, error)
        finally:
            beats.cancel()
            del self._running[job.id, job.attempt]
            self._wake.set()

    async def _handle(self, job: Job) -> dict[str, Any] | None:
        """Run the handler; None when it returned, else what is stored of its error."""
        handler = self._handlers[job.kind]
        fields = {"job": job.id, "kind": job.kind, "attempt": job.attempt, "schedule": job.cron_name}
        try:
            if inspect.iscoroutinefunction(handler):
                await handler(job)
            else:
                await self._in_thread(handler, job)
        except asyncio.CancelledError:
            log.warning("cancelled with its worker", extra=fields)
            return {"error": "the worker stopped before the handler had finished"}
        except BaseException as error:  # a handler that exits has failed; it must not take the worker along
            log.exception("attempt failed", extra=fields)
            text = "".join(traceback.format_exception(error))[-MAX_ERROR_CHARACTERS:]
            return {"error": _told(error)[:MAX_ERROR_CHARACTERS], "traceback": text}
        return None

    async def _in_thread(self, handler: Handler, job: Job) -> None:
        outcome = await asyncio.get_running_loop().run_in_executor(self._threads, _called, handler, job)
        if isinstance(outcome, BaseException):
            raise outcome
        if inspect.isawaitable(outcome):
            await outcome

    async def _settle(self, job: Job, error: dict[str, Any] | None) -> None:
        """Write the outcome; if the database stays away, the job is rescued and runs again."""
        for pause_s in (0.1, 0.5, 2.0, None):
            try:
                async with self._database.session() as connection:
                    if error is None:
                        ours = await queue_actions.finish(
                            connection, self._database.schema, job, worker=self._actor
                        )
                    else:
                        state = await queue_actions.fail(
                            connection,
                            self._database.schema,
                            job,
                            worker=self._actor,
                            error=_storable(error),
                            retry_delay_s=retry_delay_s(job.attempt, random.random()),  # noqa: S311
                        )
                        ours = state is not None
                        if state is JobState.FAILED:
                            log.error("failed for good", extra={"job": job.id, "kind": job.kind})
            except DatabaseError as trouble:
                log.warning("cannot write the outcome", extra={"job": job.id, "error": str(trouble)})
                if pause_s is None:
                    return
                await asyncio.sleep(pause_s)
            else:
                if ours and error is None:
                    log.info(
                        "completed",
                        extra={"job": job.id, "kind": job.kind, "attempt": job.attempt, "schedule": job.cron_name},
                    )
                elif not ours:
                    log.warning("no longer ours; its outcome is not written", extra={"job": job.id})
                return

    async def _heartbeat_forever(self, job: Job) -> None:
        while True:
            await asyncio.sleep(self._database.settings.heartbeat_interval_s)
            try:
                async with self._database.session() as connection:
                    ours = await queue_actions.heartbeat(
                        connection, self._database.schema, [job.id], worker=self._actor
                    )
            except DatabaseError as error:
                log.warning("cannot renew", extra={"job": job.id, "error": str(error)})
                continue
            if not ours:
                log.warning("no longer ours; somebody rescued it", extra={"job": job.id})
                return

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
        """Let running handlers finish, then cancel them; what cannot be cancelled is left to the rescue."""
        timeout_s = self._database.settings.shutdown_timeout_s
        if self._running:
            await asyncio.wait(self._running.values(), timeout=timeout_s)
        for task in self._running.values():
            task.cancel()
        if self._running:
            await asyncio.wait(self._running.values(), timeout=self._database.settings.statement_timeout_s)
        if self._running:
            log.error("handlers that do not stop", extra={"jobs": sorted(job for job, _ in self._running)})
        self._threads.shutdown(wait=False, cancel_futures=True)


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


def _storable(error: dict[str, Any]) -> dict[str, Any]:
    """Replace what Postgres cannot store in JSON."""
    return {
        key: value.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode() for key, value in error.items()
    }
