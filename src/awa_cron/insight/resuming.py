"""What a resume, or the next pass, makes of the fires that are due. Pure."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Final

from awa_cron import firing
from awa_cron.model import MissedFirePolicy, ScheduleState
from awa_cron.verify.instants import instants_of

COUNTED: Final = 10_000
"""The most due instants that are counted."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResumePreview:
    """What becomes of the due instants of a schedule once it fires again.

    Attributes:
        now: The database's clock, up to which instants are due.
        paused: Whether it is paused at all; if not, this is what the next pass does.
        broken: Why nobody can say, and nothing will happen; None for a good schedule.
        due: How many instants are due, counted up to ``COUNTED``.
        counted_all: False where there are more.
        first: The oldest of them, None if there is none.
        last: The newest.
        fires: Those that become jobs in the first pass, ascending.
        jobs: How many become jobs in all, as far as counted.
        passes: How many passes that takes, as far as counted.
        coalesced: Those that become no job, because the last of ``fires`` stands for them; as far as counted.
    """

    name: str
    now: datetime
    paused: bool
    broken: str | None
    policy: str
    pass_limit: int
    due: int
    counted_all: bool
    first: datetime | None
    last: datetime | None
    fires: tuple[datetime, ...]
    jobs: int
    passes: int
    coalesced: int


def resume_preview(state: ScheduleState, now: datetime, pass_limit: int, broken: str | None) -> ResumePreview:
    """Return what a resume now would do.

    Args:
        state: The row, paused or not.
        now: The database's clock, read together with it.
        pass_limit: The most fires of one pass.
        broken: Why the row cannot be evaluated, or its jobs are refused.
    """
    columns = {field.name: getattr(state, field.name) for field in dataclasses.fields(ScheduleState)}
    awake = ScheduleState(**columns | {"paused_at": None})
    due = 0
    first: datetime | None = None
    last: datetime | None = None
    fires: tuple[datetime, ...] = ()
    if broken is None:
        instants = instants_of(awake.cron_expr, awake.timezone)
        after = max(filter(None, (awake.last_enqueued_at, awake.anchored_at)))
        due = instants.count(after, now, COUNTED)
        first = instants.first_after(after) if due else None
        last = instants.latest(after, now) if due else None
        fires = firing.chosen_fires(awake, now, pass_limit)
    counted = min(due, COUNTED)
    coalesces = state.missed_fire_policy == MissedFirePolicy.COALESCE
    jobs = min(counted, 1) if coalesces else counted
    return ResumePreview(
        name=state.name,
        now=now,
        paused=state.paused_at is not None,
        broken=broken,
        policy=state.missed_fire_policy,
        pass_limit=pass_limit,
        due=counted,
        counted_all=due <= COUNTED,
        first=first,
        last=last,
        fires=fires,
        jobs=jobs,
        passes=-(-jobs // pass_limit),
        coalesced=counted - jobs if coalesces else 0,
    )
