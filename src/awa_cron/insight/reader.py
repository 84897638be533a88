"""Reads a database for an operator's questions. Nothing here writes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import asyncpg

from awa_cron import cronexpr, rows
from awa_cron.actions import asking
from awa_cron.errors import AwaCronError, DatabaseError, ScheduleNotFound
from awa_cron.insight import wording
from awa_cron.insight.reasons import Explanation, JobFate, Reason, job_fate
from awa_cron.insight.tracing import Evidence, Traced, counts_after, readable_instants, traced
from awa_cron.insight.views import Evaluations, JobView, LeaderView, ScheduleView, schedule_view
from awa_cron.model import JobState, StoredSchedule
from awa_cron.sql import Connection, Schema

SIGNS_LOOKED_AT: Final = 1_000
"""How many of the newest events are searched for a sign that somebody evaluates."""

EVENTS_TRACED: Final = 10_000
"""The most edits, pauses and removals that one explanation reads."""

JOBS_LOOKED_AT: Final = 1_000
"""How many of the newest jobs are searched for those that have begun."""

LATE: Final = timedelta(seconds=5)
"""What comes so much later than its instant deserves a look at the leadership."""

STUCK: Final = timedelta(minutes=1)
"""What has waited for so long, beside a leader, may be held up by more than the leader."""

TURN: Final = 100
"""Schedules that are looked at in one go."""


class Reader:
    """Asks one connection.

    Args:
        connection: Where to ask.
        schema: Where the tables are.
        clock: Instead of the database's, for tests.
    """

    def __init__(self, connection: Connection, schema: Schema, clock: datetime | None) -> None:
        self._connection = connection
        self._schema = schema
        self._clock = clock

    async def schedules(self, name: str | None) -> list[asyncpg.Record]:
        """Return stored schedules, by name, for ``views``."""
        async with asking("list"):
            return await self._fetch("schedules", name)

    async def jobs(
        self,
        name: str | None,
        *,
        ids: list[int] | None = None,
        fire: datetime | None = None,
        limit: int = 1,
    ) -> list[JobView]:
        """Return a schedule's jobs, newest first: all, those with these ids, or those of one instant."""
        label = None if fire is None else f"{fire.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        async with asking("jobs"):
            return [job_view(row) for row in await self._fetch("jobs_of", name, ids, label, limit)]

    async def leadership(self) -> LeaderView:
        """Return who leads. Not to be asked in a transaction: a right that is lacking would end it."""
        notes: list[str] = []
        lock = await self._permitted("leader_lock", "see locks (pg_locks)", notes, self._schema.leader_lock_key)
        pid = None if lock is None else lock["backend_pid"]
        key = None if pid is None else str(pid)
        said = await self._permitted("leader_events", "read the event log", notes, key, SIGNS_LOOKED_AT)
        if pid is not None and said is not None and said["actor"] is None:
            notes.append("the event of its election is gone")
        async with asking("leadership"):
            now = await self._connection.fetchval("SELECT statement_timestamp()")
        return LeaderView(
            now=self._clock or now,
            leads=None if lock is None else pid is not None,
            backend_pid=pid,
            actor=None if said is None else said["actor"],
            since=None if said is None else said["since"],
            enqueued_at=None if said is None else said["enqueued_at"],
            enqueued_by=None if said is None else said["enqueued_by"],
            note="; ".join(notes) or None,
        )

    async def explain(self, name: str, at: datetime | None) -> list[Explanation]:
        """Explain an instant of a schedule; None for the latest that the expression has, and the next.

        Raises:
            ScheduleNotFound: There is no such schedule, and the log knows of none.
        """
        leads = (await self.leadership()).leads
        async with asking("explain"), self._connection.transaction(isolation="repeatable_read", readonly=True):
            stored = await self._fetch("schedules", name)
            row = rows.stored_schedule(stored[0]) if stored else None
            now = self._clock or await self._connection.fetchval("SELECT statement_timestamp()")
            instants = [at] if at is not None else _latest_and_next(row, now)
            return [await self._explained(name, each, now, row, leads=leads) for each in instants]

    async def _explained(
        self, name: str, at: datetime, now: datetime, row: StoredSchedule | None, *, leads: bool | None
    ) -> Explanation:
        [begin] = await self._fetch("explain_begin", name, at)
        found = await self._fetch("explain_events", name, at, begin["first_event"], EVENTS_TRACED)
        if row is None and not found:
            raise ScheduleNotFound(name)
        # What came between an old removal and the rest of the log is lost; that there is no row, it still explains.
        kept_from = 0 if row is None or begin["complete"] else begin["kept_from"] or 0
        evidence = Evidence(
            name=name,
            at=at,
            now=now,
            row=row,
            complete=begin["complete"],
            before=tuple(rows.event(each) for each in found if each["before"] and each["id"] >= kept_from),
            window=tuple(rows.event(each) for each in found if not each["before"]),
            leads=leads,
        )
        trace = traced(evidence)
        job_id, job = await self._job(evidence, trace)
        if job is not None and trace.reason in {Reason.UNKNOWN, Reason.UNACCOUNTED}:
            trace = trace.known_by_its_job()
        held_up = [] if job is None else await self._held_up(job, now)
        return self._told(evidence, trace, job_id, job, await self._leaderless(evidence, trace), held_up=held_up)

    async def _job(self, evidence: Evidence, trace: Traced) -> tuple[int | None, JobView | None]:
        """Return the job that the instant became, or that stands for it."""
        if trace.reason in {Reason.UNKNOWN, Reason.UNACCOUNTED}:
            job = next(iter(await self.jobs(evidence.name, fire=evidence.at)), None)
            return (None, None) if job is None else (job.id, job)
        fire = trace.fire or evidence.at
        if trace.share is None or fire not in trace.share.event.fires:
            return None, None
        event = trace.share.event
        number = event.fires.index(fire)
        if number >= len(event.job_ids):
            return None, None  # written by hand
        job_id = event.job_ids[number]
        return job_id, next(iter(await self.jobs(evidence.name, ids=[job_id])), None)

    async def _held_up(self, job: JobView, now: datetime) -> list[str]:
        """Return what is known of why a job has not begun long after it could have."""
        if job_fate(job) is not JobFate.WAITING or job.run_at.tzinfo is None or now - job.run_at < STUCK:
            return []
        [found] = await self._fetch("begun", job.kind, job.queue, job.run_at, JOBS_LOOKED_AT)
        return [wording.held_up(job, found["alike"], found["others"])]

    async def _leaderless(self, evidence: Evidence, trace: Traced) -> wording.Leaderless | None:
        """Return the time without a leader that made the instant late, if there is one."""
        if trace.reason in {Reason.NO_LEADER, Reason.WAITING}:
            until = evidence.now
        elif trace.reason in {Reason.ENQUEUED, Reason.COALESCED} and trace.share is not None:
            until = trace.share.event.clock
        else:
            return None
        if until - evidence.at < LATE and trace.reason is not Reason.NO_LEADER:
            return None
        [found] = await self._fetch("explain_leaders", evidence.at, until, EVENTS_TRACED)
        if found["elected"] is None and trace.reason is not Reason.NO_LEADER:
            return None
        return wording.Leaderless(
            last_action=found["action"],
            last_actor=found["actor"],
            last_at=found["at"],
            last_sign=found["enqueued_at"],
            elected=found["elected"],
            elected_at=found["elected_at"],
        )

    def _told(
        self,
        evidence: Evidence,
        trace: Traced,
        job_id: int | None,
        job: JobView | None,
        leaderless: wording.Leaderless | None,
        *,
        held_up: list[str],
    ) -> Explanation:
        notes = [] if job_id is None else [wording.job_words(job, job_id), *held_up]
        notes += [] if leaderless is None else [str(leaderless)]
        notes += wording.further(evidence, trace, stuck=evidence.now - evidence.at > STUCK)
        cron_expr, timezone = trace.definition or (None, None)
        before, after = _around(trace, evidence.at)
        events = () if trace.share is None else (trace.share.event.id,)
        return Explanation(
            name=evidence.name,
            at=evidence.at,
            now=evidence.now,
            reason=trace.reason,
            sentence=wording.sentence(evidence, trace, job_id),
            notes=tuple(notes),
            cron_expr=cron_expr,
            timezone=timezone,
            local=_local(evidence.at, timezone),
            previous_fire=before,
            next_fire=after,
            fire=None if job_id is None else trace.fire or evidence.at,
            job_id=job_id,
            job=job,
            job_fate=None if job_id is None else job_fate(job),
            events=events,
        )

    async def _fetch(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        return await self._connection.fetch(self._schema.statement(f"queries/{query}"), *arguments)

    async def _permitted(
        self, query: str, right: str, notes: list[str], *arguments: object
    ) -> asyncpg.Record | None:
        """Ask, or note that this role may not."""
        try:
            async with asking("leadership"):
                return (await self._fetch(query, *arguments))[0]
        except DatabaseError as error:
            if not isinstance(error.__cause__, asyncpg.InsufficientPrivilegeError):
                raise
            notes.append(f"this role may not {right}")
            return None


async def views(listed: Sequence[rows.Row], next_fires: int, clock: datetime | None) -> list[ScheduleView]:
    """Return how schedules stand. It takes a while for many, and lets others of the loop have their turns."""
    found: list[ScheduleView] = []
    if not listed:
        return found
    evaluations = Evaluations(clock or listed[0]["now"], next_fires)
    for number, row in enumerate(listed):
        if number % TURN == TURN - 1:
            await asyncio.sleep(0)
        found.append(
            schedule_view(
                rows.stored_schedule(row),
                evaluations,
                queue_paused_at=rows.zoned(row["queue_paused_at"]),
                queue_paused_by=row["queue_paused_by"],
            )
        )
    return found


def job_view(row: rows.Row) -> JobView:
    """Return a job as an operator sees it."""
    same = (
        *("id", "cron_name", "kind", "queue", "triggered", "attempt", "max_attempts", "created_at", "run_at"),
        *("attempted_at", "attempted_by", "finalized_at", "queue_paused_at", "queue_paused_by"),
    )
    values: dict[str, Any] = {name: rows.zoned(row[name]) for name in same}
    return JobView(
        **values,
        state=JobState(row["state"]),
        fire_time=_labelled(row["fire_label"]),
        errors=rows.errors(row),
    )


def _labelled(text: str | None) -> datetime | None:
    """Return the instant of a label; jobs can be made by hand, with any."""
    try:
        fire = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if fire is None or fire.tzinfo is None else fire


def _latest_and_next(row: StoredSchedule | None, now: datetime) -> list[datetime]:
    """Return the latest instant that counts until now and the next; now itself where nobody can say.

    Before its anchor no instant of the present expression counts; the last fire may be of an earlier one.
    """
    if row is None or counts_after(row) is None:
        return [now]
    definition = row.cron_expr, row.timezone
    try:
        latest = cronexpr.latest_due(*definition, after=row.anchored_at, until=now)
        coming = cronexpr.next_fires(*definition, after=now, count=1)
    except AwaCronError:
        return [now]
    if latest is None and row.last_enqueued_at is not None and row.last_enqueued_at <= now:
        latest = row.last_enqueued_at
    return [*([] if latest is None else [latest]), *coming] or [now]


def _around(trace: Traced, at: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the fires before and after an instant, by the definition that it is explained with."""
    if trace.definition is None or readable_instants(trace.definition) is None:
        return None, None
    before = cronexpr.previous_fires(*trace.definition, before=at, count=1)
    after = cronexpr.next_fires(*trace.definition, after=at, count=1)
    return next(iter(before), None), next(iter(after), None)


def _local(at: datetime, timezone: str | None) -> str | None:
    try:
        return None if timezone is None else at.astimezone(cronexpr.zone(timezone)).isoformat()
    except (AwaCronError, OverflowError):
        return None
