"""Words that the scenario tests share: instants, rows written by hand, a node whose clock is moved by hand."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeAlias

import asyncpg

from awa_cron import actions, queue_actions, registration
from awa_cron.actions import SyncResult
from awa_cron.attempt import Handler, Task
from awa_cron.database import Database
from awa_cron.leader import Leader
from awa_cron.model import FrozenFires, Job, Schedule, ScheduleState
from awa_cron.scheduler import Scheduler
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from awa_cron.worker import Worker

Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Fires: TypeAlias = dict[str, list[datetime]]

HASTY = Settings(
    evaluate_interval_s=0.2,
    sync_interval_s=0.5,
    ping_interval_s=0.2,
    ping_timeout_s=0.5,
    election_interval_s=0.1,
    statement_timeout_s=2.0,
    poll_interval_s=0.1,
    shutdown_timeout_s=5.0,
)
LEVELS = ("read committed", "repeatable read", "serializable")


def at(text: str) -> datetime:
    """Return the UTC instant written as ``2026-01-01 00:00:30``."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def every(*texts: str) -> list[datetime]:
    return [at(text) for text in texts]


def schedule(name: str = "s", cron_expr: str = "0 * * * *", **fields: Any) -> Schedule:
    """Return a registered schedule of the kind ``work``."""
    return registration.schedule(name, cron_expr, **({"kind": "work"} | fields))


async def write_row(session: Session, name: str = "s", cron_expr: str = "0 * * * *", **columns: Any) -> None:
    """Write a schedule's row by hand; without an anchor it is anchored at ``last_enqueued_at`` or long ago."""
    values = {"name": name, "cron_expr": cron_expr, "kind": "work"} | columns
    values.setdefault("anchored_at", values.get("last_enqueued_at") or at("2001-01-01 00:00"))
    places = ", ".join(f"${i}" for i in range(1, len(values) + 1))
    await session.execute(f"INSERT INTO awa.cron_jobs ({', '.join(values)}) VALUES ({places})", *values.values())


async def row_of(session: Session, name: str = "s") -> asyncpg.Record:
    row = await session.fetchrow("SELECT *, xmin::text, ctid::text FROM awa.cron_jobs WHERE name = $1", name)
    assert row is not None, f"no schedule {name!r}"
    return row


async def last_of(session: Session, name: str = "s") -> datetime | None:
    row = await row_of(session, name)
    last: datetime | None = row["last_enqueued_at"]
    return last


async def fires_in(session: Session, *, after_id: int = 0) -> Fires:
    """Return the fire instants of the automatic jobs by schedule, in the order of their ids."""
    rows = await session.fetch(
        "SELECT metadata ->> 'cron_name' AS name, (metadata ->> 'cron_fire_time')::timestamptz AS fire"
        " FROM awa.jobs WHERE id > $1 AND metadata ? 'cron_fire_time' ORDER BY id",
        after_id,
    )
    fires: Fires = {}
    for row in rows:
        fires.setdefault(row["name"], []).append(row["fire"])
    return fires


async def fires_of(session: Session, name: str = "s") -> list[datetime]:
    return (await fires_in(session)).get(name, [])


async def events_of(session: Session, name: str | None = "s", action: str | None = None) -> list[dict[str, Any]]:
    """Return events, oldest first, with their details read."""
    rows = await session.fetch(
        "SELECT * FROM awa.cron_events WHERE name IS NOT DISTINCT FROM $1 AND ($2::text IS NULL OR action = $2)"
        " ORDER BY id",
        name,
        action,
    )
    return [dict(row) | {"details": json.loads(row["details"])} for row in rows]


class Node:
    """One instance on a real database; the test says what time it is and what is registered."""

    def __init__(self, database: Database, session: Session) -> None:
        self.database = database
        self.now: datetime | None = None
        self.schedules: tuple[Schedule, ...] = ()
        self.scheduler = Scheduler(database, lambda: self.schedules, "node", lambda: self.now)  # type: ignore[arg-type, return-value]
        self._session = session

    async def sync(self, now: datetime, *schedules: Schedule) -> None:
        self.now, self.schedules = now, schedules
        await self.scheduler.sync()

    async def evaluate(self, now: datetime) -> Fires:
        """Make one pass, and return the fires whose jobs it inserted."""
        self.now = now
        newest = await self._session.fetchval("SELECT coalesce(max(id), 0) FROM awa.jobs")
        await self.scheduler.evaluate()
        return await fires_in(self._session, after_id=newest)


@asynccontextmanager
async def a_node(dsn: str, session: Session, **settings: Any) -> AsyncIterator[Node]:
    async with Database(dsn, Schema(), Settings(**settings), pool_size=2) as database:
        yield Node(database, session)


async def sync(session: Session, now: datetime | None, *schedules: Schedule) -> SyncResult:
    return await actions.sync(session, Schema(), schedules, actor="t", pass_limit=100, clock=now)


async def freeze(session: Session, *fires: datetime, expected: datetime | None, name: str = "s") -> FrozenFires:
    """Freeze fires as a pass would that read the row as it is, but for ``last_enqueued_at``."""
    columns = ", ".join(field.name for field in dataclasses.fields(ScheduleState))
    row = await session.fetchrow(f"SELECT {columns} FROM awa.cron_jobs WHERE name = $1", name)
    assert row is not None, f"no schedule {name!r}"
    return FrozenFires(read=ScheduleState(**dict(row) | {"last_enqueued_at": expected}), fires=fires)


async def enqueue(session: Session, fire: datetime, expected: datetime | None, now: datetime | None = None) -> bool:
    """Try to enqueue one fire of the schedule ``s``, by default at the instant when it is due."""
    frozen = await freeze(session, fire, expected=expected)
    return bool(await actions.atomic_enqueue(session, Schema(), [frozen], actor="t", clock=now or fire))


async def each_second(session: Session) -> None:
    """Write a schedule that fires each second from now on."""
    await write_row(session, cron_expr="* * * * * *", anchored_at=datetime.now(UTC))


async def fired(session: Session, more_than: int) -> None:
    """Wait until the schedule ``s`` has more fires than that."""

    async def enough() -> bool:
        return len(await fires_of(session)) > more_than

    await wait_until(enough, f"more than {more_than} fires")


@asynccontextmanager
async def a_leader(dsn: str, actor: str = "leader") -> AsyncIterator[Leader]:
    async with Database(dsn, Schema(), HASTY, pool_size=2) as database:
        leader = Leader(database, actor)
        yield leader
        leader.abandon()


@asynccontextmanager
async def a_worker(
    dsn: str, handler: Handler, settings: Settings | None = None, queues: list[str] | dict[str, int] | None = None
) -> AsyncIterator[Worker]:
    """Run a worker of the kind ``work`` in the background."""
    async with Database(dsn, Schema(), settings or HASTY, pool_size=4) as database:
        worker = Worker(database, {"work": Task(handler)}, queues, "the worker")
        async with running(worker.run()):
            yield worker


async def insert_job(session: Session, **columns: Any) -> int:
    values = {"kind": "work"} | columns
    places = ", ".join(f"${i}" for i in range(1, len(values) + 1))
    job_id: int = await session.fetchval(
        f"INSERT INTO awa.jobs ({', '.join(values)}) VALUES ({places}) RETURNING id", *values.values()
    )
    return job_id


async def job_row(session: Session, job_id: int) -> dict[str, Any]:
    row = await session.fetchrow("SELECT * FROM awa.jobs WHERE id = $1", job_id)
    assert row is not None
    return dict(row)


async def reaches(session: Session, job_id: int, state: str) -> dict[str, Any]:
    """Wait until a job is in a state, and return its row."""

    async def there() -> bool:
        return bool((await job_row(session, job_id))["state"] == state)

    await wait_until(there, f"job {job_id} is {state}")
    return await job_row(session, job_id)


async def claim(
    session: Session, *, limit: int = 10, worker: str = "w", clock: datetime | None = None
) -> list[Job]:
    return await queue_actions.claim(
        session, Schema(), kinds=["work"], queues=None, limit=limit, worker=worker, clock=clock
    )


@asynccontextmanager
async def a_session(dsn: str, *, level: str = "read committed", **options: Any) -> AsyncIterator[Session]:
    """Open one more real session, whose statements run at an isolation level."""
    session = await asyncpg.connect(dsn, server_settings={"default_transaction_isolation": level}, **options)
    try:
        yield session
    finally:
        session.terminate()


async def wait_until(
    condition: Callable[[], Awaitable[object] | object], what: str, *, timeout_s: float = 10.0
) -> None:
    """Poll until a condition holds; fail saying what did not happen."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    while True:
        outcome = condition()
        if isinstance(outcome, Awaitable):
            outcome = await outcome
        if outcome:
            return
        assert asyncio.get_running_loop().time() < deadline, f"not within {timeout_s} s: {what}"
        await asyncio.sleep(0.02)


@asynccontextmanager
async def running(work: Awaitable[None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run something in the background, and cancel it at the end; an error in it is the test's error."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=20)
        assert task.done(), "it does not stop when cancelled"
    if not task.cancelled():
        task.result()


async def waiting_sessions(session: Session) -> int:
    """Return how many other sessions of this database wait for a lock."""
    count: int = await session.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return count


async def deadlocks(session: Session) -> int:
    """Return how many deadlocks this database has seen, once every other session has ended and told."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
    await wait_until(lambda: session.fetchval(f"SELECT 0 = ({others})"), "the other sessions have ended")
    count: int = await session.fetchval("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return count


def is_local_process(pid: int) -> bool:
    """Tell whether a server process is one that this process may signal."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            return b"postgres" in file.read()
    except OSError:
        return False


def flat(values: Iterable[Iterable[Any]]) -> list[Any]:
    return [inner for outer in values for inner in outer]


T = at("2026-01-01 10:00")
"""Where the schedule of ``enqueue_next`` stands, usually."""
FIRE = at("2026-01-01 11:00")
"""Its next fire."""
NOW = at("2026-01-01 11:00:01")
"""A second later."""


async def enqueue_next(
    session: Session, fire: datetime = FIRE, *, expected: datetime | None = T, now: datetime = NOW
) -> bool:
    """Try to enqueue one fire of the schedule ``s``, usually its next; tell whether it won."""
    return await enqueue(session, fire, expected, now)
