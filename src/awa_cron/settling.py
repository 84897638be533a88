"""Writes the outcomes of attempts, those that come together in one statement.

An outcome is written at once if no other is being written. Those that come meanwhile are the next batch, so nothing
ever waits for a timer, and a busy worker's batches grow by themselves.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from awa_cron import queue_actions
from awa_cron.database import Database
from awa_cron.errors import DatabaseError
from awa_cron.model import Job, JobState
from awa_cron.outcomes import Cancel, RetryAfter, Snooze
from awa_cron.queue_actions import Settled
from awa_cron.sql import Connection, refuses_content

MAX_RETRY_DELAY_S = 24 * 3600.0
AT_ONCE = 1_000
"""Outcomes of one statement."""
HELD_PAUSE_S = 0.02
MAX_HELD_PAUSE_S = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Failed:
    """An attempt that has failed, and what is stored of it."""

    error: dict[str, str]


Outcome: TypeAlias = "Snooze | RetryAfter | Cancel | Failed | None"


class _Ended(NamedTuple):
    """An attempt that has ended, what is written of it, and who waits for that; None: its job's row is held."""

    job: Job
    action: str
    values: tuple[Any, ...]
    answer: asyncio.Future[tuple[JobState | None, bool]]


class Settler:
    """Writes outcomes for one worker.

    Args:
        database: Open.
        actor: The worker; the fence of its outcomes.
    """

    def __init__(self, database: Database, actor: str) -> None:
        self._database = database
        self._actor = actor
        self._pending: list[_Ended] = []
        self._writing: asyncio.Task[None] | None = None

    async def settle(self, job: Job, outcome: Outcome) -> JobState | None:
        """Write the outcome of an attempt.

        Returns:
            What the job became; None when it is no longer this worker's.

        Raises:
            DatabaseError: The server refused, the connection is gone, or somebody held the job's row all the time.
        """
        action, values = _written(job, outcome)
        pause_s, patience_s = HELD_PAUSE_S, self._database.settings.statement_timeout_s
        while True:
            answer: asyncio.Future[tuple[JobState | None, bool]] = asyncio.get_running_loop().create_future()
            self._pending.append(_Ended(job, action, values, answer))
            if self._writing is None or self._writing.done():
                self._writing = asyncio.create_task(self._write_all(), name="awa_cron settle")
            state, held = await answer
            if not held:
                return state
            if patience_s <= 0:
                raise DatabaseError(f"{action}: another transaction holds the row of job {job.id}")
            await asyncio.sleep(pause_s)
            patience_s, pause_s = patience_s - pause_s, min(2 * pause_s, MAX_HELD_PAUSE_S)

    async def _write_all(self) -> None:
        while self._pending:
            batch, self._pending = self._pending[:AT_ONCE], self._pending[AT_ONCE:]
            for action in sorted({ended.action for ended in batch}):
                await self._write(action, [ended for ended in batch if ended.action == action])

    async def _write(self, action: str, batch: Sequence[_Ended]) -> None:
        """Write outcomes of one kind; one that the database refuses is found by halving, and fails alone."""
        try:
            async with self._database.session() as connection:
                settled = await self._settled(connection, action, batch)
        except DatabaseError as error:
            if len(batch) > 1 and refuses_content(error.__cause__):
                middle = len(batch) // 2
                await self._write(action, batch[:middle])
                await self._write(action, batch[middle:])
                return
            _fail(batch, error)
        except BaseException as error:
            _fail(batch, DatabaseError(f"{action}: it was not written: {error}"))
            raise
        else:
            for ended in batch:
                attempt = ended.job.id, ended.job.attempt
                if not ended.answer.done():
                    ended.answer.set_result((settled.written.get(attempt), attempt in settled.held))

    async def _settled(self, connection: Connection, action: str, batch: Iterable[_Ended]) -> Settled:
        write: Callable[..., Awaitable[Settled]] = getattr(queue_actions, action)
        rows = [(ended.job, *ended.values) if ended.values else ended.job for ended in batch]
        return await write(connection, self._database.schema, rows, worker=self._actor)


def retry_delay_s(attempt: int, jitter: float) -> float:
    """Return the seconds to wait after a failed attempt: 2, 4, 8, … and up to a quarter more, at most a day.

    Args:
        attempt: The attempt that failed, from 1.
        jitter: From 0 to 1.
    """
    return min(2.0 ** min(attempt, 20) * (1 + jitter / 4), MAX_RETRY_DELAY_S)


def _written(job: Job, outcome: Outcome) -> tuple[str, tuple[Any, ...]]:
    """Return the action that an outcome is, and what it writes beside the job."""
    if isinstance(outcome, Snooze) and job.max_attempts >= queue_actions.MAX_ATTEMPTS:
        outcome = RetryAfter(outcome.delay_s, "it cannot be snoozed: its max_attempts is at the limit")
    match outcome:
        case None:
            return "finish", ()
        case Snooze(delay_s):
            return "snooze", (delay_s,)
        case Cancel(reason):
            return "cancel_own", (_storable({"error": reason}),)
        case RetryAfter(delay_s, reason):
            return "fail", (_storable({"error": reason}), delay_s)
        case Failed(error):
            return "fail", (_storable(error), retry_delay_s(job.attempt, random.random()))  # noqa: S311


def _fail(batch: Iterable[_Ended], error: DatabaseError) -> None:
    for ended in batch:
        if not ended.answer.done():
            ended.answer.set_exception(error)


def _storable(error: dict[str, str]) -> dict[str, str]:
    """Replace what Postgres cannot store in JSON."""
    return {
        key: value.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode() for key, value in error.items()
    }
