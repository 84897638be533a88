"""The library's front: register schedules and handlers, run them, and act on them as an operator."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar, overload

from awa_cron import registration, typed
from awa_cron.actions import asking
from awa_cron.attempt import Handler, Task
from awa_cron.errors import DatabaseError, InvalidArgs, InvalidArgument, InvalidSchedule
from awa_cron.model import Job, MissedFirePolicy, Schedule
from awa_cron.operating import FigureVerbs, InsightVerbs, JobVerbs, KeepingVerbs, ScheduleVerbs, TimelineVerbs
from awa_cron.registration import NewJob
from awa_cron.scheduler import Scheduler
from awa_cron.settings import Settings
from awa_cron.worker import Worker

log = logging.getLogger(__name__)

AnyHandler = TypeVar("AnyHandler", bound=Handler)
Args = TypeVar("Args")
Returned = TypeVar("Returned")


class Client(ScheduleVerbs, InsightVerbs, TimelineVerbs, FigureVerbs, JobVerbs, KeepingVerbs):
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
        super().__init__(dsn, schema=schema, settings=settings, clock=clock)
        self.actor = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(2)}"
        """This instance in the event log and as the owner of its running jobs."""
        self._queues = None if queues is None else _queues(queues)
        self._schedules: dict[str, Schedule] = {}
        self._tasks: dict[str, Task] = {}
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

    def _check_job(self, job: NewJob) -> None:
        misfit = _misfit(job.args_json, self._tasks.get(job.kind))
        if misfit is not None:
            raise InvalidArgument(f"job: {misfit}")

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """What this process registers."""
        return tuple(self._schedules.values())

    @property
    def leading(self) -> bool:
        """Whether this instance believes that it evaluates the schedules."""
        return self._scheduler is not None and self._scheduler.leading

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running is not None and self._running is not asyncio.current_task():
            self._running.cancel()
            await asyncio.wait([self._running])
        await super().__aexit__(kind, error, trace)

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

    async def _require_rights(self, *, evaluate: bool, work: bool) -> None:
        """Say at the start, not in every pass, what this session cannot do."""
        parts = ["evaluate"] * evaluate + ["work"] * (work and bool(self._tasks))
        if evaluate and (self.settings.keep_jobs_s, self.settings.keep_events_s) != (None, None):
            parts.append("purge")
        async with self._connected().session() as connection, asking("run"):
            found = await connection.fetchrow(self.schema.statement("queries/rights"), self.schema.name, parts)
        assert found is not None
        if found["read_only"]:
            raise DatabaseError(
                "run: this session is read-only: connect to the primary, with a role that may write"
            )
        if found["lacking"]:
            lacking = ", ".join(found["lacking"])
            roles = " and ".join(f"PREFIX_{part}" for part in parts)
            raise DatabaseError(
                f"run: the role lacks rights in schema {self.schema.name!r}: {lacking};"
                f" here it needs {roles} of `awa-cron grants`"
            )


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


def _queues(queues: Sequence[str] | Mapping[str, int]) -> list[str] | dict[str, int]:
    if isinstance(queues, str) or not isinstance(queues, (Sequence, Mapping)):
        raise InvalidArgument(f"queues is {queues!r}: it must be a list of names, or a dict of names and numbers")
    if not queues:
        raise InvalidArgument(f"queues is {queues!r}: name one at least, or pass None for all of them")
    names = [registration.label(queue, "queue") for queue in queues]
    if not isinstance(queues, Mapping):
        return names
    for queue, limit in queues.items():
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InvalidArgument(f"queues[{queue!r}] is {limit!r}: it must be a whole number above 0")
    return dict(queues)


def _misfit(args_json: str, task: Task | None) -> InvalidArgs | None:
    """Return why the handler of this process, if there is one, cannot take arguments."""
    if task is not None and task.read is not None:
        try:
            task.read(json.loads(args_json))
        except InvalidArgs as error:
            return error
    return None


def _check_args(schedule: Schedule, task: Task | None) -> None:
    """Refuse a schedule whose every job would fail."""
    misfit = _misfit(schedule.args_json, task)
    if misfit is not None:
        raise InvalidSchedule(f"schedule {schedule.name!r}: {misfit}")
