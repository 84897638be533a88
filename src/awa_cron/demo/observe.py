"""What the demo reads from the database, over a connection of its own: never what a worker says about itself."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from datetime import datetime

import asyncpg

from awa_cron import cronexpr
from awa_cron.demo.account import Account, Pass, Pause, QueuedJob, Run, account
from awa_cron.model import MissedFirePolicy
from awa_cron.sql import Schema

OWN_TABLE = """
CREATE TABLE demo_runs (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id      bigint      NOT NULL,
    name        text        NOT NULL,
    fire_time   timestamptz,
    attempt     integer     NOT NULL,
    pid         integer     NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz
)
"""

_LEADER = """
SELECT e.actor
FROM awa.cron_events AS e
JOIN pg_locks AS l ON l.pid = (e.details ->> 'backend_pid')::integer
WHERE e.action = 'acquire_leader'
  AND l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND (l.classid::bigint << 32) | l.objid::bigint = $1::bigint
ORDER BY e.id DESC
LIMIT 1
"""

_STATUS = """
SELECT
    c.name, c.cron_expr, c.timezone, c.queue, c.priority, c.missed_fire_policy, c.last_enqueued_at, c.paused_at,
    count(j.id) AS jobs,
    count(j.id) FILTER (WHERE j.state IN ('scheduled', 'available', 'retryable')) AS waiting,
    count(j.id) FILTER (WHERE j.state = 'running') AS running,
    (SELECT count(DISTINCT r.job_id) FROM demo_runs AS r WHERE r.name = c.name AND r.finished_at IS NOT NULL)
        AS done
FROM awa.cron_jobs AS c
LEFT JOIN awa.jobs AS j ON j.metadata ->> 'cron_name' = c.name
GROUP BY c.name
ORDER BY c.name
"""

_JOBS = """
SELECT id, (metadata ->> 'cron_fire_time')::timestamptz AS fire, attempt AS attempts, created_at
FROM awa.jobs
WHERE metadata ->> 'cron_name' = $1
ORDER BY id
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One line of the live table."""

    name: str
    cron_expr: str
    timezone: str
    queue: str
    priority: int
    missed_fire_policy: str
    last_enqueued_at: datetime | None
    paused_at: datetime | None
    jobs: int
    waiting: int
    running: int
    done: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """An instance became the leader."""

    at: datetime
    pid: int


class Observer:
    """Asks questions, one at a time, on one connection.

    Args:
        connection: Used by nobody else.
    """

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()

    async def now(self) -> datetime:
        """Return the database's clock."""
        value = await self._fetchval("SELECT clock_timestamp()")
        assert isinstance(value, datetime)
        return value

    async def leader(self) -> int | None:
        """Return the process id of the instance whose session holds the leader's lock."""
        actor = await self._fetchval(_LEADER, Schema().leader_lock_key)
        return None if actor is None else _pid(str(actor))

    async def status(self) -> list[Status]:
        """Return every schedule as it stands, by name."""
        return [Status(**dict(row)) for row in await self._fetch(_STATUS)]

    async def running_on(self, pid: int) -> tuple[int, str] | None:
        """Return a job, and its schedule, whose handler has begun on that process and has not ended."""
        found = await self._fetch(
            "SELECT job_id, name FROM demo_runs WHERE pid = $1 AND finished_at IS NULL"
            " AND started_at < clock_timestamp() - interval '0.3 s' ORDER BY id DESC LIMIT 1",
            pid,
        )
        return (found[0]["job_id"], found[0]["name"]) if found else None

    async def unsettled(self) -> int:
        """Return the number of jobs that wait or run."""
        value = await self._fetchval(
            "SELECT count(*) FROM awa.jobs WHERE state IN ('scheduled', 'available', 'retryable', 'running')"
        )
        assert isinstance(value, int)
        return value

    async def overdue(self, until: datetime) -> list[str]:
        """Return the schedules that have not come as far as their last fire until an instant."""
        rows = await self._fetch(
            "SELECT name, cron_expr, timezone, last_enqueued_at, anchored_at FROM awa.cron_jobs"
        )
        behind = []
        for row in rows:
            after = row["last_enqueued_at"] or row["anchored_at"]
            if cronexpr.latest_due(row["cron_expr"], row["timezone"], after=after, until=until) is not None:
                behind.append(row["name"])
        return sorted(behind)

    async def takeovers(self) -> list[Takeover]:
        """Return who became the leader and when, oldest first."""
        rows = await self._fetch(
            "SELECT recorded_at, actor FROM awa.cron_events WHERE action = 'acquire_leader' ORDER BY id"
        )
        return [Takeover(at=row["recorded_at"], pid=_pid(row["actor"])) for row in rows]

    async def accounts(self, until: datetime) -> list[Account]:
        """Balance every schedule, by name.

        Args:
            until: Every instant up to here must be accounted for, and every later one that became a job.
        """
        passes = await self._passes()
        schedules = await self._fetch("SELECT * FROM awa.cron_jobs ORDER BY name")
        return [await self._account(dict(schedule), passes, until) for schedule in schedules]

    async def _account(self, schedule: Mapping[str, object], passes: list[Pass], until: datetime) -> Account:
        name, last = str(schedule["name"]), schedule["last_enqueued_at"]
        due = cronexpr.due_fires(
            str(schedule["cron_expr"]),
            str(schedule["timezone"]),
            after=_instant(schedule["anchored_at"]),
            until=until if last is None else max(until, _instant(last)),
        )
        runs = await self._fetch("SELECT job_id, fire_time, finished_at FROM demo_runs WHERE name = $1", name)
        return account(
            name,
            policy=MissedFirePolicy(str(schedule["missed_fire_policy"])),
            due=list(due),
            jobs=[QueuedJob(**dict(row)) for row in await self._fetch(_JOBS, name)],
            runs=[
                Run(job_id=row["job_id"], fire=row["fire_time"], finished=row["finished_at"] is not None)
                for row in runs
            ],
            passes=passes,
            pauses=await self._pauses(name),
        )

    async def _passes(self) -> list[Pass]:
        rows = await self._fetch(
            "SELECT clock, actor, name, fires FROM awa.cron_events"
            " WHERE action = 'atomic_enqueue' ORDER BY clock, id"
        )
        found: dict[tuple[datetime, str], dict[str, tuple[datetime, ...]]] = {}
        for row in rows:
            found.setdefault((row["clock"], row["actor"]), {})[row["name"]] = tuple(row["fires"])
        return [Pass(clock=clock, fires=fires) for (clock, _), fires in found.items()]

    async def _pauses(self, name: str) -> list[Pause]:
        rows = await self._fetch(
            "SELECT action, clock FROM awa.cron_events"
            " WHERE name = $1 AND action IN ('pause', 'resume') ORDER BY id",
            name,
        )
        ended, start = [], None
        for row in rows:
            if row["action"] == "pause":
                start = row["clock"]
            elif start is not None:
                ended.append(Pause(start=start, end=row["clock"]))
        return ended

    async def _fetch(self, question: str, *arguments: object) -> list[asyncpg.Record]:
        async with self._turn:
            return await self._connection.fetch(question, *arguments, timeout=10)

    async def _fetchval(self, question: str, *arguments: object) -> object:
        async with self._turn:
            return await self._connection.fetchval(question, *arguments, timeout=10)


def _pid(actor: str) -> int:
    return int(actor.rsplit(":", 2)[1])


def _instant(value: object) -> datetime:
    assert isinstance(value, datetime)
    return value
