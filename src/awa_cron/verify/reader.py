"""Reads a database for its verdict: one read-only snapshot, the log as a stream.

Memory grows with the number of schedules, not with that of events. While it runs, vacuum cannot remove rows that
have died since it began.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import asyncpg

from awa_cron import rows
from awa_cron.actions import asking, checked
from awa_cron.database import Database
from awa_cron.model import ScheduleState
from awa_cron.sql import Schema
from awa_cron.verify.checker import Checker
from awa_cron.verify.findings import Findings
from awa_cron.verify.state import Unknown
from awa_cron.verify.verdict import Account, Finding, Verdict
from awa_cron.verify.wording import moment

BATCH: Final = 2_000
"""Rows that are fetched at once."""

EVENTS_VANISH: Final = timedelta(hours=1)
"""Where the oldest events have been deleted, the event of a job that is this much younger must still be there."""

Progress = Callable[[int], None]
"""Is told how many events have been checked."""


async def verify(
    database: Database,
    *,
    since: datetime | None = None,
    name: str | None = None,
    grace_s: float = 60.0,
    jobs_kept: bool = False,
    pass_limit: int | None = None,
    clock: datetime | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Check what a database says that happened against the rules of the spec.

    Args:
        database: Open; a connection of its own is used, which only reads.
        since: Only events recorded from then on; the state at that time is taken from the events before.
        name: Only this schedule.
        grace_s: How long an instant may be due before it counts as lost or late.
        jobs_kept: Jobs are never deleted here, so that one that is gone is a finding.
        pass_limit: The most fires of one pass, if every instance has the same.
        clock: Instead of the database's.
        progress: Told now and then how many events have been checked.

    Raises:
        DatabaseError: The database cannot be asked.
    """
    session = {"default_transaction_read_only": "on", "TimeZone": "UTC", "jit": "off"}
    connection = await database.dedicated("verify", **session)
    try:
        async with asking("verify"), connection.transaction(isolation="repeatable_read", readonly=True):
            return await _Reading(connection, database.schema, name, pass_limit, progress).verdict(
                since=checked(since),
                grace=timedelta(seconds=grace_s),
                jobs_kept=jobs_kept,
                clock=checked(clock),
            )
    finally:
        connection.terminate()


class _Reading:
    """One verification, in a transaction of its own."""

    def __init__(
        self,
        connection: asyncpg.Connection[asyncpg.Record],
        schema: Schema,
        name: str | None,
        pass_limit: int | None,
        progress: Progress | None,
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._name = name
        self._pass_limit = pass_limit
        self._progress = progress
        self._accounts: list[Account] = []
        self._findings = Findings()
        self._events = 0
        self._complete = False
        self._from_registration = True
        self._stored: dict[str, ScheduleState] = {}
        self._before: dict[str, asyncpg.Record] = {}

    async def verdict(
        self, *, since: datetime | None, grace: timedelta, jobs_kept: bool, clock: datetime | None
    ) -> Verdict:
        [begin] = await self._fetch("begin", since, self._schema.leader_lock_key, clock)
        first_event, now = begin["first_event"], begin["now"]
        leading = begin["leader"] or "nobody leads"
        self._complete = begin["complete"]
        self._stored = {row["name"]: rows.schedule_state(row) for row in await self._fetch("rows", self._name)}
        self._before = {row["name"]: row for row in await self._fetch("before", self._name, first_event)}
        async for checker in self._checkers(first_event, begin["kept_from"]):
            row = self._stored.pop(checker.name, None)
            self._from_registration &= checker.from_registration or (row is None and not checker.began)
            found, account = checker.finish(row, now, grace=grace, leading=leading)
            self._note(found)
            if row is not None or account.events:
                self._accounts.append(account)
        jobs_from = since if self._complete else _asked_from(since, begin["oldest"], now)
        deleted = await self._jobs(first_event, jobs_from, jobs_kept=jobs_kept)
        await self._doubles()
        return Verdict(
            now=now,
            events=self._events,
            from_start=since is None and (self._complete or self._from_registration),
            accounts=tuple(sorted(self._accounts, key=lambda account: account.name)),
            findings=self._findings.listed(),
            findings_total=self._findings.total,
            jobs_deleted=deleted,
        )

    async def _checkers(self, first_event: int, kept_from: int) -> AsyncIterator[Checker]:
        """Yield one checker per schedule, at the end of its log."""
        checker: Checker | None = None
        begun = False
        async for row in self._stream("events", self._name, first_event, kept_from):
            if checker is None or checker.name != row["name"]:
                if checker is not None:
                    yield checker
                checker, begun = self._checker(row["name"]), False
            event = rows.event(row)
            if row["before"]:
                checker.learn(event)
                continue
            if not begun:
                begun = True
                self._learn_row(checker)
            self._note(checker.feed(event))
            self._events += 1
            if self._progress is not None and self._events % BATCH == 0:
                self._progress(self._events)
        if checker is not None:
            yield checker
        for name in sorted(self._stored):
            yield self._checker(name)

    def _checker(self, name: str) -> Checker:
        floor = self._before[name]["floor"] if name in self._before else None
        return Checker(name, from_start=self._complete, floor=floor, pass_limit=self._pass_limit)

    def _learn_row(self, checker: Checker) -> None:
        """Where neither the log nor what is before it tells the definition, nobody has changed it."""
        row, state = self._stored.get(checker.name), checker.state
        if row is None or state.present is False or not isinstance(state.definition, Unknown):
            return
        if not self._before[checker.name]["defined"]:
            checker.learn_row(row)

    async def _jobs(self, first_event: int, jobs_from: datetime | None, *, jobs_kept: bool) -> int:
        """Compare the jobs with the log, and return how many of the log's are gone."""
        deleted = 0
        async for row in self._stream("jobs", self._name, first_event, jobs_from):
            job, event = row["job_id"], row["event"]
            match row["problem"]:
                case "no job":
                    deleted += 1
                    if jobs_kept:
                        said = f"job {job}, made by event {event}, is gone, or has lost its label"
                        self._findings.add(_of_jobs("RemoveLeavesJobs", row, said), row["problem"])
                case "no event":
                    rule = "MarkIffJob" if row["automatic"] else "TriggerLeavesSchedule"
                    what = f"for {row['label_fire']}" if row["automatic"] else "made by hand"
                    said = f"job {job}, {what}, has no event: inserted by other means, or the event is lost"
                    self._findings.add(_of_jobs(rule, row, said), row["problem"])
                case _:
                    fire = "no fire" if row["fire"] is None else moment(row["fire"])
                    said = (
                        f"job {job} is labelled {row['label_name']!r}, {row['label_fire']}; event {event} made it "
                        f"for {fire}"
                    )
                    self._findings.add(_of_jobs("MarkIffJob", row, said), row["problem"])
        return deleted

    async def _doubles(self) -> None:
        async for row in self._stream("doubles", self._name):
            jobs, events = tuple(row["jobs"]), tuple(row["events"])
            if row["problem"] == "instant":
                said = f"{row['what']} has {len(jobs)} jobs: {', '.join(map(str, jobs))}"
            else:
                said = f"job {row['what']} was made by {len(events)} events"
            found = Finding(rule="NoDuplicateFire", schedule=row["name"], message=said, events=events, jobs=jobs)
            self._findings.add(found, row["problem"])

    def _note(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self._findings.add(finding)

    async def _fetch(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        return await self._connection.fetch(self._schema.statement(f"queries/verify_{query}"), *arguments)

    async def _stream(self, query: str, *arguments: object) -> AsyncIterator[asyncpg.Record]:
        statement = self._schema.statement(f"queries/verify_{query}")
        cursor = await self._connection.cursor(statement, *arguments)
        while batch := await cursor.fetch(BATCH):
            for row in batch:
                yield row


def _of_jobs(rule: str, row: Any, message: str) -> Finding:
    events = () if row["event"] is None else (row["event"],)
    return Finding(rule=rule, schedule=row["name"], message=message, events=events, jobs=(row["job_id"],))


def _asked_from(since: datetime | None, oldest: datetime | None, now: datetime) -> datetime:
    """Return the time from which on every job must have its event, in a log that has lost its beginning."""
    kept_from = now if oldest is None else oldest + EVENTS_VANISH
    return kept_from if since is None else max(since, kept_from)
