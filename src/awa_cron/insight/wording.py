"""The sentences of explanations. Pure."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

from awa_cron.insight.reasons import JobFate, Reason, job_fate
from awa_cron.insight.tracing import Evidence, Traced, first_of
from awa_cron.insight.views import JobView
from awa_cron.model import Event, MissedFirePolicy, StoredSchedule
from awa_cron.verify.state import instant
from awa_cron.verify.wording import moment, shown

LONGEST_ERROR = 200


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Leaderless:
    """A time in which nobody led, as far as the log tells.

    Attributes:
        last_action: What the leadership did last before it, None if nothing.
        last_actor: Who did it.
        last_at: When.
        last_sign: When that leader last made a job, if it did.
        elected: Who led then; None if nobody has since.
        elected_at: When that was.
    """

    last_action: str | None
    last_actor: str | None
    last_at: datetime | None
    last_sign: datetime | None
    elected: str | None
    elected_at: datetime | None

    def __str__(self) -> str:
        until = (
            "" if self.elected_at is None else f" until {moment(self.elected_at)}, when {self.elected} was elected"
        )
        if self.last_at is None:
            return f"nobody had led{until}" if until else "nobody has ever led"
        if self.last_action == "lose_leader":
            return (
                f"nobody led from {moment(self.last_at)}, when {self.last_actor} stepped down,{until or ' to now'}"
            )
        sign = self.last_at if self.last_sign is None else max(self.last_at, self.last_sign)
        return f"{self.last_actor} led before, and left no sign after {moment(sign)}; nobody else did{until}"


SAID = {
    Reason.UNACCOUNTED: "it was due, and no event tells what became of it: `awa-cron verify` checks the whole log",
    Reason.UNKNOWN: "the events that would tell have been deleted, or cannot be read",
}


def sentence(evidence: Evidence, traced: Traced, job_id: int | None) -> str:
    """Return the whole answer in words."""
    match traced.reason:
        case Reason.ENQUEUED | Reason.SETTLED | Reason.COALESCED | Reason.PAUSED_OVER:
            said = _made(evidence, traced, job_id)
        case Reason.DROPPED | Reason.REMOVED:
            said = _given_up(traced)
        case Reason.NOT_REGISTERED | Reason.BEFORE_ANCHOR:
            said = _too_early(evidence, traced)
        case Reason.NOT_A_FIRE:
            said = f"{shown(traced.definition)} does not fire then"
        case Reason.NOT_YET_DUE:
            said = f"it is due in {span(evidence.at - evidence.now)}"
        case Reason.UNACCOUNTED | Reason.UNKNOWN:
            said = SAID[traced.reason]
        case _:
            said = _pending(evidence, traced)
    return said


def _made(evidence: Evidence, traced: Traced, job_id: int | None) -> str:
    if traced.share is None:
        return f"it is job {job_id}; the event that made it is gone"
    event = traced.share.event
    match traced.reason:
        case Reason.ENQUEUED:
            late = span(event.clock - evidence.at)
            return f"it is job {job_id}, made at {moment(event.clock)} by {who(event)}, {late} after it was due"
        case Reason.SETTLED:
            return (
                f"it is job {job_id}: {who(event)} edited the schedule at {moment(event.clock)}, and what was due "
                "under the old definition became jobs first"
            )
        case Reason.PAUSED_OVER:
            pause = traced.pause(evidence.at)
            assert pause is not None
            return (
                f"it fell due while the schedule was paused by {who(evidence.event(pause.paused_by))}, from "
                f"{moment(pause.after)} to {moment(pause.until)}; after that {_stands(traced, job_id)}"
            )
        case _:
            came = "edited the schedule" if event.action == "sync" else "came to it"
            return (
                f"{_stands(traced, job_id)}: both were due when {who(event)} {came} at {moment(event.clock)}, and "
                "the policy is coalesce"
            )


def _stands(traced: Traced, job_id: int | None) -> str:
    assert traced.fire is not None
    return f"{moment(traced.fire)}, which is job {job_id}, stands for it"


def _given_up(traced: Traced) -> str:
    assert traced.share is not None
    event = traced.share.event
    if traced.reason is Reason.REMOVED:
        return f"it was due and no job yet when {who(event)} removed the schedule at {moment(event.clock)}"
    dropped = event.details["dropped"]
    more = "" if dropped.get("counted_all", True) else "more than "
    why = "a pass takes no more" if traced.paused is None else f"it had been paused since {moment(traced.paused)}"
    return (
        f"{who(event)} edited the schedule at {moment(event.clock)}, and {more}{dropped.get('count')} due instants "
        f"of the old definition, from {shown(instant(dropped.get('first')))} to "
        f"{shown(instant(dropped.get('last')))}, became no jobs: {why}"
    )


def _too_early(evidence: Evidence, traced: Traced) -> str:
    removed = next((each for each in reversed(evidence.before) if each.action == "remove"), None)
    registered = first_of(evidence.window, "sync", "inserted")
    if traced.reason is Reason.NOT_REGISTERED:
        removed = removed or first_of(evidence.window, "remove")
        gone = (
            "there is no such schedule"
            if removed is None
            else (f"the schedule had been removed at {moment(removed.clock)} by {who(removed)}")
        )
        back = "" if registered is None else f", and was registered again at {moment(registered.clock)}"
        return gone + back
    if traced.then.present is False and registered is not None:
        anchor = instant(registered.details.get("anchored_at"))
        counts = anchor if isinstance(anchor, datetime) else registered.clock
        return (
            f"the schedule was registered at {moment(registered.clock)} by {who(registered)}, and only instants "
            f"after {moment(counts)} count"
        )
    row = evidence.row
    if row is not None and traced.then.definition != (row.cron_expr, row.timezone):
        edit = next((e for e in evidence.window if instant(e.details.get("anchored_at")) == row.anchored_at), None)
        by = "" if edit is None else f" by {who(edit)}"
        did = "registered again" if edit is not None and edit.details.get("change") == "inserted" else "edited"
        return (
            f"{shown((row.cron_expr, row.timezone))} counts only after {moment(row.anchored_at)}, when the "
            f"schedule was {did}{by}; until then it was {shown(traced.then.definition)}, which does not fire then"
        )
    anchored = traced.then.anchor if row is None else row.anchored_at
    return f"only instants after {shown(anchored)} count, when the schedule was registered or last edited"


def _pending(evidence: Evidence, traced: Traced) -> str:
    row, due_for = evidence.row, span(evidence.now - evidence.at)
    match traced.reason:
        case Reason.BROKEN if row is not None and row.broken is not None:
            return f"nobody can say, and nothing comes of it: {row.broken}"
        case Reason.BROKEN:
            return f"the definition of that time, {shown(traced.then.definition)}, cannot be read"
        case Reason.PAUSED if row is not None and row.paused_at is not None:
            by = "" if row.paused_by is None else f" by {row.paused_by}"
            return f"it is due, and the schedule is paused{by} since {moment(row.paused_at)}: {_on_resume(row)}"
        case Reason.NO_LEADER:
            return f"it has been due for {due_for}, and nobody leads"
        case _:
            return f"it has been due for {due_for}, and waits for the leader's next pass"


def further(evidence: Evidence, traced: Traced, *, stuck: bool) -> list[str]:
    """Return what else a reader should know."""
    row, notes = evidence.row, []
    if traced.reason is Reason.NOT_YET_DUE and row is not None:
        if row.paused_at is not None:
            by = "" if row.paused_by is None else f" by {row.paused_by}"
            notes.append(
                f"the schedule is paused{by} since {moment(row.paused_at)}: nothing comes of it while that lasts"
            )
        if evidence.leads is False:
            notes.append("nobody leads now")
    if traced.reason is Reason.NOT_A_FIRE and evidence.at.microsecond:
        notes.append("fires are of whole seconds")
    if traced.reason is Reason.WAITING and stuck:
        notes.append(
            "there is a leader, so its log may say more: the database refuses the jobs, or somebody holds the "
            "schedule's row"
            if evidence.leads
            else "this role cannot see whether anybody leads"
        )
    if traced.unreadable:
        notes.append("an event of that time cannot be read; `awa-cron verify` names it")
    return notes


def _on_resume(row: StoredSchedule) -> str:
    if row.missed_fire_policy == MissedFirePolicy.COALESCE:
        return "on resume, the latest due instant becomes a job and stands for those before it"
    return "on resume, each due instant becomes a job, the oldest first"


def job_words(job: JobView | None, job_id: int) -> str:
    """Return what has become of a job."""
    if job is None:
        return f"job {job_id} is gone from the table, or has lost its label"
    match job_fate(job):
        case JobFate.QUEUE_PAUSED:
            assert job.queue_paused_at is not None
            by = "" if job.queue_paused_by is None else f" by {job.queue_paused_by}"
            said = f"waits: queue {job.queue!r} is paused{by} since {moment(job.queue_paused_at)}"
        case JobFate.WAITING:
            said = f"waits in queue {job.queue!r}, to run from {moment(job.run_at)} on"
        case JobFate.RUNNING:
            said = f"runs, attempt {job.attempt} of {job.max_attempts}, on {job.attempted_by}"
        case JobFate.RETRYING:
            tries = f"{job.attempt} of {job.max_attempts} attempts"
            said = f"has failed {tries}, and is tried again at {moment(job.run_at)}"
        case JobFate.COMPLETED:
            said = f"completed{_when(job)}, attempt {job.attempt}"
        case JobFate.DEAD:
            said = f"is dead{_when(job)}: all {job.attempt} attempts have failed"
        case _:
            said = f"was cancelled{_when(job)}"
    return f"job {job.id} {said}{_last_error(job)}"


def held_up(job: JobView, alike: int, others: int) -> str:
    """Return why a job that could run long since may not have begun.

    Args:
        job: It waits.
        alike: How many of its kind, in its queue, have begun since it could run, among the newest.
        others: How many others have.
    """
    which = f"of kind {job.kind!r} in queue {job.queue!r}"
    if alike:
        return f"{alike} other{'s' * (alike > 1)} {which} began since: it waits its turn, by priority, then age"
    rest = f"{others} other job{'s' * (others != 1)} did" if others else "nor any other of the newest jobs"
    return (
        f"no job {which} has begun since, {rest}: it needs a process with a handler of that kind that serves that "
        "queue and has room, and which processes do, the database does not know"
    )


def _when(job: JobView) -> str:
    return "" if job.finalized_at is None else f" at {moment(job.finalized_at)}"


def _last_error(job: JobView) -> str:
    error = " ".join(str(job.errors[-1].get("error") or "").split()) if job.errors else ""
    cut = error if len(error) <= LONGEST_ERROR else f"{error[:LONGEST_ERROR]}…"
    return f"; last error: {cut}" if cut else ""


def who(event: Event | None) -> str:
    """Return who did something."""
    return "somebody" if event is None or event.actor is None else event.actor


def span(length: timedelta) -> str:
    """Return a length of time in its two largest units."""
    seconds = length.total_seconds()
    if seconds < 60:
        return f"{max(seconds, 0):.3g} s"
    units = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    rest, said = int(seconds), []
    for size, unit in units:
        if rest >= size:
            said.append(f"{rest // size:,} {unit}")
            rest %= size
    return " ".join(said[:2])
