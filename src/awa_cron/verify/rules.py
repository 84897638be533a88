"""One schedule's log, checked event by event: each must be enabled where it stands, by the rules of the spec. Pure.

The automaton is that of ``spec/AwaCron.tla`` without what leaves no event: reads, lost races, the clock, the
leadership. ``spec/AwaCronTrace.tla`` asks TLC the same of a small window. A rule is named as the spec names the
guard, property or action that it comes from.

What cannot be known is not held against anybody: a log may begin in the middle, clocks may step back, and a pass
judges by the clock of its read, which is that of its event only by chance. Ids of one schedule's events are in the
order of its row lock; those of triggers, which lock nothing, are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from awa_cron.model import Event
from awa_cron.verify import choices
from awa_cron.verify.state import UNKNOWN, State, Unknown, instant, known_and_not, later, told
from awa_cron.verify.verdict import Finding
from awa_cron.verify.wording import finding, moment, shown

TRIGGER_OVERTAKES: Final = timedelta(minutes=1)
"""How much later than a removal a trigger may be recorded that read the row before it."""


def broken(state: State, event: Event, pass_limit: int | None) -> Iterator[Finding]:
    """Yield the rules that an event breaks, the root of the trouble first.

    Args:
        state: Of the event's schedule, before it.
        event: The next in the order of ids. Of an action that concerns no row, nothing is said.
        pass_limit: The most fires of one pass, if known.
    """
    match event.action:
        case "sync" if event.details.get("change") == "inserted":
            yield from _inserted(state, event)
        case "sync":
            yield from _edited(state, event, pass_limit)
        case "atomic_enqueue":
            yield from choices.enqueued(state, event, pass_limit)
            yield from _last_after(state, event)
        case "pause":
            yield from _needs_row(state, event)
            if isinstance(state.paused, datetime):
                yield finding(state, "Pause", event, "pauses a schedule that is paused already", "paused")
            yield from _only_pause(state, event)
        case "resume":
            yield from _needs_row(state, event)
            if state.paused is None:
                yield finding(state, "Resume", event, "resumes a schedule that is not paused", "paused")
            yield from _only_pause(state, event)
        case "trigger":
            yield from _triggered(state, event)
        case "remove":
            yield from _removed(state, event)


def _inserted(state: State, event: Event) -> Iterator[Finding]:
    if state.present is True:
        yield finding(state, "Sync", event, "registers a schedule that has a row already", "present")
    if event.fires or event.job_ids:
        yield finding(state, "NoRetroactiveFire", event, "registers a schedule and makes jobs at once")
    if event.last_enqueued_at is not None:
        last = moment(event.last_enqueued_at)
        yield finding(state, "RegisterStartsFresh", event, f"registers a schedule whose last fire is {last}")
    anchor, least = instant(event.details.get("anchored_at", UNKNOWN)), later(event.clock, state.floor)
    assert least is not None
    if isinstance(anchor, datetime) and (anchor < least or (anchor > least and state.floor_known)):
        message = (
            f"anchors a new row at {moment(anchor)}; the clock, or the last fire of its removed rows, is "
            f"{moment(least)}"
        )
        yield finding(state, "NoRetroactiveFire", event, message, "present")


def _edited(state: State, event: Event, pass_limit: int | None) -> Iterator[Finding]:
    change = event.details.get("change")
    redefined = change == "redefined"
    yield from _needs_row(state, event)
    if change not in {"redefined", "updated"}:
        yield finding(state, "Sync", event, f"says change={change!r}, which no sync does")
    before, after = told(event.details, "from"), told(event.details, "")
    if not isinstance(before, Unknown) and known_and_not(state.definition, before):
        message = f"edits {shown(before)}, but the log stands at {shown(state.definition)}"
        yield finding(state, "DefinedAsRead", event, message, "definition")
    if not isinstance(before, Unknown) and (before == after) is redefined:
        message = "edits a definition into itself" if redefined else "changes a definition without an edit"
        yield finding(state, "Sync", event, message, "definition")
    anchor = instant(event.details.get("anchored_at", UNKNOWN))
    if isinstance(state.anchor, datetime):
        wanted = max(event.clock, state.anchor) if redefined else state.anchor
        if known_and_not(anchor, wanted):
            message = f"anchors the row at {shown(anchor)}; it has to be {moment(wanted)}"
            yield finding(state, "NoRetroactiveFire", event, message, "anchor")
    if redefined:
        yield from choices.settled(state, event, pass_limit)
    elif event.fires or event.job_ids:
        yield finding(state, "Sync", event, "makes jobs though the definition stays")
    yield from _last_after(state, event)


def _only_pause(state: State, event: Event) -> Iterator[Finding]:
    if event.fires or event.job_ids:
        yield finding(state, "PauseTouchesOnlyPause", event, "makes jobs")
    yield from _last_after(state, event, "PauseTouchesOnlyPause")


def _triggered(state: State, event: Event) -> Iterator[Finding]:
    if event.fires or len(event.job_ids) != 1:
        message = f"has {len(event.fires)} fires and {len(event.job_ids)} jobs; a trigger makes one, of no fire"
        yield finding(state, "TriggerLeavesSchedule", event, message)
    overtook = state.removed_at is not None and event.recorded_at - state.removed_at <= TRIGGER_OVERTAKES
    if state.present is False and not overtook:
        yield finding(state, "TriggerLeavesSchedule", event, "triggers a schedule that has no row", "present")


def _removed(state: State, event: Event) -> Iterator[Finding]:
    yield from _needs_row(state, event)
    if event.fires or event.job_ids:
        yield finding(state, "RemoveLeavesJobs", event, "makes jobs")
    definition = told(event.details, "")
    if not isinstance(definition, Unknown) and known_and_not(state.definition, definition):
        message = f"removes {shown(definition)}, but the log stands at {shown(state.definition)}"
        yield finding(state, "Remove", event, message, "definition")
    yield from _last_after(state, event)


def _needs_row(state: State, event: Event) -> Iterator[Finding]:
    if state.present is False:
        rule = event.action.capitalize()
        yield finding(state, rule, event, "is of a schedule that has no row by the log", "present")


def _last_after(state: State, event: Event, rule: str = "MarkIffJob") -> Iterator[Finding]:
    """Check that ``last_enqueued_at`` moves with the fires and to the newest of them, or not at all."""
    wanted = event.fires[-1] if event.fires else state.last
    if known_and_not(wanted, event.last_enqueued_at):
        message = f"leaves last_enqueued_at at {shown(event.last_enqueued_at)}; it has to be {shown(wanted)}"
        yield finding(state, rule, event, message, "last")
