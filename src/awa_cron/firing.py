"""Which fires of a stored schedule become jobs now. Pure: the clock is an argument.

Spec: ``Due`` and ``Chosen``. Source: ADR-007, "Missed-fire policy".
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import MAXYEAR, MINYEAR, datetime
from itertools import islice

from awa_cron import cronexpr
from awa_cron.errors import AwaCronError, StoredScheduleInvalid
from awa_cron.model import Dropped, FrozenFires, MissedFirePolicy, ScheduleState

MAX_DROPPED_COUNTED = 1_000


def chosen_fires(state: ScheduleState, now: datetime, limit: int) -> tuple[datetime, ...]:
    """Return the due fires that the schedule's policy turns into jobs, ascending; empty while paused.

    Args:
        state: A row as read; it need not be readable.
        now: The database's clock, read together with the row.
        limit: The most fires of a catch-up schedule.

    Raises:
        StoredScheduleInvalid: The row cannot be evaluated.
    """
    if state.paused_at is not None:
        return ()
    after, policy = _readable(state)
    try:
        match policy:
            case MissedFirePolicy.COALESCE:
                latest = cronexpr.latest_due(state.cron_expr, state.timezone, after=after, until=now)
                return () if latest is None else (latest,)
            case MissedFirePolicy.CATCH_UP:
                due = cronexpr.due_fires(state.cron_expr, state.timezone, after=after, until=now)
                return tuple(islice(due, limit))
    except AwaCronError as error:
        raise _broken(state, str(error)) from error


def freeze(
    states: Iterable[ScheduleState], now: datetime, limit: int
) -> tuple[list[FrozenFires], list[tuple[ScheduleState, StoredScheduleInvalid]]]:
    """Choose the fires of one pass.

    Returns:
        What is due, and beside it each row that cannot be evaluated with the reason: one bad row stops nothing.
    """
    frozen: list[FrozenFires] = []
    broken: list[tuple[ScheduleState, StoredScheduleInvalid]] = []
    for state in states:
        try:
            fires = chosen_fires(state, now, limit)
        except StoredScheduleInvalid as error:
            broken.append((state, error))
            continue
        if fires:
            frozen.append(FrozenFires(read=state, fires=fires, read_at=now))
    return frozen, broken


def problem(state: ScheduleState) -> str | None:
    """Return why a row cannot be evaluated, None for a good one."""
    try:
        _readable(state)
    except StoredScheduleInvalid as error:
        return str(error)
    return None


def settle(state: ScheduleState, now: datetime, limit: int) -> tuple[tuple[datetime, ...], Dropped | None]:
    """Decide what an edit does with the fires due under the old definition.

    Spec: ``SettledFires``. Coalesced fires are not dropped: the latest stands for them.

    Returns:
        The fires that become jobs (none while paused), and what is given up, if anything.

    Raises:
        StoredScheduleInvalid: The old row cannot be evaluated.
    """
    fires = chosen_fires(state, now, limit)
    after, policy = _readable(state)
    if fires and policy is MissedFirePolicy.COALESCE:
        return fires, None
    rest = cronexpr.due_fires(state.cron_expr, state.timezone, after=fires[-1] if fires else after, until=now)
    given_up = list(islice(rest, MAX_DROPPED_COUNTED + 1))
    if not given_up:
        return fires, None
    counted_all = len(given_up) <= MAX_DROPPED_COUNTED
    latest = cronexpr.latest_due(state.cron_expr, state.timezone, after=after, until=now)
    assert latest is not None
    return fires, Dropped(
        count=min(len(given_up), MAX_DROPPED_COUNTED),
        counted_all=counted_all,
        first=given_up[0],
        last=latest,
    )


def _readable(state: ScheduleState) -> tuple[datetime, MissedFirePolicy]:
    """Return the instant after which fires count, and the policy."""
    # The statements read what Python has no value for as infinite; the driver maps that to the ends of its range.
    for field in ("last_enqueued_at", "anchored_at"):
        value: datetime | None = getattr(state, field)
        if value is not None and value.year in (MINYEAR, MAXYEAR):
            raise _broken(state, f"{field} is infinite or out of range")
    try:
        policy = MissedFirePolicy(state.missed_fire_policy)
    except ValueError:
        raise _broken(state, f"missed_fire_policy is {state.missed_fire_policy!r}") from None
    try:
        cronexpr.parse(state.cron_expr)
        cronexpr.zone(state.timezone)
    except AwaCronError as error:
        raise _broken(state, str(error)) from error
    return max(filter(None, (state.last_enqueued_at, state.anchored_at))), policy


def _broken(state: ScheduleState, reason: str) -> StoredScheduleInvalid:
    return StoredScheduleInvalid(f"stored schedule {state.name!r} cannot be evaluated: {reason}")
