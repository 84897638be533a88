"""Logs of real runs on Postgres.

A run is a random walk of one schedule: two leaders read and write whenever they like, operators and deployments do
what they do, and the clock, which is handed to the statements, mostly goes on.
"""

from __future__ import annotations

import dataclasses
import random
from datetime import UTC, datetime, timedelta

import asyncpg

from awa_cron import actions, firing, registration, rows
from awa_cron.model import Event, FrozenFires, ScheduleState
from awa_cron.sql import Schema

EPOCH = datetime(2026, 3, 28, 12, tzinfo=UTC)
EXPRESSIONS = ("* * * * *", "*/3 * * * *", "*/20 1-58/4 * * * *")
ZONES = ("UTC", "Europe/Berlin")
PASS_LIMIT = 2
SCHEMA = Schema()


@dataclasses.dataclass(frozen=True)
class Recorded:
    """The log of one schedule, from its beginning, and its row at the end."""

    log: tuple[Event, ...]
    row: ScheduleState | None


class Walk:
    """One schedule's life, decided by a seed."""

    def __init__(self, session: asyncpg.Connection[asyncpg.Record], name: str, seed: int) -> None:
        self._session = session
        self._name = name
        self._random = random.Random(seed)
        self._clock = EPOCH
        self._read: dict[int, list[FrozenFires]] = {0: [], 1: []}
        self._policy = self._random.choice(["coalesce", "catch_up"])
        self._expression, self._zone = EXPRESSIONS[0], ZONES[0]

    async def go(self, steps: int) -> None:
        await self._sync()
        weights = {
            self._advance: 6,
            self._lead: 7,
            self._hold: 2,
            self._pause: 2,
            self._resume: 3,
            self._edit: 2,
            self._trigger: 1,
            self._remove: 1,
            self._sync: 2,
            self._slip: 0.5,
            self._change_policy: 0.3,
        }
        for _ in range(steps):
            [step] = self._random.choices(list(weights), list(weights.values()))
            await step()

    async def _advance(self) -> None:
        self._clock += timedelta(seconds=self._random.choice([1, 20, 45, 60, 150, 400]))

    async def _slip(self) -> None:
        self._clock -= timedelta(seconds=self._random.choice([30, 90, 300]))

    async def _lead(self) -> None:
        """Somebody who has read writes, or somebody reads, and mostly writes at once."""
        leader = self._random.randrange(2)
        if not self._read[leader]:
            await self._hold(leader)
            self._clock += timedelta(milliseconds=self._random.choice([0, 3, 70_000]))
        await actions.atomic_enqueue(
            self._session, SCHEMA, self._read[leader], actor=str(leader), clock=self._clock
        )
        self._read[leader] = []

    async def _hold(self, leader: int | None = None) -> None:
        """Read, and let others act before the write."""
        read = await actions.read_cron_state(self._session, SCHEMA, clock=self._clock)
        mine = [each for each in read.schedules if each.name == self._name]
        chosen = self._random.randrange(2) if leader is None else leader
        self._read[chosen], *_ = firing.freeze(mine, read.now, PASS_LIMIT)

    async def _pause(self) -> None:
        await actions.pause(self._session, SCHEMA, self._name, clock=self._clock)

    async def _resume(self) -> None:
        await actions.resume(self._session, SCHEMA, self._name, clock=self._clock)

    async def _trigger(self) -> None:
        await actions.trigger(self._session, SCHEMA, self._name, clock=self._clock)

    async def _remove(self) -> None:
        await actions.remove(self._session, SCHEMA, self._name, clock=self._clock)

    async def _edit(self) -> None:
        self._expression, self._zone = self._random.choice(EXPRESSIONS), self._random.choice(ZONES)
        await self._sync()

    async def _change_policy(self) -> None:
        self._policy = {"coalesce": "catch_up", "catch_up": "coalesce"}[self._policy]
        await self._sync()

    async def _sync(self) -> None:
        definition = registration.schedule(
            self._name,
            self._expression,
            kind="walk",
            timezone=self._zone,
            missed_fire_policy=self._policy,
            priority=self._random.choice([2, 2, 3]),
        )
        await actions.sync(self._session, SCHEMA, [definition], actor="d", pass_limit=PASS_LIMIT, clock=self._clock)


async def recorded(dsn: str, walks: int, steps: int) -> list[Recorded]:
    """Let schedules live, and return their logs."""
    session = await asyncpg.connect(dsn)
    try:
        names = [f"walk {seed:03}" for seed in range(walks)]
        for seed, name in enumerate(names):
            await Walk(session, name, seed).go(steps)
        found = await session.fetch(SCHEMA.statement("queries/verify_events"), None, 1, 1)
        logs: dict[str, list[Event]] = {name: [] for name in names}
        for row in found:
            logs[row["name"]].append(rows.event(row))
        ends = await session.fetch(SCHEMA.statement("queries/verify_rows"), None)
        last = {row["name"]: rows.schedule_state(row) for row in ends}
        return [Recorded(tuple(log), last.get(name)) for name, log in logs.items()]
    finally:
        session.terminate()
