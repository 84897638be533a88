"""The real side of the model: instances with sessions of their own on one Postgres, driven one action at a time.

Every action has the spec's name and goes through ``awa_cron.actions``; ``observe`` reads back what the spec's
variables are made of. An instant ``t`` of the model is the ``t``-th minute after ``EPOCH``, and is handed to the
statements as their clock.
"""

# ruff: noqa: ARG002 -- every action is handed the clock, also those whose statement asks for none

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import asyncpg

from awa_cron import actions, firing, registration
from awa_cron.actions import Page
from awa_cron.errors import DatabaseError
from awa_cron.model import FrozenFires, Kind, NotedNext, Schedule
from awa_cron.sql import Connection, Schema
from tests.model.next_fire import check_never_late
from tests.model.spec_state import Frozen, Row, State, Table

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

_OBSERVE = """
SELECT
    (SELECT coalesce(json_agg(json_build_array(
        name, cron_expr, last_enqueued_at, anchored_at, paused_at IS NOT NULL, next_fire_at)), '[]')
        FROM awa.cron_jobs)::text,
    (SELECT coalesce(json_agg(json_build_array(
        metadata ->> 'cron_name', metadata ->> 'cron_fire_time')), '[]') FROM awa.jobs)::text,
    (SELECT coalesce(json_agg(json_build_array(name, last_enqueued_at)), '[]') FROM awa.cron_events
        WHERE action = 'remove')::text,
    (SELECT max(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (classid::bigint << 32) | objid::bigint = $1)
"""


def instant(time: int) -> datetime:
    """The database's clock at an instant of the model."""
    return EPOCH + timedelta(minutes=time)


class Instance:
    """One process's share: a leader session, a working session, and what it has read."""

    def __init__(self) -> None:
        self.up = True
        self.believes = False
        self.leader: asyncpg.Connection[asyncpg.Record] | None = None
        self.leader_pid: int | None = None
        self.work: asyncpg.Connection[asyncpg.Record] | None = None
        self.snapshot: list[FrozenFires] | None = None
        self.noted: list[NotedNext] = []

    def step_down(self) -> None:
        if self.leader is not None:
            self.leader.terminate()
        self.leader, self.leader_pid, self.believes, self.snapshot, self.noted = None, None, False, None, []


class Cluster:
    """Instances and operators on one migrated database.

    Args:
        dsn: A database of its own.
        instances: Their names.
        policies: The missed-fire policy of each schedule; the keys are all schedules.
        definitions: Whether each definition fires at an instant.
        expressions: The cron expression of each definition.
        pass_limit: The most fires of a catch-up schedule in one pass.
        schema: Where the tables are; tests hand in one with broken statements.
    """

    def __init__(
        self,
        dsn: str,
        *,
        instances: list[str],
        policies: Mapping[str, str],
        definitions: Mapping[str, Callable[[int], bool]],
        expressions: Mapping[str, str],
        pass_limit: int,
        schema: Schema | None = None,
    ) -> None:
        self._dsn = dsn
        self._policies = policies
        self._definition_of = {
            self._registered(name, definition, expressions).cron_expr: definition
            for name in policies
            for definition in expressions
        }
        self._definitions = definitions
        self._expressions = expressions
        self._pass_limit = pass_limit
        self._schema = schema or Schema()
        self._names = instances
        self._instances = {name: Instance() for name in instances}
        self._operator: asyncpg.Connection[asyncpg.Record] | None = None

    async def open(self) -> None:
        """Connect the operator."""
        self._operator = await asyncpg.connect(self._dsn)

    async def reset(self) -> None:
        """Empty the tables and forget what the instances know; sessions that live stay, without the lock."""
        await self.operator.execute("DELETE FROM awa.cron_jobs; DELETE FROM awa.jobs; DELETE FROM awa.cron_events")
        for instance in self._instances.values():
            instance.up, instance.believes, instance.snapshot, instance.noted = True, False, None, []
            if instance.leader is not None and not instance.leader.is_closed():
                await instance.leader.execute("SELECT pg_advisory_unlock_all()")

    async def close(self) -> None:
        """End every session."""
        sessions = [each for instance in self._instances.values() for each in (instance.leader, instance.work)]
        for session in [*sessions, self._operator]:
            if session is not None:
                session.terminate()

    @property
    def operator(self) -> Connection:
        assert self._operator is not None, "the cluster is not open"
        return self._operator

    # The actions, in the spec's order. `now` is the model's clock.

    async def acquire_leader(self, now: int, i: str) -> None:
        instance = self._instances[i]
        if instance.leader is None or instance.leader.is_closed():
            instance.leader = await asyncpg.connect(self._dsn)
        found = await actions.acquire_leader(instance.leader, self._schema, actor=i)
        if found.holds_lock:
            instance.believes, instance.leader_pid = True, found.backend_pid

    async def ping_leader(self, now: int, i: str) -> None:
        instance = self._instances[i]
        assert instance.leader is not None
        try:
            found = await actions.ping_leader(instance.leader, self._schema)
            holds = found.holds_lock and found.backend_pid == instance.leader_pid
        except DatabaseError:
            holds = False
        if not holds:
            instance.step_down()

    async def read_cron_state(self, now: int, i: str, _: object = None) -> None:
        instance = self._instances[i]
        instance.snapshot, instance.noted = [], []
        for kind in (Kind.DUE, Kind.UNKNOWN):
            state = await actions.read_cron_state(
                await self._work(i), self._schema, Page(kind=kind), clock=instant(now)
            )
            frozen, noted, broken = firing.freeze(state.schedules, state.now, self._pass_limit)
            assert not broken, broken
            instance.snapshot += frozen
            instance.noted += noted
        instance.snapshot = instance.snapshot or None

    async def atomic_enqueue(self, now: int, i: str) -> None:
        instance = self._instances[i]
        assert instance.snapshot is not None
        await actions.atomic_enqueue(
            await self._work(i), self._schema, instance.snapshot, actor=i, clock=instant(now)
        )
        instance.snapshot = None

    cas_fail = atomic_enqueue

    @property
    def noting(self) -> list[str]:
        """The instances whose last pass has found next fires to be noted."""
        return [name for name, each in self._instances.items() if each.noted]

    async def note_next(self, i: str) -> None:
        """NoteNext of AwaCronNext: nothing that AwaCron knows changes."""
        instance = self._instances[i]
        await actions.note_next(await self._work(i), self._schema, instance.noted)
        instance.noted = []

    async def lose_leader(self, now: int, i: str) -> None:
        instance = self._instances[i]
        assert instance.leader is not None
        await actions.lose_leader(instance.leader, self._schema, actor=i)
        instance.step_down()

    async def drop_session(self, now: int, i: str) -> None:
        await self._end(self._instances[i].leader_pid)

    async def crash(self, now: int, i: str, in_transaction: bool = False) -> None:
        """End the instance's sessions; in the middle of its enqueue, if it has one to make."""
        instance = self._instances[i]
        if in_transaction and instance.snapshot is not None:
            work = await self._work(i)
            await work.execute("BEGIN")
            await actions.atomic_enqueue(work, self._schema, instance.snapshot, actor=i, clock=instant(now))
        await self._end(instance.leader_pid)
        if instance.work is not None:
            await self._end(instance.work.get_server_pid())
            instance.work.terminate()
            instance.work = None
        instance.step_down()
        instance.up = False

    async def recover(self, now: int, i: str) -> None:
        self._instances[i].up = True

    async def pause(self, now: int, s: str) -> None:
        await actions.pause(self.operator, self._schema, s, by="operator", clock=instant(now))

    async def resume(self, now: int, s: str) -> None:
        await actions.resume(self.operator, self._schema, s, by="operator", clock=instant(now))

    async def trigger(self, now: int, s: str) -> None:
        await actions.trigger(self.operator, self._schema, s, by="operator", clock=instant(now))

    async def sync(self, now: int, s: str, d: str) -> None:
        await self.deploy(now, {s: d})

    async def deploy(self, now: int, registered: Mapping[str, str]) -> None:
        """Sync everything that a deployment registers, in one call."""
        result = await actions.sync(
            self.operator,
            self._schema,
            [self._registered(s, d, self._expressions) for s, d in registered.items()],
            actor="deployment",
            pass_limit=self._pass_limit,
            clock=instant(now),
        )
        assert result.lost == (), "a sync that nobody disturbs loses no race"

    async def remove(self, now: int, s: str) -> None:
        await actions.remove(self.operator, self._schema, s, by="operator", clock=instant(now))

    async def observe(self, now: int) -> State:
        """Read back every variable of the spec; the clock is the model's."""
        found = await self.operator.fetchrow(_OBSERVE, self._schema.leader_lock_key)
        assert found is not None
        stored, made, removed = (json.loads(found[column]) for column in range(3))
        jobs: dict[str, Counter[int]] = {name: Counter() for name in self._policies}
        triggered = dict.fromkeys(self._policies, 0)
        for name, fire in made:
            when = _minutes(fire)
            if when is None:
                triggered[name] += 1
            else:
                jobs[name][when] += 1
        floor = dict.fromkeys(self._policies, 0)
        for name, last in removed:
            floor[name] = max(floor[name], _minutes(last) or 0)
        leaders = {each.leader_pid: name for name, each in self._instances.items() if each.leader_pid is not None}
        assert found[3] is None or found[3] in leaders, "an unknown session holds the lock"
        rows: dict[str, Row | None] = dict.fromkeys(self._policies)
        for name, cron_expr, last, anchor, paused, next_fire in stored:
            definition = self._definition_of[cron_expr]
            row = Row(definition, _minutes(last), _minutes(anchor) or 0, paused)
            check_never_late(self._definitions[definition], row, _minutes(next_fire))
            rows[name] = row
        instances = self._instances.items()
        return State(
            now=now,
            rows=Table(rows),
            jobs=Table((name, Table(counts)) for name, counts in jobs.items()),
            triggered=Table(triggered),
            floor=Table(floor),
            lock=leaders.get(found[3]),
            up=Table((name, each.up) for name, each in instances),
            believes=Table((name, each.believes) for name, each in instances),
            snapshot=Table((name, self._frozen(each.snapshot)) for name, each in instances),
        )

    def _frozen(self, snapshot: list[FrozenFires] | None) -> Table[str, Frozen | None] | None:
        if snapshot is None:
            return None
        frozen: dict[str, Frozen | None] = dict.fromkeys(self._policies)
        for each in snapshot:
            expected = each.read.last_enqueued_at
            frozen[each.name] = Frozen(
                definition=self._definition_of[each.read.cron_expr],
                anchor=_minute(each.read.anchored_at),
                expected=None if expected is None else _minute(expected),
                fires=tuple(_minute(fire) for fire in each.fires),
            )
        return Table(frozen)

    def _registered(self, name: str, definition: str, expressions: Mapping[str, str]) -> Schedule:
        return registration.schedule(
            name, expressions[definition], kind="model", missed_fire_policy=self._policies[name]
        )

    async def _work(self, i: str) -> Connection:
        instance = self._instances[i]
        if instance.work is None:
            instance.work = await asyncpg.connect(self._dsn)
        return instance.work

    async def _end(self, backend_pid: int | None) -> None:
        """End a server process, and wait until it is gone."""
        if backend_pid is not None:
            await self.operator.execute("SELECT pg_terminate_backend($1, 5000)", backend_pid)


def _minute(time: datetime) -> int:
    elapsed = time - EPOCH
    assert elapsed % timedelta(minutes=1) == timedelta(0), f"{time} is no instant of the model"
    return elapsed // timedelta(minutes=1)


def _minutes(text: str | None) -> int | None:
    """Return the model's instant of a timestamp that the database printed."""
    return None if text is None else _minute(datetime.fromisoformat(text))
