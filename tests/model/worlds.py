"""Many worlds on one database: each holds a state of the spec of its own, and all of them act in the same round.

World ``k`` has schedules of its own, ``digest#k`` and so on, and a lock of its own. A round lets every world do one
action, through ``awa_cron.actions``; where an action takes many schedules, one call serves many worlds. Then all
worlds are read back, so that a statement that touches another's rows shows.

An instance is one session for all worlds. That session cannot end for one of them alone: ``drop_session`` and
``crash`` release the world's lock in that session, and the instance does not learn of it. Sessions that really end
are the business of ``cluster.py``.

Either states are put in place (``put``), and then everything happens inside one transaction of the operator's
session and is rolled back; or worlds begin empty (``begin``), every action commits, and each instance reads and
writes in its own session.
"""

# ruff: noqa: ARG002 -- every action is handed the same, also those that need less

from __future__ import annotations

import asyncio
import copy
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import asyncpg

from awa_cron import actions, firing, registration
from awa_cron.actions import Page
from awa_cron.model import FrozenFires, Kind, Schedule, ScheduleState
from awa_cron.sql import Connection, Schema
from tests.model.cluster import instant
from tests.model.images import FOUND, PUT, Images, columns, minute, named, parted
from tests.model.spec_model import Model
from tests.model.spec_state import Frozen, State, Table

Asked = tuple[int, str, tuple[object, ...]]
"""A world, an action, its arguments."""

Member = tuple[int, tuple[Any, ...]]
"""A world that takes part in a call, and the action's arguments there."""

ENVIRONMENT = frozenset({"advance_clock", "drop_session", "crash", "recover"})
"""Steps that no function of ``awa_cron.actions`` takes."""

OPERATOR = "operator"

SETTINGS = {
    "timezone": "UTC",
    "synchronous_commit": "off",
    "jit": "off",
    # The tables are empty when they are analysed, and a plan for few rows compares every name with every other.
    "enable_nestloop": "off",
}

LOCK_SPACE = 1 << 40
"""Key of the first world's lock; the others follow."""

_HOLDERS = """
SELECT (classid::bigint << 32) | objid::bigint, pid
FROM pg_locks
WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_LOCK = "SELECT bool_and(pg_try_advisory_lock(key)) FROM unnest($1::bigint[]) AS key"
_UNLOCK = "SELECT bool_and(pg_advisory_unlock(key)) FROM unnest($1::bigint[]) AS key"


class Worlds:
    """Worlds of one model on one migrated database.

    Args:
        dsn: A database of its own.
        model: Says what there is; its actions are not asked.
        expressions: The cron expression of each definition.
        schema: Where the tables are; tests hand in one with broken statements.
    """

    def __init__(
        self, dsn: str, model: Model, expressions: Mapping[str, str], schema: Schema | None = None
    ) -> None:
        self._dsn = dsn
        self._model = model
        self._schema = schema or Schema()
        self._registered = {
            (s, d): registration.schedule(s, cron_expr, kind="model", missed_fire_policy=model.policies[s])
            for s in model.schedules
            for d, cron_expr in expressions.items()
        }
        self._expressions = {d: schedule.cron_expr for (_, d), schedule in self._registered.items()}
        self._definition_of = {cron_expr: d for d, cron_expr in self._expressions.items()}
        self._images = Images(model, self._expressions)
        self._sessions: dict[str, asyncpg.Connection[asyncpg.Record]] = {}
        self._instance_of: dict[int, str] = {}
        self._transaction: Any = None
        self._put: list[State] = []
        self._known: list[State] = []
        self._schemas: list[Schema] = []
        self._schedules: dict[tuple[int, str, str], Schedule] = {}

    async def __aenter__(self) -> Self:
        for name in (OPERATOR, *self._model.instances):
            self._sessions[name] = session = await asyncpg.connect(self._dsn, server_settings=SETTINGS)
            self._instance_of[session.get_server_pid()] = name
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in self._sessions.values():
            session.terminate()

    @property
    def operator(self) -> asyncpg.Connection[asyncpg.Record]:
        return self._sessions[OPERATOR]

    # Beginning and ending.

    async def begin(self, number: int) -> None:
        """Begin so many worlds in the initial state; every action commits."""
        await self._empty()
        self._settle([self._model.init()] * number)

    async def put(self, states: Sequence[State]) -> None:
        """Put states in place, one a world; `again` and `drop` undo what happens now."""
        await self._empty()
        self._put = list(states)
        self._settle(states)
        self._transaction = self.operator.transaction(isolation="read_committed")
        await self._transaction.start()
        for i in self._model.instances:
            await self._sessions[i].execute("BEGIN")
        await self.operator.execute(PUT, *columns(self._model, self._expressions, states))
        await self.operator.execute("SAVEPOINT put")
        await self._lock()

    async def again(self) -> None:
        """Put the same states in place once more."""
        self._settle(self._put)
        await self.operator.execute("ROLLBACK TO SAVEPOINT put")
        await self._unlock()
        await self._lock()

    async def drop(self) -> None:
        """Undo everything."""
        await self._transaction.rollback()
        self._transaction = None
        for i in self._model.instances:
            await self._sessions[i].execute("ROLLBACK")

    async def _empty(self) -> None:
        await self._unlock()
        await self.operator.execute("TRUNCATE awa.cron_jobs, awa.jobs, awa.cron_events")

    def _settle(self, states: Iterable[State]) -> None:
        self._known = list(states)
        while len(self._schemas) < len(self._known):
            schema = copy.copy(self._schema)
            schema.leader_lock_key = LOCK_SPACE + len(self._schemas)
            self._schemas.append(schema)

    async def _unlock(self) -> None:
        for i in self._model.instances:
            await self._sessions[i].execute("SELECT pg_advisory_unlock_all()")

    async def _lock(self) -> None:
        for i in self._model.instances:
            keys = [LOCK_SPACE + world for world, state in enumerate(self._known) if state.lock == i]
            assert await self._sessions[i].fetchval(_LOCK, keys) is not False, "somebody else holds a world's lock"

    # Acting.

    async def perform(self, asked: Iterable[Asked]) -> set[int]:
        """Let worlds act, each at most once; return those in which the action says that something happened.

        Sessions work side by side. What one session does at one clock is one call, if the action takes many.
        """
        plans: dict[str, dict[tuple[str, int], list[Member]]] = defaultdict(lambda: defaultdict(list))
        for world, action, arguments in asked:
            call = "atomic_enqueue" if action == "cas_fail" else action
            plans[self._session_for(call, arguments)][call, self._known[world].now].append((world, arguments))
        happened: set[int] = set()

        async def follow(session: str, plan: Mapping[tuple[str, int], list[Member]]) -> None:
            for (action, now), members in plan.items():
                act: Callable[..., Coroutine[Any, Any, Iterable[int]]] = getattr(self, f"_{action}")
                happened.update(await act(self._sessions[session], now, members))

        try:
            async with asyncio.TaskGroup() as side_by_side:
                for session, plan in plans.items():
                    side_by_side.create_task(follow(session, plan))
        except ExceptionGroup as several:
            raise several.exceptions[0] from None
        return happened

    def _session_for(self, action: str, arguments: tuple[Any, ...]) -> str:
        match action:
            case "acquire_leader" | "ping_leader" | "lose_leader" | "drop_session" | "crash":
                return str(arguments[0])
            case "read_cron_state" | "atomic_enqueue" if self._transaction is None:
                return str(arguments[0])
            case _:
                return OPERATOR

    async def _acquire_leader(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        acquired = []
        for world, (i,) in members:
            found = await actions.acquire_leader(session, self._schemas[world], actor=i)
            if found.holds_lock:
                known = self._known[world]
                self._known[world] = replace(known, believes=known.believes.but(i, True))
                acquired.append(world)
        return acquired

    async def _ping_leader(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        lost = []
        for world, (i,) in members:
            found = await actions.ping_leader(session, self._schemas[world])
            assert self._instance_of[found.backend_pid] == i, "another session answers"
            if not found.holds_lock:
                self._step_down(world, i)
                lost.append(world)
        return lost

    async def _read_cron_state(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        of_world: dict[int, list[ScheduleState]] = defaultdict(list)
        # An evaluator that is faulty finds fires also where nothing is due.
        for kind in (Kind.ALL,) if self._model.faulty_evaluator else (Kind.DUE, Kind.UNKNOWN):
            found = await actions.read_cron_state(session, self._schema, Page(kind=kind), clock=instant(now))
            for read in found.schedules:
                of_world[parted(read.name)[1]].append(read)
        frozen_in = []
        for world, (i, *chosen) in members:
            if chosen and self._model.faulty_evaluator:
                frozen = self._invented(of_world[world], chosen[0])
            else:
                frozen, _, broken = firing.freeze(of_world[world], found.now, self._model.pass_limit)
                assert not broken, broken
            if frozen:
                known = self._known[world]
                self._known[world] = replace(known, snapshot=known.snapshot.but(i, self._froze(frozen)))
                frozen_in.append(world)
        return frozen_in

    async def _atomic_enqueue(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        batch: list[FrozenFires] = []
        for world, (i,) in members:
            known = self._known[world]
            batch += self._thawed(world, known.snapshot[i])
            self._known[world] = replace(known, snapshot=known.snapshot.but(i, None))
        made = await actions.atomic_enqueue(session, self._schema, batch, actor="leader", clock=instant(now))
        return [parted(name)[1] for name in made]

    async def _advance_clock(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        for world, to in members:
            self._known[world] = replace(self._known[world], now=to[0] if to else now + 1)
        return [world for world, _ in members]

    async def _lose_leader(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        given_up = []
        for world, (i,) in members:
            if await actions.lose_leader(session, self._schemas[world], actor=i):
                self._step_down(world, i)
                given_up.append(world)
        return given_up

    async def _drop_session(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        keys = [LOCK_SPACE + world for world, _ in members]
        assert await session.fetchval(_UNLOCK, keys), "a session that is dropped holds the lock"
        return [world for world, _ in members]

    async def _crash(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        holders = [(world, arguments) for world, arguments in members if self._known[world].lock == arguments[0]]
        if holders:
            await self._drop_session(session, now, holders)
        for world, (i,) in members:
            self._step_down(world, i)
            self._known[world] = replace(self._known[world], up=self._known[world].up.but(i, False))
        return [world for world, _ in members]

    async def _recover(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        for world, (i,) in members:
            self._known[world] = replace(self._known[world], up=self._known[world].up.but(i, True))
        return [world for world, _ in members]

    async def _pause(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        return await self._each(actions.pause, session, now, members)

    async def _resume(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        return await self._each(actions.resume, session, now, members)

    async def _trigger(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        return await self._each(actions.trigger, session, now, members)

    async def _sync(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        result = await actions.sync(
            session,
            self._schema,
            [self._schedule(world, s, d) for world, (s, d) in members],
            actor="deployment",
            pass_limit=self._model.pass_limit,
            clock=instant(now),
        )
        assert result.lost == (), "a sync that nobody disturbs loses no race"
        return [parted(outcome.name)[1] for outcome in result.outcomes]

    async def _remove(self, session: Connection, now: int, members: list[Member]) -> list[int]:
        return await self._each(actions.remove, session, now, members)

    async def _each(
        self,
        action: Callable[..., Coroutine[Any, Any, object]],
        session: Connection,
        now: int,
        members: list[Member],
    ) -> list[int]:
        """Perform an action that takes one name."""
        return [
            world
            for world, (s,) in members
            if await action(session, self._schema, named(s, world), by="operator", clock=instant(now))
        ]

    # What instances and deployments have in their hands.

    def _step_down(self, world: int, i: str) -> None:
        known = self._known[world]
        believes, snapshot = known.believes.but(i, False), known.snapshot.but(i, None)
        self._known[world] = replace(known, believes=believes, snapshot=snapshot)

    def _schedule(self, world: int, s: str, d: str) -> Schedule:
        key = world, s, d
        if key not in self._schedules:
            self._schedules[key] = replace(self._registered[s, d], name=named(s, world))
        return self._schedules[key]

    def _invented(self, reads: Iterable[ScheduleState], chosen: Table[str, Frozen | None]) -> list[FrozenFires]:
        """Let the evaluator be faulty: freeze what was read with the fires that the step says."""
        entries = [(read, chosen[parted(read.name)[0]]) for read in reads]
        return [
            FrozenFires(read=read, fires=tuple(map(instant, entry.fires)))
            for read, entry in entries
            if entry is not None
        ]

    def _thawed(self, world: int, snapshot: Table[str, Frozen | None] | None) -> list[FrozenFires]:
        """Return what the spec calls a snapshot as an instance has it."""
        assert snapshot is not None, "nothing is frozen"
        return [
            FrozenFires(
                read=ScheduleState(
                    name=named(s, world),
                    cron_expr=self._expressions[frozen.definition],
                    timezone="UTC",
                    missed_fire_policy=self._model.policies[s],
                    last_enqueued_at=None if frozen.expected is None else instant(frozen.expected),
                    anchored_at=instant(frozen.anchor),
                    paused_at=None,
                ),
                fires=tuple(map(instant, frozen.fires)),
                next_fire_at=firing.next_fire(
                    self._expressions[frozen.definition], "UTC", instant(frozen.fires[-1])
                ),
            )
            for s, frozen in snapshot.items()
            if frozen is not None
        ]

    def _froze(self, frozen: Iterable[FrozenFires]) -> Table[str, Frozen | None]:
        """Return what an instance has frozen as the spec has it."""
        entries: dict[str, Frozen | None] = dict.fromkeys(self._model.schedules)
        for each in frozen:
            expected = each.read.last_enqueued_at
            entries[parted(each.name)[0]] = Frozen(
                definition=self._definition_of[each.read.cron_expr],
                anchor=minute(each.read.anchored_at),
                expected=None if expected is None else minute(expected),
                fires=tuple(map(minute, each.fires)),
            )
        return Table(entries)

    # Reading back.

    async def observe(self) -> list[State]:
        """Read back every world; the clock and what instances know are the world's own."""
        found = await self.operator.fetch(FOUND)
        stored = self._images.read(len(self._known), ((name, text) for name, text in found))
        locks = await self._locks()
        self._known = [
            State(
                now=known.now,
                rows=held.rows,
                jobs=held.jobs,
                triggered=held.triggered,
                floor=held.floor,
                lock=lock,
                up=known.up,
                believes=known.believes,
                snapshot=known.snapshot,
            )
            for known, held, lock in zip(self._known, stored, locks, strict=True)
        ]
        return list(self._known)

    async def _locks(self) -> list[str | None]:
        locks: list[str | None] = [None] * len(self._known)
        for key, pid in await self.operator.fetch(_HOLDERS):
            if key != self._schema.sync_lock_key:  # Held until the end of the transaction.
                locks[key - LOCK_SPACE] = self._instance_of[pid]
        return locks
