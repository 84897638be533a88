"""Why an instant did or did not become a job: the answers there are. Pure."""

from __future__ import annotations

import dataclasses
import enum
from datetime import datetime

from awa_cron.insight.views import JobView
from awa_cron.model import JobState
from awa_cron.verify.fates import Fate


class Reason(enum.StrEnum):
    """Why an instant did or did not become a job."""

    ENQUEUED = "enqueued"
    """It did: a pass of the leader made the job."""
    SETTLED = "settled"
    """It did: an edit made the job of what was due before it."""
    COALESCED = "coalesced"
    """A later instant of the same pass or edit stands for it."""
    PAUSED_OVER = "paused over"
    """It fell due during a pause, and after that a later instant stands for it."""
    DROPPED = "dropped"
    """An edit gave it up, for a pause or the pass limit."""
    REMOVED = "removed"
    """It was due, and went with its schedule."""
    PAUSED = "paused"
    """It is due, and the schedule is paused."""
    WAITING = "waiting"
    """It is due, and the leader has not come to it."""
    NO_LEADER = "no leader"
    """It is due, and nobody leads."""
    BROKEN = "broken"
    """The schedule cannot be evaluated, or its jobs are refused."""
    NOT_A_FIRE = "not a fire"
    """The expression does not fire then."""
    NOT_YET_DUE = "not yet due"
    """It lies ahead."""
    BEFORE_ANCHOR = "before the anchor"
    """The schedule was registered later, or edited to fire then only later."""
    NOT_REGISTERED = "not registered"
    """The schedule had been removed."""
    UNACCOUNTED = "unaccounted"
    """It was due, and the log does not say what became of it: ``awa-cron verify`` will find fault."""
    UNKNOWN = "unknown"
    """The events that would tell have been deleted."""


OF_FATE = {
    Fate.ENQUEUED: Reason.ENQUEUED,
    Fate.SETTLED: Reason.SETTLED,
    Fate.COALESCED: Reason.COALESCED,
    Fate.PAUSED: Reason.PAUSED_OVER,
    Fate.DROPPED: Reason.DROPPED,
    Fate.REMOVED: Reason.REMOVED,
}
"""What a decided instant is explained with."""


class JobFate(enum.StrEnum):
    """What has become of a job."""

    WAITING = "waiting"
    QUEUE_PAUSED = "queue paused"
    """It waits, and its queue hands out no jobs."""
    RUNNING = "running"
    RETRYING = "retrying"
    """It has failed, and waits for its next attempt."""
    COMPLETED = "completed"
    DEAD = "dead"
    """It has used up its attempts."""
    CANCELLED = "cancelled"
    GONE = "gone"
    """Its row has been deleted, or has lost its label."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer for one instant of one schedule.

    Attributes:
        at: The instant.
        now: The database's clock when it was asked.
        sentence: The whole answer in words, naming who and when.
        notes: What else matters: a queue that is paused, a time without a leader, the fires around it.
        cron_expr: The definition that held at the instant, or holds; None where nobody knows.
        timezone: Its zone.
        local: What that zone's clock shows at the instant.
        previous_fire: The fire before the instant by that definition.
        next_fire: The fire after it.
        fire: The instant whose job this one became, or is part of; None if there is none.
        job_id: That job.
        job: Its row; None where it is gone.
        job_fate: What has become of it; None if there never was one.
        events: Ids of the events that tell it.
    """

    name: str
    at: datetime
    now: datetime
    reason: Reason
    sentence: str
    notes: tuple[str, ...] = ()
    cron_expr: str | None = None
    timezone: str | None = None
    local: str | None = None
    previous_fire: datetime | None = None
    next_fire: datetime | None = None
    fire: datetime | None = None
    job_id: int | None = None
    job: JobView | None = None
    job_fate: JobFate | None = None
    events: tuple[int, ...] = ()


_OF_STATE = {
    JobState.SCHEDULED: JobFate.WAITING,
    JobState.AVAILABLE: JobFate.WAITING,
    JobState.RETRYABLE: JobFate.RETRYING,
    JobState.RUNNING: JobFate.RUNNING,
    JobState.COMPLETED: JobFate.COMPLETED,
    JobState.FAILED: JobFate.DEAD,
    JobState.CANCELLED: JobFate.CANCELLED,
}


def job_fate(job: JobView | None) -> JobFate:
    """Return what has become of a job, None standing for one whose row is gone."""
    if job is None:
        return JobFate.GONE
    fate = _OF_STATE[job.state]
    held = job.queue_paused_at is not None and fate in {JobFate.WAITING, JobFate.RETRYING}
    return JobFate.QUEUE_PAUSED if held else fate
