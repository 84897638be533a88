"""The actions of ``spec/AwaCron.tla`` on a real database, by the same names and in the same order.

Each function runs one statement (``sync`` reads and locks first) on the connection it is given and returns what
happened. A lost race is a return value. The clock is an argument everywhere; None, the default, is the database's
own.
Actions that only the environment performs have no function: ``AdvanceClock`` is the clock, ``DropSession``,
``Crash`` and ``Recover`` are ended sessions and processes. ``CASFail`` is ``atomic_enqueue`` with an empty result.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import random
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Literal

import asyncpg

from awa_cron import firing, rows, telemetry
from awa_cron.errors import DatabaseError, StoredScheduleInvalid
from awa_cron.model import Dropped, FrozenFires, Job, Kind, NotedNext, Schedule, ScheduleState, aware
from awa_cron.sql import DRIVER_ERRORS, Connection, Schema, told

LOST_RACE = ("40001", "40P01")
"""SQLSTATEs that mean another transaction was first: serialization failure and deadlock."""

BEFORE_ALL = datetime.min.replace(tzinfo=UTC)  # the driver's value for -infinity

PLANNED_AT_ONCE = 8

RACES = 20
"""How often an action that has to happen is asked again after a lost race; at READ COMMITTED it loses none."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CronState:
    """What ``read_cron_state`` saw: the clock, and unpaused schedules in the order of the page."""

    now: datetime
    schedules: tuple[ScheduleState, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of the schedules.

    Attributes:
        kind: Which schedules.
        after: The row that the page follows; None for the first page.
        size: The most rows; None for all.
    """

    kind: Kind = Kind.ALL
    after: ScheduleState | None = None
    size: int | None = None


EVERYTHING = Page()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """What a liveness check found. ``backend_pid`` is the server process that answered."""

    holds_lock: bool
    backend_pid: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SyncOutcome:
    """What ``sync`` did with one definition.

    Attributes:
        change: ``inserted``, ``updated``, or ``redefined`` when the expression or zone changed.
        job_ids: Jobs of the old definition that the edit settled, oldest fire first.
        dropped: Due instants that the edit gave up.
        unreadable: Why the old definition could not be settled, if it could not.
    """

    name: str
    change: Literal["inserted", "updated", "redefined"]
    job_ids: tuple[int, ...]
    dropped: Dropped | None
    unreadable: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """What ``sync`` wrote, and the names that lost a race and are to be synced again."""

    outcomes: tuple[SyncOutcome, ...]
    lost: tuple[str, ...]


async def acquire_leader(connection: Connection, schema: Schema, *, actor: str) -> Leadership:
    """Try to take the leader's lock for this session.

    Call it at most once per session: Postgres counts repeated locks.

    Spec: AcquireLeader.
    Source: ADR-007, "Leader liveness verification".

    Args:
        connection: Dedicated, never from a pool: a pool's reset releases every advisory lock.
        schema: Where the schedules are.
        actor: Who tries, for the event log.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    async with asking("acquire_leader"):
        row = await connection.fetchrow(schema.statement("acquire_leader"), schema.leader_lock_key, actor)
    assert row is not None
    return Leadership(holds_lock=row["acquired"], backend_pid=row["backend_pid"])


async def lose_leader(connection: Connection, schema: Schema, *, actor: str) -> bool:
    """Give the lock back; False if this session did not hold it.

    Spec: LoseLeader.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    async with asking("lose_leader"):
        released = await connection.fetchval(schema.statement("lose_leader"), schema.leader_lock_key, actor)
    return bool(released)


async def ping_leader(connection: Connection, schema: Schema) -> Leadership:
    """Ask whether this session's backend still holds the lock.

    Spec: PingLeader.
    Source: ADR-007, "Leader liveness verification"; we ask for the lock itself, not only for an answer.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    async with asking("ping_leader"):
        row = await connection.fetchrow(schema.statement("ping_leader"), schema.leader_lock_key)
    assert row is not None
    return Leadership(holds_lock=row["holds_lock"], backend_pid=row["backend_pid"])


@telemetry.reading
async def read_cron_state(
    connection: Connection, schema: Schema, page: Page = EVERYTHING, *, clock: datetime | None = None
) -> CronState:
    """Read the clock and a page of the schedules that are not paused, in one statement.

    Spec: ReadCronState; ``firing.freeze`` chooses the fires from the result.

    Args:
        connection: Any session.
        schema: Where the schedules are.
        page: Which of them; what is due comes in the order of the next fires, all else in that of the names.
        clock: Instead of the database's.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    async with asking("read_cron_state"):
        found = await connection.fetch(
            schema.statement("read_cron_state"),
            checked(clock),
            page.kind,
            BEFORE_ALL if page.after is None or page.after.next_fire_at is None else page.after.next_fire_at,
            "" if page.after is None else page.after.name,
            page.size,
        )
    return CronState(now=found[0]["now"], schedules=rows.page(found))


@telemetry.enqueuing
async def atomic_enqueue(
    connection: Connection,
    schema: Schema,
    batch: Sequence[FrozenFires],
    *,
    actor: str,
    clock: datetime | None = None,
) -> dict[str, tuple[int, ...]]:
    """Mark every schedule of the batch and insert its jobs, all in one statement.

    Spec: AtomicEnqueue for the names returned, CASFail for the others.
    Source: ADR-007, "Crash-safe atomic enqueue".

    Args:
        connection: Any session; a stale leader's does no harm.
        schema: Where the schedules are.
        batch: One entry per schedule, names distinct.
        actor: Who enqueues, for the event log.
        clock: Instead of the database's; no fire after it is enqueued.

    Returns:
        Job ids by schedule, oldest fire first. A name that is missing lost its race and nothing of it changed.

    Raises:
        DatabaseError: The server refused or the connection is gone; nothing was enqueued.
    """
    if not batch:
        return {}
    cohorts: dict[_Cohort, int] = {}
    numbers = [cohorts.setdefault(_cohort(frozen), len(cohorts) + 1) for frozen in batch]
    expected, expressions, zones, policies, read_at, following, fires = zip(*cohorts, strict=True)
    instants = _Instants()
    try:
        async with asking("atomic_enqueue"):
            marked = await connection.fetch(
                schema.statement("atomic_enqueue"),
                [frozen.name for frozen in batch],
                instants.places(frozen.read.anchored_at for frozen in batch),
                numbers,
                instants.places(expected),
                expressions,
                zones,
                policies,
                instants.places(read_at),
                instants.places(following),
                [number for number, each in enumerate(fires, 1) for _ in each],
                instants.places(itertools.chain.from_iterable(fires)),
                actor,
                checked(clock),
                instants.listed(),
            )
    except DatabaseError as error:
        if lost_race(error):
            return {}
        raise
    return {row["name"]: tuple(row["job_ids"]) for row in marked}


async def note_next(connection: Connection, schema: Schema, noted: Sequence[NotedNext]) -> tuple[str, ...]:
    """Write back the next fires that a pass has worked out.

    Spec: NoteNext.

    Returns:
        The names that were as read; the others are left alone.

    Raises:
        DatabaseError: The server refused or the connection is gone; nothing was written.
    """
    if not noted:
        return ()
    try:
        async with asking("note_next"):
            written = await connection.fetch(
                schema.statement("note_next"),
                *_as_read(each.read for each in noted),
                [each.next_fire_at for each in noted],
            )
    except DatabaseError as error:
        if lost_race(error):
            return ()
        raise
    return tuple(row["name"] for row in written)


async def pause(
    connection: Connection, schema: Schema, name: str, *, by: str | None = None, clock: datetime | None = None
) -> bool | None:
    """Stop a schedule's automatic fires.

    Spec: Pause.
    Source: ADR-007, "Pause and resume".

    Returns:
        True when it stopped now, False when it was paused already (the first label stays), None when there is no
        such schedule.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    found = await ask(connection, schema, "pause", name, by, checked(clock))
    return found[0]["changed"] if found else None


async def resume(
    connection: Connection, schema: Schema, name: str, *, by: str | None = None, clock: datetime | None = None
) -> bool | None:
    """Let a schedule's automatic fires go on; its policy decides what becomes of the missed ones.

    Spec: Resume.
    Source: ADR-007, "Pause and resume".

    Returns:
        True when it goes on now, False when it was not paused, None when there is no such schedule.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    found = await ask(connection, schema, "resume", name, by, checked(clock))
    return found[0]["changed"] if found else None


async def trigger(
    connection: Connection, schema: Schema, name: str, *, by: str | None = None, clock: datetime | None = None
) -> Job | None:
    """Insert a job of the schedule now, paused or not; the schedule's row is not touched.

    Spec: Trigger.
    Source: ADR-007, "Pause and resume": an explicit operator action is always allowed.

    Returns:
        The job, or None when there is no such schedule.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    found = await ask(connection, schema, "trigger", name, by, checked(clock))
    return rows.job(found[0]) if found else None


async def sync(
    connection: Connection,
    schema: Schema,
    schedules: Sequence[Schedule],
    *,
    actor: str,
    pass_limit: int,
    clock: datetime | None = None,
) -> SyncResult:
    """Write the definitions that differ from what is stored; unchanged ones cost one read and no write.

    Spec: Sync.
    Source: ADR-007, "Multi-deployment safety"; an edit settles first (spec/decisions/0001-anchor.md).

    Args:
        connection: Any session, not inside a transaction.
        schema: Where the schedules are.
        schedules: What this process registers, names distinct.
        actor: Who syncs, for the event log.
        pass_limit: The most fires of a catch-up schedule that an edit turns into jobs.
        clock: Instead of the database's.

    Raises:
        DatabaseError: The server refused or the connection is gone; nothing was written.
    """
    clock = checked(clock)
    async with asking("sync"):
        found = await connection.fetch(
            schema.statement("queries/differing_definitions"), rows.definitions(schedules), clock
        )
    if not found:
        return SyncResult(outcomes=(), lost=())
    defined = {schedule.name: schedule for schedule in schedules}
    plans = {}
    for number, row in enumerate(found):
        plans[row["defined_name"]] = _plan(row, defined[row["defined_name"]], pass_limit)
        if number % PLANNED_AT_ONCE == PLANNED_AT_ONCE - 1:
            await asyncio.sleep(0)  # others want the event loop too
    try:
        # The lock comes first, so that the statement's snapshot and clock come after everything that had it before.
        async with asking("sync"), connection.transaction(isolation="read_committed"):
            await connection.execute(schema.statement("queries/hold_sync_lock"), schema.sync_lock_key)
            written = await connection.fetch(
                schema.statement("sync"),
                rows.definitions((defined[name] for name in plans), plans),
                found[0]["now"],
                actor,
                clock,
            )
    except DatabaseError as error:
        if not lost_race(error):
            raise
        written = []
    outcomes = tuple(
        SyncOutcome(
            name=row["name"],
            change=row["change"],
            job_ids=tuple(row["job_ids"]),
            dropped=plans[row["name"]].dropped,
            unreadable=plans[row["name"]].unreadable,
        )
        for row in written
    )
    return SyncResult(outcomes=outcomes, lost=tuple(sorted(plans.keys() - {each.name for each in outcomes})))


async def remove(
    connection: Connection, schema: Schema, name: str, *, by: str | None = None, clock: datetime | None = None
) -> bool:
    """Delete a schedule; its jobs stay. False when there is no such schedule.

    Spec: Remove.
    Source: ADR-007, "Multi-deployment safety".

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    return bool(await ask(connection, schema, "remove", name, schema.sync_lock_key, by, checked(clock)))


async def ask(connection: Connection, schema: Schema, action: str, *arguments: object) -> list[asyncpg.Record]:
    """Run an action's statement, again when another transaction was first.

    Raises:
        DatabaseError: The server refused or the connection is gone, or, inside the caller's transaction, a race
            was lost.
    """
    for races in itertools.count(1):
        try:
            async with asking(action):
                return await connection.fetch(schema.statement(action), *arguments)
        except DatabaseError as error:
            if races == RACES or not lost_race(error) or connection.is_in_transaction():
                raise
        # Those that lost against each other come back apart.
        await asyncio.sleep(random.uniform(0, min(0.005 * 2**races, 0.5)))  # noqa: S311
    raise AssertionError


def checked(clock: datetime | None) -> datetime | None:
    """Return a clock argument; one without a zone is refused, because the driver would read it as local time."""
    return None if clock is None else aware(clock, "clock")


_Cohort = tuple[datetime | None, str, str, str, datetime | None, datetime | None, tuple[datetime, ...]]


def _cohort(frozen: FrozenFires) -> _Cohort:
    """Return what the statement is told of a schedule but its name and anchor: many have it in common."""
    read = frozen.read
    return (
        read.last_enqueued_at,
        read.cron_expr,
        read.timezone,
        read.missed_fire_policy,
        frozen.read_at,
        frozen.next_fire_at,
        frozen.fires,
    )


def _as_read(reads: Iterable[ScheduleState]) -> tuple[list[Any], ...]:
    """Return the columns that the guards LastAsRead and DefinedAsRead compare, and before them the names."""
    rows_read = [
        (
            read.name,
            read.last_enqueued_at,
            read.cron_expr,
            read.timezone,
            read.missed_fire_policy,
            read.anchored_at,
        )
        for read in reads
    ]
    return tuple(map(list, zip(*rows_read, strict=True)))


class _Instants:
    """Instants that many rows share: the driver takes three times as long for one as for its number."""

    def __init__(self) -> None:
        self._places: dict[datetime, int] = {}

    def places(self, instants: Iterable[datetime | None]) -> list[int | None]:
        """Return the place of each among those that are listed, from 1."""
        places = self._places
        return [None if each is None else places.setdefault(each, len(places) + 1) for each in instants]

    def listed(self) -> list[datetime]:
        return list(self._places)


def lost_race(error: DatabaseError) -> bool:
    """Tell whether an error only means that another transaction was first."""
    return isinstance(error.__cause__, asyncpg.PostgresError) and error.__cause__.sqlstate in LOST_RACE


def _plan(row: rows.Row, defined: Schedule, pass_limit: int) -> rows.SyncPlan:
    """Decide what a definition's write carries: the row it expects, the fires it settles, the fire that is next."""
    if not row["redefined"]:
        return rows.SyncPlan(row_version=row["row_version"])
    plan = rows.SyncPlan(
        row_version=row["row_version"],
        next_fire_at=firing.next_fire(defined.cron_expr, defined.timezone, row["now"]),
    )
    if row["row_version"] is None:
        return plan
    try:
        fires, dropped = firing.settle(rows.schedule_state(row), row["now"], pass_limit)
    except StoredScheduleInvalid as error:
        return dataclasses.replace(plan, unreadable=str(error))
    return dataclasses.replace(plan, fires=fires, dropped=dropped)


@asynccontextmanager
async def asking(action: str) -> AsyncIterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise DatabaseError(f"{action}: {told(error)}") from error
