"""An attempt of a job in this process: its handler runs or is told to stop, and what comes of it is written.

One task runs the handler and then writes its outcome. An attempt that is to stop gets a second one, which writes it
if the handler goes on.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
import traceback
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import TypeAlias

from awa_cron import telemetry
from awa_cron.errors import DatabaseError, InvalidArgs
from awa_cron.model import Job, JobState, Unreadable
from awa_cron.outcomes import Cancel, RetryAfter, Snooze
from awa_cron.settling import Failed, Outcome, Settler
from awa_cron.typed import Reader

Handler: TypeAlias = Callable[[Job], object]
"""Async, or sync to run in a thread. It returns ``Snooze``, ``RetryAfter``, ``Cancel``; else it is done."""

log = logging.getLogger(__name__)

MAX_ERROR_CHARACTERS = 10_000
SAID = (Snooze, RetryAfter, Cancel)
"""What a handler may say instead of nothing."""
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """What the attempts of one worker share.

    Attributes:
        settler: Writes the outcomes.
        threads: Where sync handlers run.
        grace_s: How long a handler that was told to stop may take.
        on_return: Called when a handler has ended.
        on_end: Called when nothing is left of an attempt.
    """

    settler: Settler
    threads: Executor
    grace_s: float
    on_return: Callable[[], None]
    on_end: Callable[[Attempt], None]


class Attempt:
    """An attempt that runs here.

    Attributes:
        job: As claimed.
        returned: Whether the handler has ended.
        lost: Whether it is void: the job is somebody else's, or nobody's, and no outcome is written.
    """

    def __init__(self, job: Job, task: Task, crew: Crew) -> None:
        self.job = job
        self.returned = False
        self.lost = False
        self._task = task
        self._crew = crew
        self._reason: str | None = None
        self._written_without = False
        self._in_thread = False
        self._stopping: asyncio.Task[None] | None = None
        self._running = asyncio.create_task(self._run(), name=f"awa_cron job {job.id}")

    def end(self, reason: str, *, lost: bool = False) -> None:
        """Have the handler stop; the first reason counts. What is lost is lost, whyever it was to stop before.

        An attempt that was told to stop has failed, whatever its handler still says.
        """
        self.lost = self.lost or lost
        if self.returned or self._reason is not None:
            return
        self._reason = reason
        log.warning("told to stop", extra=self._fields() | {"reason": reason})
        self.job.cancellation.set(reason)
        if not self._in_thread:
            self._running.cancel()
        self._stopping = asyncio.create_task(self._stop(reason), name=f"awa_cron stop {self.job.id}")

    def abandon(self) -> None:
        """Wait no longer, neither for the handler nor for the database."""
        for task in (self._running, self._stopping):
            if task is not None:
                task.cancel()

    @property
    def ending(self) -> asyncio.Task[None]:
        """What is done when nothing is left of the attempt."""
        return self._running

    @property
    def writing(self) -> asyncio.Task[None]:
        """What is done when nothing more will be written of the attempt."""
        return self._stopping or self._running

    async def _run(self) -> None:
        deadline_s = self.job.deadline_s
        alarm = None if deadline_s is None else self._at_deadline(deadline_s)
        try:
            try:
                outcome = await self._call()
            finally:
                if alarm is not None:
                    alarm.cancel()
            self.returned = True
            self._crew.on_return()
            await _uncancelled()
            if not self._written_without:
                await self._settle(outcome if self._reason is None else Failed({"error": self._reason}))
        finally:
            self._crew.on_end(self)

    async def _stop(self, reason: str) -> None:
        """Wait for the handler, but not for long; one that goes on keeps its place, or more would run than may."""
        await asyncio.wait({self._running}, timeout=self._crew.grace_s)
        if self.returned:
            await asyncio.wait({self._running})
        else:
            self._written_without = True
            await self._settle(Failed({"error": reason}))

    @telemetry.handling
    async def _call(self) -> Outcome:
        """Run the handler, and return what becomes of the job; whatever it raises, it takes no others along."""
        job, task = self.job, self._task
        try:
            _check_readable(job)
            if task.read is not None:
                job = dataclasses.replace(job, args=task.read(job.args))
            if task.in_loop:
                said = await task.handler(job)  # type: ignore[misc]
            else:
                said = await self._call_in_thread(job)
            return _outcome(said)
        except BaseException as error:  # a handler that exits has failed; it must not take the worker along
            if not job.cancellation.is_set():
                log.exception("attempt failed", extra=self._fields())
            text = "".join(traceback.format_exception(error))[-MAX_ERROR_CHARACTERS:]
            return Failed({"error": _told(error)[:MAX_ERROR_CHARACTERS], "traceback": text})

    async def _call_in_thread(self, job: Job) -> object:
        self._in_thread = True
        called = asyncio.get_running_loop().run_in_executor(self._crew.threads, _called, self._task.handler, job)
        outcome = await called
        self._in_thread = False
        if isinstance(outcome, _Raised):
            raise outcome.error
        if inspect.iscoroutine(outcome) and self._reason is not None:
            outcome.close()  # told to stop before it began
            return None
        return await outcome if inspect.isawaitable(outcome) else outcome

    async def _settle(self, outcome: Outcome) -> None:
        """Write the outcome; if the database stays away, the job is rescued and runs again."""
        job = self.job
        for pause_s in (0.1, 0.5, 2.0, None):
            if self.lost:
                return
            try:
                became = await self._crew.settler.settle(job, outcome)
            except DatabaseError as trouble:
                log.warning("cannot write the outcome", extra={"job": job.id, "error": str(trouble)})
                if pause_s is None:
                    return
                await asyncio.sleep(pause_s)
            else:
                if became is None:
                    log.warning("no longer ours; its outcome is not written", extra={"job": job.id})
                elif became is JobState.FAILED:
                    log.error("failed for good", extra=self._fields())
                elif log.isEnabledFor(logging.INFO):
                    log.info(str(became), extra=self._fields())
                if became is not None:
                    telemetry.settled(job, became)
                return

    def _at_deadline(self, deadline_s: float) -> asyncio.TimerHandle:
        late = f"its deadline of {deadline_s} s has passed"
        return asyncio.get_running_loop().call_later(deadline_s, self.end, late)

    def _fields(self) -> dict[str, object]:
        job = self.job
        return {"job": job.id, "kind": job.kind, "attempt": job.attempt, "schedule": job.cron_name}


def _outcome(said: object) -> Outcome:
    """Return what a handler has said; whatever else it returns, it is done."""
    if isinstance(said, type) and issubclass(said, SAID):
        raise TypeError(f"the handler returned the class {said.__name__}: return {said.__name__}(…)")
    return said if isinstance(said, SAID) else None


def _check_readable(job: Job) -> None:
    for what, value in (("args", job.args), ("metadata", job.metadata)):
        if isinstance(value, Unreadable):
            raise InvalidArgs(f"the {what} of job {job.id} cannot be read: {value.reason}")


async def _uncancelled() -> None:
    """Take back what was asked of this task while the handler had it: the outcome is still to be written."""
    task = asyncio.current_task()
    assert task is not None
    if task.cancelling():
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)  # a handler that has cancelled itself, and returned without waiting for anything
        while task.uncancel():
            pass


@dataclasses.dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


def _called(handler: Handler, job: Job) -> object:
    """Call a sync handler in its thread; what it raises is handed back, since a future refuses StopIteration."""
    try:
        return handler(job)
    except BaseException as error:  # noqa: BLE001
        return _Raised(error)


def _told(error: BaseException) -> str:
    """Return an error in one line, also one whose own text fails."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001
        return type(error).__name__
