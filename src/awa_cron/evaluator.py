"""Passes over the schedules: read a page, choose its fires, enqueue them, note the next fires of the others.

Spec: ReadCronState, AtomicEnqueue, CASFail, NoteNext.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from awa_cron import actions, firing
from awa_cron.actions import CronState, Page
from awa_cron.database import Database
from awa_cron.errors import DatabaseError
from awa_cron.firing import Evaluated
from awa_cron.model import FrozenFires, Kind, NotedNext, ScheduleState
from awa_cron.quarantine import Quarantine
from awa_cron.sql import refuses_content

log = logging.getLogger(__name__)

PAGE = 1_000
"""Schedules that one statement takes: so many that the round trip does not matter, so few that it is soon done."""

WRITERS = 3
"""Pages that are written at the same time, in sessions of their own."""

TOLD = 100
"""The most schedules of a page that are told in the log one by one."""

SLICE = 8
"""Schedules that are evaluated before the clock is looked at."""

SLICE_S = 0.005
"""How long evaluating may keep the event loop to itself."""


class Evaluator:
    """Makes passes while its instance leads; a stale leader's do no harm.

    Args:
        database: Open.
        actor: This instance, for the event log.
        clock: A clock instead of the database's, for tests.
    """

    def __init__(self, database: Database, actor: str, clock: Callable[[], datetime] | None = None) -> None:
        self._database = database
        self._actor = actor
        self._clock = clock
        self._reported: dict[Kind, dict[str, str]] = {}
        self._quarantines = {kind: Quarantine() for kind in Kind}

    async def make_pass(
        self,
        kind: Kind,
        *,
        page_size: int = PAGE,
        only_unseen: bool = False,
        pause_s: Callable[[float], float] | None = None,
    ) -> datetime:
        """Read all schedules of a kind, page by page; while pages are written the next is read and evaluated.

        Args:
            kind: Which schedules.
            page_size: How many of them at once.
            only_unseen: Leave what is due to the other kinds of pass, where they see it.
            pause_s: Says how long to rest after a page that took so many seconds; None for not at all.

        Returns:
            The clock that the first page read.

        Raises:
            DatabaseError: The database cannot be asked.
        """
        began: datetime | None = None
        broken: dict[str, str] = {}
        writing: deque[asyncio.Task[dict[str, str]]] = deque()
        last: ScheduleState | None = None
        quarantine = self._quarantines[kind]
        quarantine.begin_pass()
        try:
            while True:
                started = time.monotonic()
                state = await self._read(Page(kind=kind, after=last, size=page_size))
                began = began or state.now
                evaluated = await self._evaluate(state)
                if only_unseen:
                    evaluated = evaluated._replace(frozen=[each for each in evaluated.frozen if _unseen(each)])
                broken |= {each.name: str(error) for each, error in evaluated.broken}
                if len(writing) == WRITERS:
                    broken |= await writing.popleft()
                writing.append(asyncio.create_task(self._write(evaluated, quarantine), name="awa_cron write"))
                if len(state.schedules) < page_size:
                    break
                last = state.schedules[-1]
                if pause_s is not None:
                    await asyncio.sleep(pause_s(time.monotonic() - started))
            while writing:
                broken |= await writing.popleft()
        finally:
            for each in writing:
                each.cancel()
            await asyncio.gather(*writing, return_exceptions=True)
        self._report(kind, broken)
        return began

    async def _read(self, page: Page) -> CronState:
        async with self._database.session() as connection:
            return await actions.read_cron_state(connection, self._database.schema, page, clock=self._now())

    async def _evaluate(self, state: CronState) -> Evaluated:
        """Choose the fires of a page, and let others have the event loop now and then."""
        whole = Evaluated([], [], [])
        since = time.monotonic()
        for begin in range(0, len(state.schedules), SLICE):
            part = firing.freeze(
                state.schedules[begin : begin + SLICE], state.now, self._database.settings.pass_limit
            )
            whole.frozen.extend(part.frozen)
            whole.noted.extend(part.noted)
            whole.broken.extend(part.broken)
            if time.monotonic() - since > SLICE_S:
                await asyncio.sleep(0)
                since = time.monotonic()
        return whole

    async def _write(self, evaluated: Evaluated, quarantine: Quarantine) -> dict[str, str]:
        """Enqueue and note; return the schedules whose jobs are refused, with the reasons."""
        admitted = quarantine.admit(evaluated.frozen)
        refused = admitted.left
        for batch in (admitted.fresh, admitted.retried):
            found = await self._enqueue(batch)
            quarantine.learn(batch, found)
            refused |= found
        await self._note(evaluated.noted)
        return refused

    async def _enqueue(self, batch: Sequence[FrozenFires]) -> dict[str, str]:
        """Enqueue a batch; a schedule whose jobs the database refuses is found by halving, and left out."""
        if not batch:
            return {}
        try:
            async with self._database.session() as connection:
                enqueued = await actions.atomic_enqueue(
                    connection, self._database.schema, batch, actor=self._actor, clock=self._now()
                )
        except DatabaseError as error:
            if not refuses_content(error.__cause__):
                raise
            if len(batch) == 1:
                # Without the details, which show the job's id: the reason must be the same in every pass.
                return {batch[0].name: f"its jobs are refused: {str(error.__cause__).partition(chr(10))[0]}"}
            middle = len(batch) // 2
            return await self._enqueue(batch[:middle]) | await self._enqueue(batch[middle:])
        _log_enqueued(batch, enqueued)
        return {}

    async def _note(self, noted: Sequence[NotedNext]) -> None:
        if noted:
            async with self._database.session() as connection:
                await actions.note_next(connection, self._database.schema, noted)

    def _report(self, kind: Kind, broken: dict[str, str]) -> None:
        """Say of each schedule that cannot be evaluated why, once per reason."""
        known = {name: reason for each in self._reported.values() for name, reason in each.items()}
        for name, reason in broken.items():
            if known.get(name) != reason:
                log.error("schedule is broken and skipped", extra={"schedule": name, "reason": reason})
        self._reported[kind] = broken

    def _now(self) -> datetime | None:
        return None if self._clock is None else self._clock()


def _unseen(frozen: FrozenFires) -> bool:
    """Tell whether no pass over what is due or unknown reads this row now: its next fire is too late."""
    next_fire_at = frozen.read.next_fire_at
    return next_fire_at is not None and frozen.read_at is not None and next_fire_at > frozen.read_at


def _log_enqueued(batch: Sequence[FrozenFires], enqueued: Mapping[str, tuple[int, ...]]) -> None:
    if len(batch) > TOLD:
        jobs = sum(map(len, enqueued.values()))
        counts = {"schedules": len(enqueued), "jobs": jobs, "races_lost": len(batch) - len(enqueued)}
        log.info("enqueued many", extra=counts)
        return
    for frozen in batch:
        fields = {"schedule": frozen.name, "fires": [fire.isoformat() for fire in frozen.fires]}
        if frozen.name in enqueued:
            log.info("enqueued", extra=fields | {"jobs": list(enqueued[frozen.name])})
        else:
            log.info("lost the race", extra=fields)
