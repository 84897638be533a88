"""Concurrent transactions on one Postgres, one statement at a time, in every order.

Each party is a coroutine that calls ``awa_cron.actions`` on a session of its own. The session stops before each
statement and before the end of its transaction until the stage gives the cue; what waits for a lock stays behind
until somebody else's step frees it. ``Stage.every_order`` goes through all orders of the steps, depth first, each
from a fresh start; ``serial_orders.py`` says which outcomes are right.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
from collections.abc import AsyncIterator, Container, Sequence
from typing import Self

import asyncpg

from awa_cron.sql import Schema
from awa_cron.verify.wording import moment
from tests.model.cluster import Cluster, instant
from tests.model.orders import Choose, Orders, Step
from tests.model.parties import EXPRESSIONS, ONLY_LOOK, PROTOCOL, SCHEDULES, Part, Party, Scene, Session, Shared
from tests.model.serial_orders import BEFORE, MAY_WAIT, NOBODY, Level, Run, judge
from tests.model.spec_state import State

LEVELS: tuple[Level, ...] = ("read_committed", "repeatable_read", "serializable")
POLL_S = 0.001
PATIENCE_S = 20.0


class Stage:
    """Three sessions at one isolation level, and somebody who looks who waits.

    Args:
        dsn: A migrated database of its own.
        level: The isolation level.
        schema: Where the tables are; tests hand in one with broken statements.
        early: Whether transactions that keep one snapshot take it in a step of its own.

    Attributes:
        counts: Runs, steps that waited, and errors of the server by SQLSTATE.
        may_wait: Which steps may wait for a lock.
    """

    def __init__(self, dsn: str, level: Level, schema: Schema | None = None, *, early: bool = True) -> None:
        self.shared = Shared(level=level, schema=schema or Schema(), early=early)
        self.counts = self.shared.counts
        self.may_wait: Container[str] = MAY_WAIT
        self._sessions: list[Session] = []
        self._puts = 0
        self._dsn = dsn
        self._cluster = Cluster(
            dsn,
            instances=[],
            policies=PROTOCOL.policies,
            definitions=PROTOCOL.definitions,
            expressions=EXPRESSIONS,
            pass_limit=PROTOCOL.pass_limit,
            schema=self.shared.schema,
        )

    async def __aenter__(self) -> Self:
        await self._cluster.open()
        settings = {
            "default_transaction_isolation": self.shared.level.replace("_", " "),
            "deadlock_timeout": "50ms",
        }
        for _ in range(3):
            session = await asyncpg.connect(self._dsn, server_settings=settings, connection_class=Session)
            assert isinstance(session, Session)
            self._sessions.append(session)
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in self._sessions:
            session.terminate()
        await self._cluster.close()

    async def every_order(self, scene: Scene, parties: Sequence[Party]) -> AsyncIterator[Run]:
        """Run all orders of the parties' steps."""
        orders = Orders(lambda one, other: commute(parties, one, other))
        while True:
            run = await self.run(scene, parties, orders.choose)
            if not orders.repeated:
                self.counts["runs"] += 1
                self.counts["strayed"] += orders.strayed
                yield run
            if not orders.advance():
                return

    async def some_orders(self, scene: Scene, parties: Sequence[Party], number: int) -> None:
        """Run some orders of the parties' steps, the same ones each time."""
        chance = random.Random(f"{scene.name} {parties}")
        for _ in range(number):
            await self.run(scene, parties, chance.choice)
            self.counts["runs"] += 1

    async def run(self, scene: Scene, parties: Sequence[Party], choose: Choose) -> Run:
        """Run one order of the steps, and judge it."""
        stale = any(party.does == "stale sync" for party in parties)
        await self._put(scene.earlier if stale else scene.start)
        parts = [
            Part(self.shared, self._sessions[index], scene, index, party) for index, party in enumerate(parties)
        ]
        await self._settle(parts)
        if stale:
            for part in parts:
                if part.party.does == "stale sync":
                    part.cue(BEFORE, NOBODY)
            await self._settle(parts)
            await self._put(scene.start)
        self.shared.moment = 0
        taken: list[Step] = []
        try:
            while options := self._options(parts):
                index, step = choose(options)
                held = NOBODY.union(*(other.holds for other in parts if other is not parts[index]))
                self.shared.moment += 1
                parts[index].cue(self.shared.moment, held)
                taken.append((index, step))
                await self._settle(parts)
            for part in parts:
                await part.task
        finally:
            for part in parts:
                part.task.cancel()
        observed = await self._cluster.observe(scene.start.now)
        run = Run(steps=tuple(taken), accounts=tuple(part.account for part in parts), observed=observed)
        try:
            judge(PROTOCOL, scene.start, run, self.shared.level, self.may_wait)
        except AssertionError as error:
            names = [str(party) for party in parties]
            told = "; ".join(f"{names[index]} {index}: {step}" for index, step in taken)
            raise AssertionError(f"{error}\n{scene.name}, {self.shared.level}: {told}") from error
        return run

    @staticmethod
    def _options(parts: Sequence[Part]) -> list[Step]:
        """Return the next steps to choose from; of equal parties that have not begun, the first is to go first."""
        ready = [(index, part.next) for index, part in enumerate(parts) if part.next is not None]
        new = [part.role if not part.began else None for part in parts]
        return [(index, step) for index, step in ready if new[index] is None or new[index] not in new[:index]]

    async def _settle(self, parts: Sequence[Part]) -> None:
        """Wait until every party has come to its next step or to its end, or waits for a lock."""
        waited = {part for part in parts if part.waits}
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while busy := [part for part in parts if part.next is None and not part.task.done()]:
            assert asyncio.get_running_loop().time() < deadline, "a step takes too long"
            if not waited.issuperset(busy):
                self.shared.moved.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await self.shared.moved.wait()
                        continue
            if await self._all_wait(busy, parts) and len(busy) < sum(not part.task.done() for part in parts):
                break
            waited.clear()
        for part in parts:
            waits = part.next is None and not part.task.done()
            if waits and not part.waits:
                self.counts["waited"] += 1
                part.wait()
            part.waits = waits

    async def _all_wait(self, busy: Sequence[Part], parts: Sequence[Part]) -> bool:
        """Tell whether each of the busy waits for a party; who has just been let go does so only for a moment.

        Autovacuum may hold a table's lock for a moment too. That is waited out, and is not the parties' doing.
        """
        for _ in range(1 if len(busy) == 1 else 2):
            if not await self._cluster.operator.fetchval(
                "SELECT bool_and(pg_blocking_pids(pid) && $2::integer[]) FROM unnest($1::integer[]) AS pid",
                [part.pid for part in busy],
                [part.pid for part in parts],
            ):
                return False
        return all(part.next is None and not part.task.done() for part in busy)

    async def _put(self, state: State) -> None:
        """Make the database's state this one."""
        self._puts += 1
        if self._puts % 200 == 0:
            await self._cluster.operator.execute("TRUNCATE awa.cron_jobs, awa.jobs, awa.cron_events")
        await self._cluster.operator.execute(in_sql(state))


def commute(parties: Sequence[Party], one: Step, other: Step) -> bool:
    """Tell whether steps of two parties, one right after the other, can change places and nobody would know."""
    for (looks, look), (writes, write) in ((one, other), (other, one)):
        looker, writer = parties[looks], parties[writes]
        if look in ONLY_LOOK and not looker.commits(look) and not writer.commits(write):
            return True
        if look == "lock" and "sync" not in writer.does:
            return True
    return False


@functools.cache
def in_sql(state: State) -> str:
    """Return statements that replace what is in the tables by this state."""

    def time(at: int | None) -> str:
        return "NULL" if at is None else f"'{moment(instant(at))}'"

    statements = ["DELETE FROM awa.cron_jobs", "DELETE FROM awa.jobs", "DELETE FROM awa.cron_events"]
    statements += [
        "INSERT INTO awa.cron_jobs"
        " (name, cron_expr, kind, missed_fire_policy, last_enqueued_at, anchored_at, paused_at) VALUES"
        f" ('{name}', '{SCHEDULES[name, row.definition].cron_expr}', 'model', '{PROTOCOL.policies[name]}',"
        f" {time(row.last)}, {time(row.anchor)}, {time(0 if row.paused else None)})"
        for name, row in state.rows.items()
        if row is not None
    ]
    statements += [
        "INSERT INTO awa.jobs (kind, metadata) VALUES"
        f" ('model', jsonb_build_object('cron_name', '{name}', 'cron_fire_time', '{moment(instant(fire))}'))"
        for name, jobs in state.jobs.items()
        for fire in jobs
    ]
    statements += [
        "INSERT INTO awa.cron_events (clock, action, name, last_enqueued_at) VALUES"
        f" ({time(floor)}, 'remove', '{name}', {time(floor)})"
        for name, floor in state.floor.items()
        if floor
    ]
    return "; ".join(statements)
