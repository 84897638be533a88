"""The library's front: register schedules and handlers, run them, and act on them as an operator."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import asyncpg

from awa_cron import actions, queue_actions, registration, rows, typed
from awa_cron.actions import asking
from awa_cron.database import Database
from awa_cron.errors import (
    DatabaseError,
    DeadJobNotFound,
    InvalidArgs,
    InvalidArgument,
    InvalidSchedule,
    ScheduleNotFound,
)
from awa_cron.model import Cancelled, DeadJob, Event, Job, MissedFirePolicy, Queue, Schedule, StoredSchedule, aware
from awa_cron.queue_actions import MAX_ATTEMPTS, Selection
from awa_cron.scheduler import Scheduler
from awa_cron.settings import Settings
from awa_cron.sql import Connection, Schema
from awa_cron.verify import Verdict, verify
from awa_cron.worker import Handler, Task, Worker

log = logging.getLogger(__name__)

AnyHandler = TypeVar("AnyHandler", bound=Handler)
Args = TypeVar("Args")
Returned = TypeVar("Returned")


class Client:
    """Schedules and handlers of one process, and its connection to the database.

    Entering the client connects and checks the schema; ``run_forever`` syncs, stands for election, evaluates and
    works. An operator's script only enters it.

    Args:
        dsn: A Postgres connection string. It may be given later, to ``connect_to``.
        schema: The schema that ``awa-cron migrate`` made.
        settings: Timing and limits.
        queues: The queues that this process works on; with a number for each, at most so many of its jobs run
            here at once (``{"email": 2, "default": 10}``); None for all. ``Settings.concurrency`` holds for all
            together.
        clock: A clock instead of the database's, for tests.

    Raises:
        InvalidArgument: A value cannot be used; the message says which.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        schema: str = "awa",
        settings: Settings | None = None,
        queues: Sequence[str] | Mapping[str, int] | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.schema = Schema(schema)
        if settings is not None and not isinstance(settings, Settings):
            raise InvalidArgument(f"settings is a {type(settings).__name__}: pass awa_cron.Settings(…)")
        self.settings = settings or Settings()
        self.actor = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(2)}"
        """This instance in the event log and as the owner of its running jobs."""
        self._dsn = None if dsn is None else _dsn(dsn)
        self._queues = None if queues is None else _queues(queues)
        self._clock = clock
        self._schedules: dict[str, Schedule] = {}
        self._tasks: dict[str, Task] = {}
        self._database: Database | None = None
        self._scheduler: Scheduler | None = None
        self._running: asyncio.Task[object] | None = None

    def periodic(
        self,
        name: str,
        cron_expr: str,
        *,
        kind: str,
        args: object = None,
        timezone: str = "UTC",
        queue: str = "default",
        priority: int = 2,
        max_attempts: int = 25,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        missed_fire_policy: str = MissedFirePolicy.COALESCE,
        deadline_s: float | None = None,
    ) -> Schedule:
        """Register a schedule; it is stored at the next sync of ``run_forever``.

        Args:
            name: Unique in the database; at most 200 characters.
            cron_expr: Five fields, or six with seconds first; ``@daily`` and its kin.
            kind: Which handler runs the jobs, here or in another deployment.
            args: What the handler gets: a dict of JSON values, or an instance of its dataclass or pydantic model;
                copied now.
            timezone: An IANA name; the expression is read in this zone.
            queue: Where the jobs wait.
            priority: 1 (first) to 4.
            max_attempts: 1 to 1000.
            tags: At most 20 labels of each job.
            metadata: Further JSON labels of each job.
            missed_fire_policy: ``coalesce`` (one job for the latest missed fire) or ``catch_up`` (one for each).
            deadline_s: How long each attempt may take; None for no limit.

        Raises:
            InvalidSchedule: Anything above is not so, the name is registered already, or the handler that is
                registered here takes other arguments.
        """
        schedule = registration.schedule(
            name,
            cron_expr,
            kind=kind,
            args=args,
            timezone=timezone,
            queue=queue,
            priority=priority,
            max_attempts=max_attempts,
            tags=tags,
            metadata=metadata,
            missed_fire_policy=missed_fire_policy,
            deadline_s=deadline_s,
        )
        if name in self._schedules:
            raise InvalidSchedule(f"schedule {name!r} is registered twice in this process: rename one of the two")
        _check_args(schedule, self._tasks.get(schedule.kind))
        self._schedules[schedule.name] = schedule
        return schedule

    @overload
    def task(self, kind: str, *, args: None = None) -> Callable[[AnyHandler], AnyHandler]: ...

    @overload
    def task(
        self, kind: str, *, args: type[Args]
    ) -> Callable[[Callable[[Job[Args]], Returned]], Callable[[Job[Args]], Returned]]: ...

    def task(self, kind: str, *, args: type | None = None) -> Callable[[Any], Any]:
        """Register the decorated function as the handler of a kind of job; async, or sync to run in a thread.

        It may return ``Snooze``, ``RetryAfter`` or ``Cancel``; anything else it returns means that the job is done.

        Args:
            kind: The jobs that it runs.
            args: A dataclass or pydantic model; ``job.args`` is an instance of it. A job whose arguments do not fit
                fails with the reason.

        Raises:
            InvalidSchedule: The kind is no label, or has a handler already, the type cannot be read from JSON, or a
                schedule that is registered here has arguments that do not fit.
        """
        registration.label(kind, "kind")
        if kind in self._tasks:
            raise InvalidSchedule(f"kind {kind!r} has two handlers in this process: rename one of the two")
        read = None if args is None else typed.reader(args, kind)

        def register(handler: Handler) -> Handler:
            _check_handler(kind, handler)
            task = Task(handler, read)
            for schedule in self._schedules.values():
                _check_args(schedule, task if schedule.kind == kind else None)
            self._tasks[kind] = task
            return handler

        return register

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """What this process registers."""
        return tuple(self._schedules.values())

    @property
    def leading(self) -> bool:
        """Whether this instance believes that it evaluates the schedules."""
        return self._scheduler is not None and self._scheduler.leading

    def connect_to(self, dsn: str) -> None:
        """Set the connection string, before the client is entered."""
        if self._database is not None:
            raise InvalidArgument("the client is connected already")
        self._dsn = _dsn(dsn)

    async def __aenter__(self) -> Self:
        if self._database is not None:
            raise InvalidArgument("the client is entered already")
        if self._dsn is None:
            raise InvalidArgument("no connection string: pass one to Client(dsn), or give `awa-cron run` --dsn")
        database = Database(
            self._dsn, self.schema, self.settings, pool_size=min(20, 3 + self.settings.concurrency // 2)
        )
        await database.open()
        self._database = database
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        database = self._connected()
        if self._running is not None and self._running is not asyncio.current_task():
            self._running.cancel()
            await asyncio.wait([self._running])
        self._database = None
        await database.close()

    async def run_forever(self, *, evaluate: bool = True, work: bool = True) -> None:
        """Sync, stand for election, evaluate while leading, and run jobs, until cancelled.

        Leaving the client cancels it too. Either way running handlers may finish first, for
        ``Settings.shutdown_timeout_s`` at most.

        Args:
            evaluate: Take part in syncing and leading.
            work: Run jobs of the kinds that have a handler here.

        Raises:
            InvalidArgument: The client is not entered, or runs already.
            DatabaseError: The role may not write, or nothing can be written here just now.
        """
        database = self._connected()
        if self._running is not None:
            raise InvalidArgument("the client runs already: one run_forever() is enough")
        self._running = asyncio.current_task()  # before anything is awaited, so that a second call sees it
        try:
            await self._require_rights(evaluate=evaluate, work=work)
            for kind in sorted({schedule.kind for schedule in self.schedules} - self._tasks.keys()):
                log.warning("no handler here; its jobs wait for a process that has one", extra={"kind": kind})
            self._scheduler = Scheduler(database, lambda: self.schedules, self.actor, self._clock)
            worker = Worker(database, self._tasks, self._queues, self.actor)
            async with asyncio.TaskGroup() as parts:
                if evaluate:
                    parts.create_task(self._scheduler.run(), name="awa_cron scheduler")
                if work:
                    parts.create_task(worker.run(), name="awa_cron worker")
        finally:
            self._scheduler = self._running = None

    async def pause(self, name: str, *, by: str | None = None) -> bool:
        """Stop a schedule's automatic fires; its jobs go on.

        Returns:
            False when it was paused already; its label then stays.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        async with self._connected().session() as connection:
            changed = await actions.pause(connection, self.schema, name, by=_by(by), clock=self._now())
        return _found(changed, name)

    async def resume(self, name: str, *, by: str | None = None) -> bool:
        """Let a schedule fire again; its policy decides what becomes of the missed fires.

        Returns:
            False when it was not paused.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        async with self._connected().session() as connection:
            changed = await actions.resume(connection, self.schema, name, by=_by(by), clock=self._now())
        return _found(changed, name)

    async def trigger(self, name: str, *, by: str | None = None) -> Job:
        """Insert a job of the schedule now, paused or not.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        async with self._connected().session() as connection:
            job = await actions.trigger(connection, self.schema, name, by=_by(by), clock=self._now())
        return _found(job, name)

    async def remove(self, name: str, *, by: str | None = None) -> None:
        """Delete a schedule; its jobs stay. A process that still registers it brings it back at its next sync.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        async with self._connected().session() as connection:
            removed = await actions.remove(connection, self.schema, name, by=_by(by), clock=self._now())
        _found(removed or None, name)

    async def enqueue(
        self,
        kind: str,
        args: object = None,
        *,
        queue: str = "default",
        priority: int = 2,
        max_attempts: int = 25,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        run_at: datetime | None = None,
        deadline_s: float | None = None,
        connection: Connection | None = None,
    ) -> Job:
        """Make a job by hand, of no schedule.

        Args:
            kind: Which handler runs it, here or in another deployment.
            args: A dict of JSON values, or an instance of a dataclass or pydantic model.
            queue: Where it waits.
            priority: 1 (first) to 4.
            max_attempts: 1 to 1000.
            tags: At most 20 labels.
            metadata: Further JSON labels.
            run_at: When it may run, at the earliest; None for now.
            deadline_s: How long each attempt may take; None for no limit.
            connection: An asyncpg connection of the caller's, which may be in a transaction: then there is a job if
                and when that commits. The client need not be entered. None for one of the client's.

        Raises:
            InvalidArgument: A value cannot be used; the message says which.
            DatabaseError: The server refused; inside a transaction of the caller's, that is aborted.
        """
        job = registration.job(
            kind,
            args,
            queue=queue,
            priority=priority,
            max_attempts=max_attempts,
            tags=tags,
            metadata=metadata,
            run_at=run_at,
            deadline_s=deadline_s,
        )
        if connection is not None:
            if not isinstance(connection, (asyncpg.Connection, asyncpg.pool.PoolConnectionProxy)):
                raise InvalidArgument(f"connection is a {type(connection).__name__}: it must be asyncpg's")
            return await queue_actions.submit(connection, self.schema, job, clock=self._now())
        async with self._connected().session() as session:
            return await queue_actions.submit(session, self.schema, job, clock=self._now())

    async def cancel_jobs(self, cron_name: str, *, running: bool = False, by: str | None = None) -> Cancelled:
        """Cancel a schedule's jobs that have not begun, be the schedule paused, removed or neither.

        Args:
            cron_name: The schedule whose jobs they are.
            running: Also those that run: their handlers are told to stop, and nothing that they still say counts.
            by: A label for the history.

        Returns:
            How many of each.

        Raises:
            ScheduleNotFound: Neither a schedule nor a job has that name.
        """
        async with self._connected().session() as connection:
            cancelled = await queue_actions.cancel_jobs(
                connection, self.schema, cron_name, running=running, by=_by(by), clock=self._now()
            )
        return _found(cancelled, cron_name)

    async def pause_queue(self, queue: str, *, by: str | None = None) -> bool:
        """Hand out no more jobs of a queue; they go on being made, and what runs goes on.

        Returns:
            False when it was paused already; its label then stays.
        """
        name = _queue(queue)
        async with self._connected().session() as connection:
            return await queue_actions.pause_queue(connection, self.schema, name, by=_by(by), clock=self._now())

    async def resume_queue(self, queue: str, *, by: str | None = None) -> bool:
        """Hand out a queue's jobs again, in their order.

        Returns:
            False when it was not paused.
        """
        name = _queue(queue)
        async with self._connected().session() as connection:
            return await queue_actions.resume_queue(connection, self.schema, name, by=_by(by), clock=self._now())

    async def list_queues(self) -> list[Queue]:
        """Return every queue that a schedule, an unfinished or dead job, or a pause names, by name."""
        async with self._connected().session() as connection, asking("queue list"):
            found = await connection.fetch(self.schema.statement("queries/queues"))
        return [Queue(**dict(row)) for row in found]

    async def list_dead(
        self,
        *,
        cron_name: str | None = None,
        kind: str | None = None,
        queue: str | None = None,
        limit: int = 100,
    ) -> list[DeadJob]:
        """Return jobs that have used up their attempts, the latest first."""
        async with self._connected().session() as connection, asking("dead list"):
            found = await connection.fetch(self.schema.statement("queries/dead"), cron_name, kind, queue, limit)
        return [rows.dead_job(row) for row in found]

    async def retry_dead(
        self,
        ids: Sequence[int] | None = None,
        *,
        cron_name: str | None = None,
        kind: str | None = None,
        queue: str | None = None,
        before: datetime | None = None,
        attempts: int = 1,
        by: str | None = None,
    ) -> list[int]:
        """Give dead jobs a second life; those that fit everything which is given, all if nothing is.

        Args:
            ids: These.
            cron_name: Of this schedule.
            kind: Of this kind.
            queue: Of this queue.
            before: That died before this time.
            attempts: How many attempts each gets.
            by: A label for the history.

        Returns:
            The jobs that wait again.

        Raises:
            DeadJobNotFound: One of ``ids`` is not dead, or would come to more than 1000 attempts; the others wait
                again.
        """
        whole = isinstance(attempts, int) and not isinstance(attempts, bool)
        if not whole or not 1 <= attempts <= MAX_ATTEMPTS:
            raise InvalidArgument(f"attempts is {attempts!r}: it must be a whole number from 1 to {MAX_ATTEMPTS}")
        which = _selection(ids, cron_name, kind, queue, before)
        async with self._connected().session() as connection:
            done = await queue_actions.retry_dead(
                connection, self.schema, which, attempts=attempts, by=_by(by), clock=self._now()
            )
        return _all_of(which, done, "retried")

    async def purge_dead(
        self,
        ids: Sequence[int] | None = None,
        *,
        cron_name: str | None = None,
        kind: str | None = None,
        queue: str | None = None,
        before: datetime | None = None,
        by: str | None = None,
    ) -> list[int]:
        """Delete dead jobs, for good; those that fit everything which is given, all if nothing is.

        Returns:
            The jobs that are gone.

        Raises:
            DeadJobNotFound: One of ``ids`` is not dead; the others are gone.
        """
        which = _selection(ids, cron_name, kind, queue, before)
        async with self._connected().session() as connection:
            done = await queue_actions.purge_dead(connection, self.schema, which, by=_by(by), clock=self._now())
        return _all_of(which, done, "purged")

    async def list_schedules(self) -> list[StoredSchedule]:
        """Return every stored schedule, by name, also those of other deployments and those that are broken."""
        async with self._connected().session() as connection, asking("list"):
            found = await connection.fetch(self.schema.statement("queries/schedules"), None)
        return [rows.stored_schedule(row) for row in found]

    async def get_schedule(self, name: str) -> StoredSchedule:
        """Return one stored schedule.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        async with self._connected().session() as connection, asking("show"):
            row = await connection.fetchrow(self.schema.statement("queries/schedules"), name)
        return rows.stored_schedule(_found(row, name))

    async def history(self, name: str | None = None, *, limit: int = 100) -> list[Event]:
        """Return the newest events of a schedule, newest first; of a removed one too.

        Args:
            name: None for all schedules and the leadership.
            limit: The most events.
        """
        async with self._connected().session() as connection, asking("history"):
            found = await connection.fetch(self.schema.statement("queries/history"), name, limit)
        return [rows.event(row) for row in found]

    async def verify(
        self,
        *,
        since: datetime | None = None,
        name: str | None = None,
        grace_s: float = 60.0,
        jobs_kept: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Verdict:
        """Check that what happened is a behaviour of the spec, and account for every due instant; it only reads.

        Args:
            since: Only events recorded from then on.
            name: Only this schedule.
            grace_s: How long an instant may be due before it counts as lost or late.
            jobs_kept: Jobs are never deleted in this database, so that one that is gone is a finding.
            progress: Told now and then how many events have been checked.

        Raises:
            ScheduleNotFound: No schedule has that name, and none had.
        """
        if not math.isfinite(grace_s) or grace_s < 0:
            raise InvalidArgument(f"grace_s is {grace_s!r}: it must be a number of seconds, 0 or more")
        verdict = await verify(
            self._connected(),
            since=None if since is None else aware(since, "since"),
            name=name,
            grace_s=grace_s,
            jobs_kept=jobs_kept,
            clock=self._now(),
            progress=progress,
        )
        if name is not None and not verdict.accounts:
            raise ScheduleNotFound(name)
        return verdict

    async def _require_rights(self, *, evaluate: bool, work: bool) -> None:
        """Say at the start, not in every pass, what this session cannot do."""
        parts = ["evaluate"] * evaluate + ["work"] * (work and bool(self._tasks))
        async with self._connected().session() as connection, asking("run"):
            found = await connection.fetchrow(self.schema.statement("queries/rights"), self.schema.name, parts)
        assert found is not None
        if found["read_only"]:
            raise DatabaseError(
                "run: this session is read-only: connect to the primary, with a role that may write"
            )
        if found["lacking"]:
            lacking = ", ".join(found["lacking"])
            raise DatabaseError(f"run: the role lacks rights in schema {self.schema.name!r}: {lacking}")

    def _connected(self) -> Database:
        if self._database is None:
            raise InvalidArgument("not connected: use `async with client:`")
        return self._database

    def _now(self) -> datetime | None:
        return None if self._clock is None else self._clock()


def _check_handler(kind: str, handler: object) -> None:
    """Refuse what could only fail, or do nothing, when its first job comes."""
    if not callable(handler):
        raise InvalidSchedule(f"the handler of {kind!r} is not callable: {handler!r}")
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise InvalidSchedule(f"the handler of {kind!r} is a generator, which would never run: do not yield in it")
    try:
        inspect.signature(handler).bind(object())
    except TypeError:
        raise InvalidSchedule(f"the handler of {kind!r} must take one argument, the job") from None
    except ValueError:
        return  # some callables written in C do not tell


def _dsn(dsn: object) -> str:
    if not isinstance(dsn, str) or not dsn.startswith(("postgresql://", "postgres://")):
        raise InvalidArgument(f"the connection string must begin with postgresql://, not {str(dsn)[:12]!r}")
    return dsn


Found = TypeVar("Found")


def _found(outcome: Found | None, name: str) -> Found:
    if outcome is None:
        raise ScheduleNotFound(name)
    return outcome


def _by(label: str | None) -> str | None:
    return None if label is None else registration.label(label, "by")


def _queues(queues: Sequence[str] | Mapping[str, int]) -> list[str] | dict[str, int]:
    if isinstance(queues, str) or not isinstance(queues, (Sequence, Mapping)):
        raise InvalidArgument(f"queues is {queues!r}: it must be a list of names, or a dict of names and numbers")
    names = [registration.label(queue, "queue") for queue in queues]
    if not isinstance(queues, Mapping):
        return names
    for queue, limit in queues.items():
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InvalidArgument(f"queues[{queue!r}] is {limit!r}: it must be a whole number above 0")
    return dict(queues)


def _queue(name: str) -> str:
    try:
        return registration.label(name, "queue")
    except InvalidSchedule as error:
        raise InvalidArgument(str(error)) from None


def _check_args(schedule: Schedule, task: Task | None) -> None:
    """Refuse a schedule whose every job would fail."""
    if task is not None and task.read is not None:
        try:
            task.read(schedule.args)
        except InvalidArgs as error:
            raise InvalidSchedule(f"schedule {schedule.name!r}: {error}") from None


def _selection(
    ids: Sequence[int] | None,
    cron_name: str | None,
    kind: str | None,
    queue: str | None,
    before: datetime | None,
) -> Selection:
    if ids is not None:
        for each in ids:
            if isinstance(each, bool) or not isinstance(each, int) or not 0 <= each < 2**63:
                raise InvalidArgument(f"job id {each!r}: it must be a whole number")
    return Selection(
        ids=None if ids is None else tuple(ids),
        cron_name=cron_name,
        kind=kind,
        queue=queue,
        before=None if before is None else aware(before, "before"),
    )


def _all_of(which: Selection, done: list[int], what: str) -> list[int]:
    missing = sorted(set(which.ids or ()) - set(done))
    if missing:
        raise DeadJobNotFound(
            f"not {what}: {', '.join(map(str, missing))}: no dead job has that id and fits"
            + (f"; {what}: {', '.join(map(str, done))}" if done else "")
        )
    return done
