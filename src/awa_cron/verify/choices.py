"""The rules about fires: which instants a pass or an edit may, and must, turn into jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Any

from awa_cron.firing import MAX_DROPPED_COUNTED
from awa_cron.model import Event, MissedFirePolicy
from awa_cron.verify.instants import Instants
from awa_cron.verify.state import UNKNOWN, State, Unknown, instant, known_and_not
from awa_cron.verify.verdict import Finding
from awa_cron.verify.wording import finding, listed, moment, shown

_SECOND = timedelta(seconds=1)


def enqueued(state: State, event: Event, pass_limit: int | None) -> Iterator[Finding]:
    """Check an ``atomic_enqueue``: the guards of its statement, and the choice of its pass."""
    fires = event.fires
    if state.present is False:
        why = "" if state.set_by else ": written by hand, or the event of its registration is lost"
        message = f"enqueues {listed(fires)} of a schedule that has no row by the log{why}"
        yield finding(state, "MarkIffJob", event, message, "present")
    expected = instant(event.details.get("expected", UNKNOWN))
    if not isinstance(expected, Unknown) and known_and_not(state.last, expected):
        message = f"expected the last fire {shown(expected)}, but the log stands at {shown(state.last)}"
        yield finding(state, "LastAsRead", event, message, "last")
    if isinstance(state.paused, datetime):
        message = f"enqueues {listed(fires)} at {moment(event.clock)}, paused since {moment(state.paused)}"
        yield finding(state, "Unpaused", event, message, "paused")
    yield from _one_job_each(state, event)
    if fires:
        yield from _in_order(state, event)
        if pass_limit is not None and len(fires) > pass_limit:
            message = f"enqueues {len(fires)} fires; a pass brings {pass_limit} at most"
            yield finding(state, "PassBounded", event, message)
        yield from _chosen(state, event, pass_limit)


def settled(state: State, event: Event, pass_limit: int | None) -> Iterator[Finding]:
    """Check what an edit makes of what was due under the old definition by the clock of its read: EditSettles."""
    fires = event.fires
    if fires or event.job_ids:
        yield from _one_job_each(state, event)
    if fires and isinstance(state.paused, datetime):
        yield finding(state, "PausedBlocksEnqueue", event, "settles fires of a paused schedule", "paused")
    after = state.counts_after
    dropped = event.details.get("dropped") or {}
    if isinstance(after, Unknown) or isinstance(state.definition, Unknown) or isinstance(state.policy, Unknown):
        return
    instants = state.instants
    if instants is None or state.policy not in set(MissedFirePolicy):
        if fires:
            yield finding(state, "FiresFitDefinition", event, "settles fires of an unreadable row", "definition")
    elif "unreadable" in dropped:
        message = f"could not read the old row: {dropped['unreadable']}"
        yield finding(state, "EditSettles", event, message, "definition")
    elif fires or not isinstance(state.paused, Unknown):
        yield from _settlement(state, event, instants, after, pass_limit)


def _settlement(
    state: State, event: Event, instants: Instants, after: datetime, pass_limit: int | None
) -> Iterator[Finding]:
    fires, until = event.fires, event.clock
    wanted: tuple[datetime, ...] = ()
    paused = isinstance(state.paused, datetime) and not fires
    coalesces = state.policy == MissedFirePolicy.COALESCE and not paused
    if coalesces:
        latest = instants.latest(after, until)
        wanted = () if latest is None else (latest,)
    elif not paused:
        wanted = tuple(islice(instants.between(after, until), pass_limit or max(1, len(fires))))
    if wanted != fires:
        message = (
            f"settles {listed(fires)}; what is due under {shown(state.definition)} by {moment(until)} and to be "
            f"settled is {listed(wanted)}"
        )
        yield finding(state, "EditSettles", event, message, "definition", "last", "anchor", "paused")
        return
    given_up = {} if coalesces else _given_up(instants, wanted[-1] if wanted else after, until)
    dropped = event.details.get("dropped") or {}
    if given_up != {key: instant(value) for key, value in dropped.items()}:
        message = f"says that it drops {_extent(dropped)}; it drops {_extent(given_up)}"
        yield finding(state, "EditSettles", event, message, "definition", "last", "anchor")


def _given_up(instants: Instants, after: datetime, until: datetime) -> dict[str, Any]:
    """Return what the event of an edit has to say about the instants that it drops."""
    count = instants.count(after, until, MAX_DROPPED_COUNTED)
    if not count:
        return {}
    return {
        "count": min(count, MAX_DROPPED_COUNTED),
        "counted_all": count <= MAX_DROPPED_COUNTED,
        "first": instants.first_after(after),
        "last": instants.latest(after, until),
    }


def _extent(dropped: dict[str, Any]) -> str:
    if not dropped:
        return "nothing"
    return f"{dropped.get('count')} instants from {shown(dropped.get('first'))} to {shown(dropped.get('last'))}"


def _one_job_each(state: State, event: Event) -> Iterator[Finding]:
    fires, jobs = event.fires, event.job_ids
    if not fires or len(fires) != len(jobs) or len(set(jobs)) != len(jobs):
        yield finding(state, "MarkIffJob", event, f"has {len(fires)} fires and the jobs {list(jobs)}")


def _in_order(state: State, event: Event) -> Iterator[Finding]:
    """Advances, AfterAnchor, AlreadyDue, and, within the event and across removals, FiresAdvance."""
    first, last = min(event.fires), max(event.fires)
    if any(one >= other for one, other in pairwise(event.fires)):
        yield finding(state, "FiresAdvance", event, f"has fires out of order: {listed(event.fires)}")
    if isinstance(state.last, datetime) and first <= state.last:
        message = f"enqueues {moment(first)}, though the last fire is {moment(state.last)} already"
        yield finding(state, "Advances", event, message, "last")
    elif state.floor is not None and first <= state.floor:
        message = f"enqueues {moment(first)}, though a removed row had come as far as {moment(state.floor)}"
        yield finding(state, "FiresAdvance", event, message, "present")
    if isinstance(state.anchor, datetime) and first <= state.anchor:
        message = f"enqueues {moment(first)}, which is not after the anchor {moment(state.anchor)}"
        yield finding(state, "AfterAnchor", event, message, "anchor")
    if last > event.clock:
        message = f"enqueues {moment(last)} at {moment(event.clock)}, before it is due"
        yield finding(state, "AlreadyDue", event, message)


def _chosen(state: State, event: Event, pass_limit: int | None) -> Iterator[Finding]:
    """FiresFitDefinition, and the policy's choice."""
    if isinstance(state.definition, Unknown):
        return
    instants = state.instants
    if instants is None:
        yield finding(state, "FiresFitDefinition", event, "enqueues fires of an unreadable row", "definition")
        return
    strange = tuple(fire for fire in event.fires if fire not in instants)
    if strange:
        message = f"enqueues {listed(strange)}, where {shown(state.definition)} does not fire"
        yield finding(state, "FiresFitDefinition", event, message, "definition")
        return
    read_at = instant(event.details.get("read_at"))
    if isinstance(read_at, datetime) and event.fires[-1] > read_at:
        message = f"enqueues {moment(event.fires[-1])}, not due yet when the pass read at {moment(read_at)}"
        yield finding(state, "ReadCronState", event, message)
    if state.policy == MissedFirePolicy.COALESCE:
        yield from _only_latest(state, event, instants, read_at)
    elif state.policy == MissedFirePolicy.CATCH_UP:
        gaps = list(_contiguous(state, event, instants))
        yield from gaps or _caught_up(state, event, instants, read_at, pass_limit)


def _only_latest(state: State, event: Event, instants: Instants, read_at: object) -> Iterator[Finding]:
    fires = event.fires
    if len(fires) > 1:
        message = f"enqueues {len(fires)} fires of a schedule that coalesces"
        yield finding(state, "CoalesceOnlyLatest", event, message, "policy")
    if isinstance(read_at, datetime):
        following = instants.first_after(fires[-1])
        if following is not None and following <= read_at:
            message = (
                f"enqueues {moment(fires[-1])}, though {moment(following)} was due too when the pass read at "
                f"{moment(read_at)}"
            )
            yield finding(state, "CoalesceOnlyLatest", event, message, "policy")


def _contiguous(state: State, event: Event, instants: Instants) -> Iterator[Finding]:
    after = state.counts_after
    if isinstance(after, Unknown):
        after = event.fires[0] - _SECOND
    for fire in event.fires:
        wanted = instants.first_after(after)
        if wanted is not None and wanted < fire:
            message = f"enqueues {moment(fire)} and leaves out {moment(wanted)}, due after {moment(after)}"
            yield finding(state, "CatchUpContiguous", event, message, "last", "anchor")
            return
        after = fire


def _caught_up(
    state: State, event: Event, instants: Instants, read_at: object, pass_limit: int | None
) -> Iterator[Finding]:
    """A pass takes as many as it may; only where the limit is known can too few be told from a lower limit."""
    if pass_limit is None or not isinstance(read_at, datetime) or len(event.fires) >= pass_limit:
        return
    following = instants.first_after(event.fires[-1])
    if following is not None and following <= read_at:
        message = f"leaves {moment(following)} for later, though a pass brings {pass_limit}"
        yield finding(state, "CaughtUp", event, message, "policy")
