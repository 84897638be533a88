"""The loops of one instance: sync its schedules, stand for election, and while leading evaluate and ping."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from awa_cron import actions, telemetry
from awa_cron.database import Database
from awa_cron.errors import DatabaseError, LeadershipLost
from awa_cron.evaluator import TOLD, Evaluator
from awa_cron.leader import Leader
from awa_cron.model import Kind, Schedule
from awa_cron.queue_watch import watch_queues
from awa_cron.retention import purge_forever

log = logging.getLogger(__name__)

SYNC_ATTEMPTS = 5
SYNCED_AT_ONCE = 500
"""Schedules of one transaction; it holds the sync lock."""
SWEPT_AT_ONCE = 200
SWEEP_RESTS = 20
"""A sweep rests so many times as long as it works."""
PAST_THE_SECOND_S = 0.005
"""A pass starts this long after a whole second of the database's clock, when fires have just fallen due."""


class Scheduler:
    """Keeps the schedules of one process stored, and evaluates everybody's while it leads.

    Args:
        database: Open.
        schedules: What this process registers; asked before each sync.
        actor: This instance, for the event log.
        clock: A clock instead of the database's, for tests.
    """

    def __init__(
        self,
        database: Database,
        schedules: Callable[[], Sequence[Schedule]],
        actor: str,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._database = database
        self._schedules = schedules
        self._actor = actor
        self._clock = clock
        self._leader = Leader(database, actor)
        self._evaluator = Evaluator(database, actor, clock)

    @property
    def leading(self) -> bool:
        """Whether this instance believes that it leads."""
        return self._leader.backend_pid is not None

    async def run(self) -> None:
        """Sync, stand for election and evaluate until cancelled."""
        try:
            async with asyncio.TaskGroup() as loops:
                loops.create_task(self._sync_forever(), name="awa_cron sync")
                loops.create_task(self._lead_forever(), name="awa_cron lead")
        finally:
            # Runs also while being cancelled, and is bounded.
            await self._leader.step_down()

    async def sync(self) -> None:
        """Write this process's schedules where they differ.

        Raises:
            DatabaseError: The database cannot be asked.
        """
        schedules = sorted(self._schedules(), key=lambda schedule: schedule.name)
        for begin in range(0, len(schedules), SYNCED_AT_ONCE):
            await self._sync(schedules[begin : begin + SYNCED_AT_ONCE])

    async def _sync(self, remaining: Sequence[Schedule]) -> None:
        settings = self._database.settings
        for attempt in range(SYNC_ATTEMPTS):
            if attempt:
                await asyncio.sleep(random.uniform(0.05, 0.2) * attempt)  # noqa: S311
            async with self._database.session() as connection:
                result = await actions.sync(
                    connection,
                    self._database.schema,
                    remaining,
                    actor=self._actor,
                    pass_limit=settings.pass_limit,
                    clock=self._now(),
                )
            _log_synced(result.outcomes)
            lost = set(result.lost)
            remaining = [schedule for schedule in remaining if schedule.name in lost]
            if not remaining:
                return
        log.warning("schedules not synced yet, others keep changing them", extra={"schedules": sorted(lost)})

    @telemetry.evaluation
    async def evaluate(self, kind: Kind = Kind.ALL) -> datetime:
        """Make one pass: read, choose the fires, enqueue.

        Returns:
            The clock that the pass read.

        Raises:
            DatabaseError: The database cannot be asked.
        """
        return await self._evaluator.make_pass(kind)

    async def _sync_forever(self) -> None:
        while True:
            try:
                await self.sync()
            except DatabaseError as error:
                log.warning("cannot sync", extra={"error": str(error)})
                await asyncio.sleep(min(self._database.settings.sync_interval_s, 1.0))
                continue
            await asyncio.sleep(self._database.settings.sync_interval_s)

    async def _lead_forever(self) -> None:
        interval_s = self._database.settings.election_interval_s
        reported = ""
        while True:
            try:
                leads = await self._leader.acquire()
                reported = ""
                if leads:
                    log.info("leading", extra={"actor": self._actor, "backend_pid": self._leader.backend_pid})
                    await self._lead()
            except (DatabaseError, LeadershipLost) as error:
                if str(error) != reported:  # it is tried again soon, and may fail like this for hours
                    log.warning("not leading", extra={"actor": self._actor, "reason": str(error)})
                reported = str(error)
            await asyncio.sleep(interval_s * random.uniform(1.0, 1.25))  # noqa: S311

    async def _lead(self) -> None:
        """Have a term, in a task of its own: a group of tasks may forget a cancellation that an error came with.

        Raises:
            LeadershipLost: The term has ended.
        """
        term = asyncio.create_task(self._term(), name="awa_cron term")
        try:
            await asyncio.wait({term})
        finally:
            term.cancel()
            await asyncio.gather(term, return_exceptions=True)
        term.result()

    async def _term(self) -> None:
        """Evaluate and ping while leading.

        Raises:
            LeadershipLost: The session ended or the lock is gone; evaluation has stopped.
        """
        lost: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as duties:
                duties.create_task(self._evaluate_forever(Kind.DUE), name="awa_cron evaluate")
                duties.create_task(self._evaluate_forever(Kind.UNKNOWN), name="awa_cron learn")
                duties.create_task(self._sweep_forever(), name="awa_cron sweep")
                duties.create_task(self._ping_forever(), name="awa_cron ping")
                purging = purge_forever(self._database, self._actor, self._now)
                duties.create_task(purging, name="awa_cron purge")
                duties.create_task(self._leader.wait_lost(), name="awa_cron session")
                duties.create_task(watch_queues(self._database), name="awa_cron queues")
        except* LeadershipLost as group:
            self._leader.abandon()
            lost = group.exceptions[0]
        if lost is not None:
            # Not raised in the clause above: Python before 3.11.4 would wrap it in a group.
            raise lost from None

    async def _evaluate_forever(self, kind: Kind) -> None:
        interval_s = self._database.settings.evaluate_interval_s
        time = asyncio.get_running_loop().time
        while True:
            started = time()
            now: datetime | None = None
            try:
                now = await self.evaluate(kind)
            except DatabaseError as error:
                log.warning("cannot evaluate", extra={"error": str(error)})
            # A pass that took longer than the interval is followed by one pass, not by one for each missed.
            await asyncio.sleep(max(0.0, _until_next_pass_s(now, interval_s) - (time() - started)))

    async def _sweep_forever(self) -> None:
        """Evaluate every schedule now and then: another release may have worked out its next fire."""
        while True:
            try:
                await self._evaluator.make_pass(
                    Kind.ALL, page_size=SWEPT_AT_ONCE, only_unseen=True, pause_s=lambda busy_s: busy_s * SWEEP_RESTS
                )
            except DatabaseError as error:
                log.warning("cannot sweep", extra={"error": str(error)})
            await asyncio.sleep(self._database.settings.sweep_interval_s)

    async def _ping_forever(self) -> None:
        while True:
            await asyncio.sleep(self._database.settings.ping_interval_s)
            await self._leader.ping()

    def _now(self) -> datetime | None:
        return None if self._clock is None else self._clock()


def _until_next_pass_s(now: datetime | None, interval_s: float) -> float:
    """Return how long to sleep so that the next pass starts just after a multiple of the interval."""
    if now is None:
        return interval_s
    past = timedelta(microseconds=now.microsecond, seconds=now.second, minutes=now.minute) % timedelta(
        seconds=interval_s
    )
    return interval_s - past.total_seconds() + PAST_THE_SECOND_S


def _log_synced(outcomes: Sequence[actions.SyncOutcome]) -> None:
    plain = [outcome for outcome in outcomes if not _log_given_up(outcome)]
    if len(plain) > TOLD:
        changes, jobs = Counter(each.change for each in plain), sum(len(each.job_ids) for each in plain)
        log.info("synced many", extra={"schedules": len(plain), "changes": dict(changes), "settled_jobs": jobs})
        return
    for outcome in plain:
        log.info("synced", extra=_sync_fields(outcome))


def _log_given_up(outcome: actions.SyncOutcome) -> bool:
    """Say what an edit has given up of the old definition's fires; False if nothing."""
    if outcome.unreadable is not None:
        reason = {"reason": outcome.unreadable}
        log.warning("synced; the old definition was unreadable", extra=_sync_fields(outcome) | reason)
        return True
    if outcome.dropped is None:
        return False
    dropped = {
        "dropped": outcome.dropped.count,
        "dropped_more": not outcome.dropped.counted_all,
        "dropped_first": outcome.dropped.first.isoformat(),
        "dropped_last": outcome.dropped.last.isoformat(),
    }
    log.warning("synced; due fires of the old definition were dropped", extra=_sync_fields(outcome) | dropped)
    return True


def _sync_fields(outcome: actions.SyncOutcome) -> dict[str, object]:
    fields: dict[str, object] = {"schedule": outcome.name, "change": outcome.change}
    return fields | ({"settled_jobs": list(outcome.job_ids)} if outcome.job_ids else {})
