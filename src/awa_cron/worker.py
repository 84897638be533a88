"""Runs jobs: claim, hand to the handler, write what it says; renew what runs, rescue what fell silent.

Delivery is at least once: a worker that dies or loses the database after its handler has returned leaves a job
that somebody runs again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from awa_cron import queue_actions
from awa_cron.attempt import STOP_GRACE_S, Attempt, Crew, Task
from awa_cron.database import Database
from awa_cron.errors import DatabaseError
from awa_cron.settling import Settler
from awa_cron.sql import DRIVER_ERRORS, Connection, told

log = logging.getLogger(__name__)


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
        # By job and attempt: a worker that was frozen may have lost a job, and get it again while it still runs.
        self._running: dict[tuple[int, int], Attempt] = {}
        self._wake = asyncio.Event()
        self._beat = asyncio.Event()
        settings = database.settings
        self._threads = ThreadPoolExecutor(max_workers=settings.concurrency, thread_name_prefix="awa_cron job")
        self._crew = Crew(
            settler=Settler(database, actor),
            threads=self._threads,
            grace_s=min(STOP_GRACE_S, settings.shutdown_timeout_s),
            on_return=self._returned,
            on_end=self._ended,
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
            return await _uninterrupted(self._begin(connection, queues, limit))

    async def _begin(self, connection: Connection, queues: list[str] | None, limit: int) -> int:
        """Claim, and begin what was claimed: a worker that stops meanwhile still knows every job it has."""
        async with asyncio.timeout(self._database.settings.statement_timeout_s):
            claimed = await queue_actions.claim(
                connection,
                self._database.schema,
                kinds=list(self._tasks),
                queues=queues,
                limit=limit,
                worker=self._actor,
            )
        for job in claimed:
            self._running[job.id, job.attempt] = Attempt(job, self._tasks[job.kind], self._crew)
        return len(claimed)

    def _returned(self) -> None:
        if self._full:
            self._wake.set()

    def _ended(self, attempt: Attempt) -> None:
        del self._running[attempt.job.id, attempt.job.attempt]
        if self._full or isinstance(self._queues, Mapping):  # else nothing waits for its place
            self._wake.set()

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
        await _wait((attempt.ending for attempt in self._running.values()), settings.shutdown_timeout_s)
        for attempt in self._running.values():
            attempt.end("the worker stopped before the handler had finished")
        patience_s = STOP_GRACE_S + settings.statement_timeout_s
        await _wait((attempt.writing for attempt in self._running.values()), patience_s)
        if self._running:
            log.error("handlers that do not stop", extra={"jobs": sorted(job for job, _ in self._running)})
        for attempt in self._running.values():
            attempt.abandon()
        await _wait((attempt.ending for attempt in self._running.values()), self._crew.grace_s)
        self._threads.shutdown(wait=False, cancel_futures=True)


async def _uninterrupted(doing: Coroutine[None, None, int]) -> int:
    """Await what has to be known to its end; a cancellation is heard after it, and before its errors."""
    task = asyncio.create_task(doing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise


async def _wait(tasks: Iterable[asyncio.Task[None]], timeout_s: float) -> None:
    waited = set(tasks)
    if waited:
        await asyncio.wait(waited, timeout=timeout_s)
