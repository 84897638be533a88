"""The real side of the queue's model: workers with sessions of their own on one Postgres, driven action by action.

Every action has the spec's name and goes through ``awa_cron.queue_actions`` or ``awa_cron.actions``; ``observe``
reads back what the spec's variables are made of. Time passes with every call, by a minute; before a rescue by an
hour, in which workers that are up renew what they believe they run.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

from awa_cron import actions, queue_actions, registration
from awa_cron.model import FrozenFires, ScheduleState
from awa_cron.model import Job as ClaimedJob
from awa_cron.queue_actions import Selection
from awa_cron.sql import Connection, Schema
from tests.model.queue_model import Claim, Job, Offer, QueueModel, Row, State
from tests.model.spec_state import Table

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
SILENT_FOR_S = 1800.0

_OBSERVE = """
SELECT
    (SELECT coalesce(json_agg(json_build_array(
        name, queue, max_attempts, last_enqueued_at, paused_at IS NOT NULL)), '[]') FROM awa.cron_jobs)::text,
    (SELECT coalesce(json_agg(json_build_array(queue, paused_at IS NOT NULL)), '[]') FROM awa.queue_meta)::text,
    (SELECT coalesce(json_agg(json_build_array(
        id, metadata ->> 'cron_name', queue, state, attempt, max_attempts, attempted_by) ORDER BY id), '[]')
        FROM awa.jobs)::text
"""


class QueueCluster:
    """Workers and operators on one migrated database."""

    def __init__(self, dsn: str, model: QueueModel, schema: Schema | None = None) -> None:
        self._dsn = dsn
        self._model = model
        self._schema = schema or Schema()
        self._operator: asyncpg.Connection[asyncpg.Record] | None = None
        self._sessions: dict[str, asyncpg.Connection[asyncpg.Record]] = {}
        self._forget()

    def _forget(self) -> None:
        self.now = EPOCH
        self._ids: list[int] = []
        self._seen: dict[int, Job] = {}
        self._fires: dict[str, list[datetime]] = {}
        self._worker = dict.fromkeys(self._model.workers, "up")
        self._holds: dict[str, dict[Claim, ClaimedJob]] = {w: {} for w in self._model.workers}

    async def open(self) -> None:
        """Connect the operator."""
        self._operator = await asyncpg.connect(self._dsn)

    async def close(self) -> None:
        """End every session."""
        for session in (*self._sessions.values(), self._operator):
            if session is not None:
                session.terminate()

    async def reset(self) -> None:
        """Empty the tables and forget everything; sessions that live stay."""
        await self.operator.execute(
            "DELETE FROM awa.cron_jobs; DELETE FROM awa.jobs;"
            "DELETE FROM awa.cron_events; DELETE FROM awa.queue_meta"
        )
        self._forget()

    @property
    def operator(self) -> Connection:
        assert self._operator is not None, "the cluster is not open"
        return self._operator

    def tick(self, minutes: int = 1) -> datetime:
        """Let time pass, and return the clock."""
        self.now += timedelta(minutes=minutes)
        return self.now

    # What workers do.

    async def claim(self, w: str, queues: list[str] | None, limit: int, heard: bool) -> list[int]:
        """Claim, and return the numbers of the jobs that it got."""
        session, now = await self._session(w), self.tick()
        jobs = await queue_actions.claim(
            session, self._schema, kinds=["model"], queues=queues, limit=limit, worker=w, clock=now
        )
        numbers = [self._ids.index(job.id) + 1 for job in jobs]
        if heard:
            for j, job in zip(numbers, jobs, strict=True):
                self._holds[w][Claim(j, job.attempt)] = job
        return numbers

    async def settle(self, outcome: str, w: str, claim: Claim, heard: bool = True) -> bool:
        """Say how an attempt ended; tell whether that was written."""
        return bool(await self.settle_several(outcome, w, [claim], heard=heard))

    async def settle_several(self, outcome: str, w: str, claims: list[Claim], *, heard: bool = True) -> set[Claim]:
        """Say how attempts ended, in one statement; tell which of it was written."""
        session, now = await self._session(w), self.tick()
        jobs = [self._holds[w][claim] for claim in claims]
        more: dict[str, list[Any]] = {
            "finish": jobs,
            "fail": [(job, {}, 0.0) for job in jobs],
            "snooze": [(job, 0.0) for job in jobs],
            "cancel_own": [(job, {}) for job in jobs],
        }
        settled = await getattr(queue_actions, outcome)(session, self._schema, more[outcome], worker=w, clock=now)
        assert not settled.held, "nobody else is at work"
        if heard:
            for claim in claims:
                del self._holds[w][claim]
        return {claim for claim, job in zip(claims, jobs, strict=True) if (job.id, job.attempt) in settled.written}

    async def heartbeat(self, w: str, *, forget: bool) -> set[Claim]:
        """Renew what a worker believes it runs, and return what it has lost."""
        held = {(self._ids[claim.job - 1], claim.attempt): claim for claim in self._holds[w]}
        ours = await queue_actions.heartbeat(
            await self._session(w), self._schema, held, worker=w, clock=self.tick(0)
        )
        lost = {claim for key, claim in held.items() if key not in ours}
        for claim in lost if forget else ():
            del self._holds[w][claim]
        return lost

    async def rescue(self, by: str) -> set[int]:
        """Let an hour pass, in which the living renew what they run; return the jobs that were taken."""
        self.tick(60)
        for w, is_ in self._worker.items():
            if is_ == "up":
                await self.heartbeat(w, forget=False)
        taken = await queue_actions.rescue(
            await self._session(by), self._schema, silent_for_s=SILENT_FOR_S, clock=self.now
        )
        return {self._ids.index(job_id) + 1 for job_id in taken}

    # What the scheduler, code and operators do.

    async def enqueue(self, s: str) -> None:
        now = self.tick()
        columns = ", ".join(field.name for field in dataclasses.fields(ScheduleState))
        row = await self.operator.fetchrow(f"SELECT {columns} FROM awa.cron_jobs WHERE name = $1", s)
        assert row is not None
        frozen = FrozenFires(read=ScheduleState(**dict(row)), fires=(now,))
        if await actions.atomic_enqueue(self.operator, self._schema, [frozen], actor="leader", clock=now):
            self._fires[s].append(now)

    async def trigger(self, s: str) -> None:
        await actions.trigger(self.operator, self._schema, s, clock=self.tick())

    async def submit(self, offer: Offer) -> None:
        job = registration.job("model", queue=offer.queue, max_attempts=offer.max_attempts)
        await queue_actions.submit(self.operator, self._schema, job, clock=self.tick())

    async def sync(self, s: str, offer: Offer) -> None:
        definition = registration.schedule(
            s, "* * * * *", kind="model", queue=offer.queue, max_attempts=offer.max_attempts
        )
        result = await actions.sync(
            self.operator, self._schema, [definition], actor="deployment", pass_limit=1, clock=self.tick()
        )
        if any(outcome.change == "inserted" for outcome in result.outcomes):
            self._fires[s] = []

    async def remove(self, s: str) -> None:
        await actions.remove(self.operator, self._schema, s, clock=self.tick())

    async def pause(self, s: str) -> None:
        await actions.pause(self.operator, self._schema, s, clock=self.tick())

    async def resume(self, s: str) -> None:
        await actions.resume(self.operator, self._schema, s, clock=self.tick())

    async def pause_queue(self, q: str) -> None:
        await queue_actions.pause_queue(self.operator, self._schema, q, clock=self.tick())

    async def resume_queue(self, q: str) -> None:
        await queue_actions.resume_queue(self.operator, self._schema, q, clock=self.tick())

    async def cancel_jobs(self, s: str, running: bool) -> None:
        await queue_actions.cancel_jobs(self.operator, self._schema, s, running=running, clock=self.tick())

    async def retry_dead(self, j: int) -> None:
        which, attempts = Selection(ids=(self._ids[j - 1],)), self._model.fresh_attempts
        await queue_actions.retry_dead(self.operator, self._schema, which, attempts=attempts, clock=self.tick())

    async def purge_dead(self, j: int) -> None:
        which = Selection(ids=(self._ids[j - 1],))
        await queue_actions.purge_dead(self.operator, self._schema, which, clock=self.tick())

    async def purge_finished(self, j: int) -> None:
        job_id, now = self._ids[j - 1], self.tick()
        if await self.operator.fetchval("SELECT 1 FROM awa.jobs WHERE id = $1", job_id):  # or the next is the page
            before = now + timedelta(days=1)
            await queue_actions.purge_finished(
                self.operator, self._schema, before, after=job_id - 1, size=1, clock=now
            )

    # Faults.

    async def freeze_worker(self, w: str) -> None:
        self._worker[w] = "frozen"

    async def thaw_worker(self, w: str) -> None:
        self._worker[w] = "up"

    async def recover_worker(self, w: str) -> None:
        self._worker[w] = "up"

    async def crash_worker(self, w: str, in_transaction: bool = False) -> None:
        """End the worker's session; in the middle of a claim and an outcome that it has not committed."""
        session = self._sessions.pop(w, None)
        if in_transaction and self._worker[w] == "up":
            session = session or await asyncpg.connect(self._dsn)
            await session.execute("BEGIN")
            self._sessions[w] = session
            for claim in list(self._holds[w]):
                await self.settle("finish", w, claim, heard=False)
            await self.claim(w, None, 1, heard=False)
            del self._sessions[w]
        if session is not None:
            await self.operator.execute("SELECT pg_terminate_backend($1, 5000)", session.get_server_pid())
            session.terminate()
        self._worker[w] = "down"
        self._holds[w] = {}

    async def observe(self) -> State:
        """Read back every variable of the spec."""
        found = await self.operator.fetchrow(_OBSERVE)
        assert found is not None
        stored, queues, made = (json.loads(found[column]) for column in range(3))
        rows: dict[str, Row | None] = dict.fromkeys(self._model.schedules)
        for name, queue, max_attempts, last, paused in stored:
            rows[name] = Row(queue, max_attempts, self._count(name, last), paused)
        paused_queues = dict.fromkeys(self._model.queues, False) | dict(queues)
        jobs = {job_id: Job(*columns) for job_id, *columns in made}
        self._ids += sorted(jobs.keys() - set(self._ids))
        for job_id in self._ids:
            self._seen[job_id] = jobs.get(job_id) or dataclasses.replace(self._seen[job_id], state="purged")
        return State(
            rows=Table(rows),
            queue_paused=Table(paused_queues),
            jobs=tuple(self._seen[job_id] for job_id in self._ids),
            worker=Table(self._worker),
            holds=Table((w, _claims(held)) for w, held in self._holds.items()),
        )

    def _count(self, name: str, last: str | None) -> int:
        """Return how many fires a schedule has had, by its last one."""
        return 0 if last is None else self._fires[name].index(datetime.fromisoformat(last)) + 1

    async def _session(self, w: str) -> Connection:
        if w not in self._sessions:
            self._sessions[w] = await asyncpg.connect(self._dsn)
        return self._sessions[w]


def _claims(held: Iterable[Claim]) -> frozenset[Claim]:
    return frozenset(held)
