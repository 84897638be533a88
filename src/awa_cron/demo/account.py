"""The accounts of one schedule: every due instant is a job, or there is a reason why not. Pure.

The due instants come from the cron expression alone, the jobs from the queue's table, the runs from a table that
the handlers wrote themselves, the reasons from the event log. Where the reasons do not suffice, an instant is lost.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from awa_cron.model import MissedFirePolicy


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One statement of a leader that enqueued something.

    Attributes:
        clock: When it was carried out.
        fires: By schedule, the instants that became jobs. The latest of all proves how far the pass had looked.
    """

    clock: datetime
    fires: dict[str, tuple[datetime, ...]]

    @property
    def looked_until(self) -> datetime:
        """An instant that was due when the pass read the schedules."""
        return max(max(fires) for fires in self.fires.values())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause that has ended."""

    start: datetime
    end: datetime


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """A row of the queue.

    Attributes:
        fire: None for a triggered job.
        attempts: How often it was handed to a worker.
    """

    id: int
    fire: datetime | None
    attempts: int
    created_at: datetime


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A line that a handler wrote when it began, and completed when it came to its end."""

    job_id: int
    fire: datetime | None
    finished: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What became of one schedule's due instants.

    Attributes:
        due: Instants that the expression names, from the anchor to the end.
        enqueued: Due instants that became a job.
        coalesced: Due instants that a later job stands for: nobody led when they fell due.
        paused: Due instants that no job stands for because the schedule was paused.
        executed: Enqueued instants whose handler came to its end.
        repeated: Runs beyond the first of a job: delivery is at least once.
        triggered: Jobs that an operator asked for.
        lost: Due instants with no job and no reason, or with a job whose handler never came to its end.
        duplicated: Instants with more than one job, run for more than one job, or run more often than handed out.
        stray: Instants that have a job and were not due.
        unfinished_triggers: Triggered jobs whose handler never came to its end.
        latest: The longest that a job came after its instant; None without jobs.
        fates: What became of each due instant: ``enqueued``, ``coalesced``, ``paused`` or ``lost``.
    """

    name: str
    due: int
    enqueued: int
    coalesced: int
    paused: int
    executed: int
    repeated: int
    triggered: int
    lost: tuple[datetime, ...]
    duplicated: tuple[datetime, ...]
    stray: tuple[datetime, ...]
    unfinished_triggers: tuple[int, ...]
    latest: timedelta | None
    fates: Mapping[datetime, str] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def balances(self) -> bool:
        """Whether nothing is lost, doubled or invented."""
        return not (self.lost or self.duplicated or self.stray or self.unfinished_triggers)


def account(
    name: str,
    *,
    policy: MissedFirePolicy,
    due: Sequence[datetime],
    jobs: Sequence[QueuedJob],
    runs: Sequence[Run],
    passes: Sequence[Pass],
    pauses: Sequence[Pause],
) -> Account:
    """Balance one schedule.

    Args:
        name: The schedule.
        policy: Its missed-fire policy.
        due: Every instant that its expression names between the anchor and the end, ascending.
        jobs: Its jobs, triggered ones too.
        runs: What its handlers wrote.
        passes: Those of all schedules, in the order of their clocks.
        pauses: Its pauses that have ended; one that has not excuses nothing.
    """
    automatic = [job for job in jobs if job.fire is not None]
    fires = {job.fire for job in automatic if job.fire is not None}
    finished = {run.job_id for run in runs if run.finished}
    executed = {job.fire for job in automatic if job.id in finished}
    runs_of_job = Counter(run.job_id for run in runs)
    jobs_queued = Counter(job.fire for job in automatic)
    jobs_run = Counter(fire for _, fire in {(run.job_id, run.fire) for run in runs if run.fire is not None})
    doubled = {fire for fire in fires if jobs_queued[fire] > 1 or jobs_run[fire] > 1}
    doubled |= {job.fire for job in automatic if job.fire is not None and runs_of_job[job.id] > job.attempts}
    fates = {
        instant: "enqueued" if instant in fires else _reason(name, instant, policy, passes, pauses) or "lost"
        for instant in due
    }
    counts = Counter(fates.values())
    unexplained = {instant for instant, fate in fates.items() if fate == "lost"}
    return Account(
        name=name,
        due=len(due),
        enqueued=len(fires & set(due)),
        coalesced=counts["coalesced"],
        paused=counts["paused"],
        executed=len(executed),
        repeated=len(runs) - len(runs_of_job),
        triggered=len(jobs) - len(automatic),
        lost=tuple(sorted(unexplained | (fires & set(due)) - executed)),
        duplicated=tuple(sorted(doubled)),
        stray=tuple(sorted(fires - set(due))),
        unfinished_triggers=tuple(job.id for job in jobs if job.fire is None and job.id not in finished),
        latest=max((job.created_at - job.fire for job in automatic if job.fire is not None), default=None),
        fates=fates,
    )


def _reason(
    name: str,
    instant: datetime,
    policy: MissedFirePolicy,
    passes: Sequence[Pass],
    pauses: Sequence[Pause],
) -> str | None:
    """Say why a due instant has no job of its own; None where there is no good reason."""
    if policy is MissedFirePolicy.CATCH_UP:
        return None
    later = next((each for each in passes if name in each.fires and max(each.fires[name]) > instant), None)
    if later is None:
        return None
    for each in passes:
        # This pass had the instant before its eyes, the schedule was not paused, and yet it made no job.
        passed_over = each.clock < later.clock and each.looked_until >= instant
        if passed_over and not any(pause.start <= each.clock <= pause.end for pause in pauses):
            return None
    return "paused" if any(p.start <= later.clock and p.end >= instant for p in pauses) else "coalesced"
