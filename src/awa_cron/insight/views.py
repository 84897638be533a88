"""What an operator sees of schedules, jobs and the leadership, each with the clock it was read at. Pure."""

from __future__ import annotations

import dataclasses
import enum
from datetime import UTC, datetime
from typing import Any, Final

from awa_cron import cronexpr
from awa_cron.errors import AwaCronError
from awa_cron.model import JobState, StoredSchedule
from awa_cron.preview import ComingFire, coming_fires

LONG_AGO: Final = datetime(1, 1, 1, tzinfo=UTC)
"""Before any fire."""


class Condition(enum.StrEnum):
    """Whether a schedule fires."""

    ACTIVE = "active"
    PAUSED = "paused"
    BROKEN = "broken"
    """It cannot be evaluated, or its jobs are refused; ``StoredSchedule.broken`` says why."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """A schedule as it stands.

    Attributes:
        now: The database's clock when it was read.
        next_fires: What comes, with the oddities of clock changes; nothing while it is paused or broken.
        due_since: The oldest instant that is due and no job yet; None if there is none, or nobody can say.
        queue_paused_at: Since when its queue hands out no jobs; None while it does.
    """

    schedule: StoredSchedule
    now: datetime
    condition: Condition
    next_fires: tuple[ComingFire, ...]
    due_since: datetime | None
    queue_paused_at: datetime | None
    queue_paused_by: str | None

    @property
    def name(self) -> str:
        """The schedule's."""
        return self.schedule.name

    @property
    def last_fire(self) -> datetime | None:
        """The latest instant that became a job."""
        return self.schedule.last_enqueued_at

    @property
    def next_fire(self) -> datetime | None:
        """The next one that will."""
        return next((each.fire for each in self.next_fires if each.fire is not None), None)

    @property
    def lateness_s(self) -> float:
        """For how long the oldest due instant has waited for the leader; 0 while paused, when it has to wait."""
        if self.due_since is None or self.condition is not Condition.ACTIVE:
            return 0.0
        return max(0.0, (self.now - self.due_since).total_seconds())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeaderView:
    """Who leads.

    Attributes:
        now: The database's clock when it was read.
        leads: Whether somebody holds the leader's lock; None where this role may not see it.
        backend_pid: The server process that holds it.
        actor: Who that is, by the event of the election; None where that is not known.
        since: When that was.
        enqueued_at: The newest sign that somebody evaluates: when a fire became a job. None if there is none among
            the newest events; that nothing was due leaves no sign.
        enqueued_by: Who did it.
        note: What could not be seen, and why; None if nothing is hidden.
    """

    now: datetime
    leads: bool | None
    backend_pid: int | None
    actor: str | None
    since: datetime | None
    enqueued_at: datetime | None
    enqueued_by: str | None
    note: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as an operator sees it.

    Attributes:
        fire_time: The instant that it is for; None if it was made by hand.
        triggered: Whether an operator's trigger made it.
        run_at: When it may run, at the earliest.
        attempted_by: The worker of its latest attempt.
        errors: What each failed attempt left, oldest first.
        queue_paused_at: Since when its queue hands out no jobs; None while it does.
    """

    id: int
    cron_name: str | None
    kind: str
    queue: str
    state: JobState
    fire_time: datetime | None
    triggered: bool
    attempt: int
    max_attempts: int
    created_at: datetime
    run_at: datetime
    attempted_at: datetime | None
    attempted_by: str | None
    finalized_at: datetime | None
    errors: tuple[dict[str, Any], ...]
    queue_paused_at: datetime | None
    queue_paused_by: str | None


class Evaluations:
    """When definitions fire around one moment; schedules often share one, and a database may have many.

    Args:
        now: The moment.
        count: How many fires to come.
    """

    def __init__(self, now: datetime, count: int) -> None:
        self.now = now
        self.count = count
        self._known: dict[tuple[str, str], tuple[datetime | None, tuple[ComingFire, ...]]] = {}

    def of(self, cron_expr: str, timezone: str) -> tuple[datetime | None, tuple[ComingFire, ...]]:
        """Return the latest fire until now, and those to come.

        Raises:
            InvalidSchedule: The expression or the zone is not known here.
        """
        known = self._known.get((cron_expr, timezone))
        if known is None:
            latest = cronexpr.latest_due(cron_expr, timezone, after=LONG_AGO, until=self.now)
            coming = coming_fires(cron_expr, timezone, after=self.now, count=self.count)
            known = self._known[cron_expr, timezone] = latest, tuple(coming)
        return known


def schedule_view(
    schedule: StoredSchedule,
    evaluations: Evaluations,
    *,
    queue_paused_at: datetime | None = None,
    queue_paused_by: str | None = None,
) -> ScheduleView:
    """Return how a schedule stands.

    Args:
        schedule: As stored; it need not be readable.
        evaluations: Those by the database's clock, read together with it.
        queue_paused_at: Since when its queue is paused.
        queue_paused_by: By whom.
    """
    due_since, coming = _fires(schedule, evaluations)
    condition = Condition.ACTIVE
    if schedule.broken is not None:
        condition = Condition.BROKEN
    elif schedule.paused_at is not None:
        condition = Condition.PAUSED
    return ScheduleView(
        schedule=schedule,
        now=evaluations.now,
        condition=condition,
        next_fires=coming,
        due_since=due_since,
        queue_paused_at=queue_paused_at,
        queue_paused_by=queue_paused_by,
    )


def _fires(schedule: StoredSchedule, evaluations: Evaluations) -> tuple[datetime | None, tuple[ComingFire, ...]]:
    """Return the oldest due instant, and what comes after now."""
    if schedule.broken is not None:
        return None, ()
    after = max(filter(None, (schedule.last_enqueued_at, schedule.anchored_at)))
    definition = schedule.cron_expr, schedule.timezone
    due_since = None
    try:
        latest, coming = evaluations.of(*definition)
        if latest is not None and latest > after:
            due_since = cronexpr.next_fires(*definition, after=after, count=1)[0]
        if schedule.anchored_at > evaluations.now:
            coming = tuple(coming_fires(*definition, after=schedule.anchored_at, count=evaluations.count))
    except AwaCronError:
        return None, ()
    return due_since, () if schedule.paused_at is not None else coming
