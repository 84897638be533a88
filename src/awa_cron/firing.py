"""Which fires of a stored schedule become jobs now. Pure: the clock is an argument.

Spec: ``Due`` and ``Chosen``; ``FirstAfter`` and ``DerivedNext`` of ``AwaCronNext``.
Source: ADR-007, "Missed-fire policy".
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from awa_cron import cronexpr
from awa_cron.errors import AwaCronError, StoredScheduleInvalid
from awa_cron.model import NEVER, Dropped, FrozenFires, MissedFirePolicy, NotedNext, ScheduleState

MAX_DROPPED_COUNTED = 1_000
REMEMBERED = 4_096
"""Searches that are kept, by expression, zone and second: more than most seconds need."""
INFINITE = (MINYEAR, MAXYEAR)
BEGINNING = datetime.min.replace(tzinfo=UTC)


class Evaluated(NamedTuple):
    """What a pass makes of the rows that it has read.

    Attributes:
        frozen: What is due.
        noted: Rows with nothing due whose next fire is another than they say.
        broken: Rows that cannot be evaluated, with the reason: one bad row stops nothing.
    """

    frozen: list[FrozenFires]
    noted: list[NotedNext]
    broken: list[tuple[ScheduleState, StoredScheduleInvalid]]


def chosen_fires(state: ScheduleState, now: datetime, limit: int) -> tuple[datetime, ...]:
    """Return the due fires that the schedule's policy turns into jobs, ascending; empty while paused.

    Args:
        state: A row as read; it need not be readable.
        now: The database's clock, read together with the row.
        limit: The most fires of a catch-up schedule.

    Raises:
        StoredScheduleInvalid: The row cannot be evaluated.
    """
    return () if state.paused_at is not None else _chosen(state, now, _second(now), limit)[0]


def freeze(states: Iterable[ScheduleState], now: datetime, limit: int) -> Evaluated:
    """Choose the fires of one pass, and work out the next fire of each row. Paused rows are left out."""
    evaluated = Evaluated([], [], [])
    second = _second(now)
    for state in states:
        if state.paused_at is not None:
            continue
        try:
            fires, following = _chosen(state, now, second, limit)
        except StoredScheduleInvalid as error:
            evaluated.broken.append((state, error))
            continue
        if fires:
            evaluated.frozen.append(FrozenFires(read=state, fires=fires, read_at=now, next_fire_at=following))
        elif state.next_fire_at != following:
            evaluated.noted.append(NotedNext(read=state, next_fire_at=following))
    return evaluated


def next_fire(cron_expr: str, timezone: str, after: datetime) -> datetime:
    """Return the first fire after an instant, ``NEVER`` if there is none.

    Spec: ``FirstAfter``.

    Raises:
        InvalidSchedule: The expression or the zone cannot be read.
    """
    return _next(cron_expr, timezone, _second(after))


def _chosen(
    state: ScheduleState, now: datetime, second: datetime, limit: int
) -> tuple[tuple[datetime, ...], datetime]:
    """Return the fires that become jobs, pause or not, and the fire that then is the next.

    ``second`` is the clock's, one object for all rows of a pass, since its hash is worked out once.

    Spec: ``Chosen``, and ``DerivedNext`` of the row after it.
    """
    cron_expr, timezone = state.cron_expr, state.timezone
    try:
        after = _after(state)
        policy, latest = _at(second, cron_expr, timezone, state.missed_fire_policy)
        if latest is None or latest[0] <= after:
            # No fire lies between the two; from the clock, rows that were written at other times share the search.
            return (), _next(cron_expr, timezone, second if after <= now else _second(after))
        if policy is MissedFirePolicy.COALESCE:
            return latest, _next(cron_expr, timezone, latest[0])
        return _caught_up(cron_expr, timezone, after, latest[0], limit)
    except AwaCronError as error:
        raise _broken(state, error) from error


# Many schedules share an expression and a zone, and fall due together.


@lru_cache(maxsize=REMEMBERED)
def _at(
    second: datetime, cron_expr: str, timezone: str, policy: str
) -> tuple[MissedFirePolicy, tuple[datetime] | None]:
    """Return the policy of a definition, and its latest fire until a second, if it has one."""
    known = _policy(cron_expr, timezone, policy)
    latest = cronexpr.latest_due(cron_expr, timezone, after=BEGINNING, until=second)
    return known, None if latest is None else (latest,)


@lru_cache(maxsize=REMEMBERED)
def _caught_up(
    cron_expr: str, timezone: str, after: datetime, latest: datetime, limit: int
) -> tuple[tuple[datetime, ...], datetime]:
    """Return the oldest due fires, so many as the limit allows, and the fire that then is the next."""
    first = _next(cron_expr, timezone, _second(after))
    if first == latest or limit == 1:
        return (first,), _next(cron_expr, timezone, first)
    fires = tuple(islice(cronexpr.due_fires(cron_expr, timezone, after=after, until=latest), limit))
    return fires, _next(cron_expr, timezone, fires[-1])


@lru_cache(maxsize=REMEMBERED)
def _next(cron_expr: str, timezone: str, after: datetime) -> datetime:
    found = cronexpr.next_fires(cron_expr, timezone, after=after, count=1)
    return found[0] if found else NEVER


def _second(time: datetime) -> datetime:
    """Return the second of an instant. Fires are whole seconds, so before and after it they are the same."""
    return time.replace(microsecond=0)


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
    try:
        return _after(state), _policy(state.cron_expr, state.timezone, state.missed_fire_policy)
    except AwaCronError as error:
        raise _broken(state, error) from error


def _after(state: ScheduleState) -> datetime:
    # The statements read what Python has no value for as infinite; the driver maps that to the ends of its range.
    last, anchor = state.last_enqueued_at, state.anchored_at
    if last is not None and last.year in INFINITE:
        raise AwaCronError("last_enqueued_at is infinite or out of range")
    if anchor.year in INFINITE:
        raise AwaCronError("anchored_at is infinite or out of range")
    return anchor if last is None or last < anchor else last


def _policy(cron_expr: str, timezone: str, policy: str) -> MissedFirePolicy:
    """Return the policy of a definition that can be read."""
    known, fault = _read(cron_expr, timezone, policy)
    if known is None:
        raise AwaCronError(str(fault)) from fault
    return known


@lru_cache(maxsize=REMEMBERED)
def _read(cron_expr: str, timezone: str, policy: str) -> tuple[MissedFirePolicy | None, Exception | None]:
    """Read a definition; one that cannot be read is asked in every pass, and looks for its zone only once."""
    try:
        known = MissedFirePolicy(policy)
    except ValueError:
        return None, AwaCronError(f"missed_fire_policy is {policy!r}")
    try:
        cronexpr.parse(cron_expr)
        cronexpr.zone(timezone)
    except AwaCronError as error:
        return None, error
    return known, None


def _broken(state: ScheduleState, reason: AwaCronError) -> StoredScheduleInvalid:
    return StoredScheduleInvalid(f"stored schedule {state.name!r} cannot be evaluated: {reason}")
