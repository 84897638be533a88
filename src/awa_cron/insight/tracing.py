"""From a schedule's row and the events around an instant to what became of it. Pure.

What an event makes of due instants is said by ``verify.fates``, as for the books of ``awa-cron verify``; here it is
asked for one instant, and of the few events that can have decided about it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from awa_cron.errors import InvalidSchedule
from awa_cron.insight.reasons import OF_FATE, Reason
from awa_cron.model import Event, StoredSchedule
from awa_cron.verify.fates import Fate, Fates, Pause, Share
from awa_cron.verify.instants import Instants, instants_of
from awa_cron.verify.readable import unreadable
from awa_cron.verify.state import UNKNOWN, Definition, State, Unknown, instant


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a database holds about an instant of a schedule, read in one snapshot.

    Attributes:
        row: As it is now, None where there is none.
        complete: Whether the log goes back to the first event ever.
        before: Of the events before the first whose clock reaches the instant, the last of each kind.
        window: From that one on, all that change the row otherwise than by fires, up to and with the first by which
            the fires reach the instant.
        leads: Whether somebody leads; None where nobody knows.
    """

    name: str
    at: datetime
    now: datetime
    row: StoredSchedule | None
    complete: bool
    before: tuple[Event, ...]
    window: tuple[Event, ...]
    leads: bool | None

    def event(self, number: int | None) -> Event | None:
        """Return one of the events."""
        return next((each for each in (*self.before, *self.window) if each.id == number), None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """What became of the instant.

    Attributes:
        then: The row at the instant, as far as the log tells.
        share: What decided about it, and about others with it; None while nothing has.
        definition: By which it is due, or is not.
        paused: Since when the schedule was paused when that was decided; None if it was not.
        unreadable: Whether some event could not be read.
    """

    reason: Reason
    then: State
    share: Share | None
    definition: Definition | None
    paused: datetime | None
    unreadable: bool

    @property
    def fire(self) -> datetime | None:
        """The instant whose job stands for this one."""
        fires = () if self.share is None else self.share.event.fires
        if self.share is None or self.reason not in {Reason.COALESCED, Reason.PAUSED_OVER}:
            return None
        return fires[0]

    def known_by_its_job(self) -> Traced:
        """Return that it became a job, whose event is gone."""
        return dataclasses.replace(self, reason=Reason.ENQUEUED)

    def pause(self, at: datetime) -> Pause | None:
        """Return the pause during which it fell due."""
        return None if self.share is None else self.share.pause_of(at)


def traced(evidence: Evidence) -> Traced:
    """Return what became of an instant."""
    state, window = _state_before(evidence), evidence.window
    then = dataclasses.replace(state, set_by=dict(state.set_by))
    fates = Fates()
    share: Share | None = None
    fate: Fate | None = None
    definition: Definition | Unknown = then.definition
    paused: datetime | Unknown | None = None
    faulty = False
    for event in window:
        if unreadable(event) is not None:
            faulty = True
            state.forget(event)
            continue
        _learn_last(state, event)
        for each in list(fates.of(state, event)):
            found = each.fate_of(evidence.at)
            if found is not None:
                share, fate, definition, paused = each, found, state.definition, state.paused
        state.adopt(event)
        if fate not in {None, Fate.REMOVED}:
            break  # after a removal, a clock that has stepped back can bring the instant once more
    again = _pending(evidence) if fate is Fate.REMOVED else None
    if again is not None:
        share, reason = None, again
    else:
        reason = _undecided(evidence, then) if fate is None else OF_FATE[fate]
    row = evidence.row
    if share is None and row is not None and (_of_the_row(reason, evidence) or isinstance(definition, Unknown)):
        definition = (row.cron_expr, row.timezone)
    return Traced(
        reason=reason,
        then=then,
        share=share,
        definition=None if isinstance(definition, Unknown) else definition,
        paused=None if isinstance(paused, Unknown) else paused,
        unreadable=faulty,
    )


def _state_before(evidence: Evidence) -> State:
    """Return the row at the instant, as far as the log tells."""
    begins = evidence.complete
    if not evidence.before and evidence.window:  # the schedule's own log may go back to its beginning
        begins = begins or evidence.window[0].details.get("change") == "inserted"
    state = State(present=False if begins else UNKNOWN, floor_known=begins)
    for event in evidence.before:
        if unreadable(event) is None:
            state.adopt(event)
    row = evidence.row
    defined = any(each.action in {"sync", "remove"} for each in (*evidence.before, *evidence.window))
    if row is not None and not defined:  # its registration is not in the log, and it has not been edited since
        state.present, state.definition = True, (row.cron_expr, row.timezone)
        state.policy, state.anchor = row.missed_fire_policy, row.anchored_at
    return state


def _learn_last(state: State, event: Event) -> None:
    """Where the log begins here, a pass tells how far the schedule had come."""
    if isinstance(state.last, Unknown) and event.action == "atomic_enqueue":
        state.last = instant(event.details.get("expected", UNKNOWN))


def _undecided(evidence: Evidence, then: State) -> Reason:
    """Return why nothing has decided about an instant."""
    if evidence.at > evidence.now:
        return _ahead(evidence)
    return _pending(evidence) or _by_the_log(evidence, then)


def _by_the_log(evidence: Evidence, then: State) -> Reason:
    """Return why an instant that has passed was none to decide about."""
    at, row = evidence.at, evidence.row
    if then.present is False:
        registered = any(each.details.get("change") == "inserted" for each in evidence.window)
        removed = any(each.action == "remove" for each in evidence.before)
        return Reason.NOT_REGISTERED if removed or not registered else Reason.BEFORE_ANCHOR
    if isinstance(then.definition, Unknown) or isinstance(then.anchor, Unknown):
        young = row is not None and row.created_at >= at
        return Reason.BEFORE_ANCHOR if young else Reason.UNKNOWN
    instants = then.instants
    if instants is None:
        return Reason.BROKEN
    if at not in instants:
        return Reason.BEFORE_ANCHOR if _edited_in(evidence, then.definition) else Reason.NOT_A_FIRE
    return Reason.BEFORE_ANCHOR if at <= then.anchor else Reason.UNACCOUNTED


def _ahead(evidence: Evidence) -> Reason:
    row = evidence.row
    if row is None:
        return Reason.NOT_REGISTERED
    if row.broken is not None:
        return Reason.BROKEN
    if evidence.at not in instants_of(row.cron_expr, row.timezone):
        return Reason.NOT_A_FIRE
    return Reason.BEFORE_ANCHOR if evidence.at <= row.anchored_at else Reason.NOT_YET_DUE


def _pending(evidence: Evidence) -> Reason | None:
    """Return why an instant that no pass and no edit has reached waits; None if the row does not have it."""
    at, row = evidence.at, evidence.row
    if row is None:
        return None
    after = counts_after(row)
    if after is not None and at <= after:
        return None
    if row.broken is not None:
        return Reason.BROKEN
    if at not in instants_of(row.cron_expr, row.timezone):
        return None
    if row.paused_at is not None:
        return Reason.PAUSED
    return Reason.NO_LEADER if evidence.leads is False else Reason.WAITING


def _edited_in(evidence: Evidence, then: Definition) -> bool:
    """Tell whether the present definition fires at the instant, and the one of that time did not."""
    row = evidence.row
    if row is None or row.broken is not None or (row.cron_expr, row.timezone) == then:
        return False
    return evidence.at <= row.anchored_at and evidence.at in instants_of(row.cron_expr, row.timezone)


def _of_the_row(reason: Reason, evidence: Evidence) -> bool:
    """Tell whether a reason is about the definition as it is now."""
    if evidence.at > evidence.now:
        return True
    return reason in {Reason.PAUSED, Reason.WAITING, Reason.NO_LEADER, Reason.BROKEN}


def counts_after(row: StoredSchedule) -> datetime | None:
    """Return the instant after which fires of a row count; None for infinite ones, which rows can have by hand."""
    found = [each for each in (row.last_enqueued_at, row.anchored_at) if each is not None]
    return None if any(each.tzinfo is None for each in found) else max(found)


def readable_instants(definition: Definition | None) -> Instants | None:
    """Return the instants of a definition; None where it is unknown or cannot be read."""
    if definition is None:
        return None
    try:
        return instants_of(*definition)
    except InvalidSchedule:
        return None


def first_of(events: Sequence[Event], action: str, change: str | None = None) -> Event | None:
    """Return the first event of a kind."""
    return next((e for e in events if e.action == action and change in {None, e.details.get("change")}), None)
