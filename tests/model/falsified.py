"""Ways in which the log of a schedule is falsified, and the rules that are broken then."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from awa_cron.model import Event, ScheduleState
from awa_cron.verify.instants import instants_of
from awa_cron.verify.state import instant
from tests.model.logs import EPOCH, EXPRESSIONS, PASS_LIMIT, Recorded

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)

Falsify = Callable[[Recorded, int], Recorded | None]


@dataclasses.dataclass(frozen=True)
class Falsification:
    """A way to falsify a log.

    Attributes:
        rules: The first rule that is broken is one of these.
        invisible: Why TLC cannot see it, if it cannot.
    """

    name: str
    rules: frozenset[str]
    falsify: Falsify
    invisible: str | None = None

    def everywhere(self, original: Recorded) -> Iterator[Recorded]:
        """Yield the log falsified in each place where it can be."""
        for place in range(len(original.log) + 1):
            falsified = self.falsify(original, place)
            if falsified is not None and falsified != original:
                yield falsified


def changed(test: Callable[[Event], bool], change: Callable[[Recorded, int, Event], Event | None]) -> Falsify:
    """Change one event that passes a test."""

    def falsify(original: Recorded, place: int) -> Recorded | None:
        if place >= len(original.log) or not test(original.log[place]):
            return None
        event = change(original, place, original.log[place])
        if event is None:
            return None
        return replace(original, log=(*original.log[:place], event, *original.log[place + 1 :]))

    return falsify


def dropped(test: Callable[[Event], bool]) -> Falsify:
    def falsify(original: Recorded, place: int) -> Recorded | None:
        if place >= len(original.log) or not test(original.log[place]):
            return None
        return replace(original, log=original.log[:place] + original.log[place + 1 :])

    return falsify


def doubled(test: Callable[[Event], bool]) -> Falsify:
    def falsify(original: Recorded, place: int) -> Recorded | None:
        if place >= len(original.log) or not test(original.log[place]):
            return None
        again = replace(original.log[place], id=original.log[place].id + 10**6)
        return replace(original, log=(*original.log[: place + 1], again, *original.log[place + 1 :]))

    return falsify


def swapped(first: Callable[[Event], bool], second: Callable[[Event], bool]) -> Falsify:
    def falsify(original: Recorded, place: int) -> Recorded | None:
        pair = original.log[place : place + 2]
        if len(pair) < 2 or not first(pair[0]) or not second(pair[1]):
            return None
        return replace(original, log=(*original.log[:place], pair[1], pair[0], *original.log[place + 2 :]))

    return falsify


def at_end(change: Callable[[ScheduleState], ScheduleState | None]) -> Falsify:
    def falsify(original: Recorded, place: int) -> Recorded | None:
        if place < len(original.log) or original.row is None:
            return None
        return replace(original, row=change(original.row))

    return falsify


def is_(action: str, change: str | None = None) -> Callable[[Event], bool]:
    return lambda event: event.action == action and (change is None or event.details.get("change") == change)


def settles(event: Event) -> bool:
    return event.details.get("change") == "redefined" and bool(event.fires)


def last_before(original: Recorded, place: int) -> datetime | None:
    """Return the last fire before an event, as the log tells it."""
    return next((each.last_enqueued_at for each in reversed(original.log[:place]) if each.action != "remove"), None)


def with_details(event: Event, **details: Any) -> Event:
    return replace(event, details=event.details | details)


def refired(event: Event, fires: Sequence[datetime], **details: Any) -> Event:
    """Let an event have made other fires, consistently."""
    jobs = tuple(range(10**9, 10**9 + len(fires)))
    return with_details(replace(event, fires=tuple(fires), job_ids=jobs, last_enqueued_at=fires[-1]), **details)


def definition_before(original: Recorded, place: int) -> tuple[str, str]:
    sync = next(each for each in reversed(original.log[:place]) if each.action == "sync")
    return sync.details["cron_expr"], sync.details["timezone"]


def policy_before(original: Recorded, place: int) -> str:
    sync = next(each for each in reversed(original.log[:place]) if each.action == "sync")
    return str(sync.details["missed_fire_policy"])


def anchor_before(original: Recorded, place: int) -> datetime:
    sync = next(each for each in reversed(original.log[:place]) if each.action == "sync")
    return datetime.fromisoformat(sync.details["anchored_at"])


def an_earlier_one(original: Recorded, place: int, event: Event) -> Event | None:
    """Let a coalescing pass take the instant before the latest."""
    if policy_before(original, place) != "coalesce":
        return None
    after = max(filter(None, (last_before(original, place), anchor_before(original, place))))
    earlier = instants_of(*definition_before(original, place)).latest(after, event.fires[0] - SECOND)
    return None if earlier is None else refired(event, [earlier])


def two_of_a_coalescing_pass(original: Recorded, place: int, event: Event) -> Event | None:
    earlier = an_earlier_one(original, place, event)
    return None if earlier is None else refired(event, [*earlier.fires, *event.fires])


def the_second_alone(original: Recorded, place: int, event: Event) -> Event | None:
    if policy_before(original, place) != "catch_up" or len(event.fires) < 2:
        return None
    return refired(event, event.fires[1:])


def the_first_alone(original: Recorded, place: int, event: Event) -> Event | None:
    if policy_before(original, place) != "catch_up" or len(event.fires) < 2:
        return None
    return refired(event, event.fires[:1])


def one_too_many(original: Recorded, place: int, event: Event) -> Event | None:
    if policy_before(original, place) != "catch_up" or len(event.fires) < PASS_LIMIT:
        return None
    following = instants_of(*definition_before(original, place)).first_after(event.fires[-1])
    if following is None or following > min(event.clock, datetime.fromisoformat(event.details["read_at"])):
        return None
    return refired(event, [*event.fires, following])


def of_another_definition(original: Recorded, place: int, event: Event) -> Event | None:
    own = instants_of(*definition_before(original, place))
    for other in EXPRESSIONS:
        fire = instants_of(other, "UTC").latest(event.fires[0] - MINUTE, event.fires[0] + 30 * SECOND)
        if fire is not None and fire not in own:
            return refired(replace(event, clock=max(event.clock, fire)), [fire], read_at=fire.isoformat())
    return None


def not_settled(original: Recorded, place: int, event: Event) -> Event | None:
    return replace(event, fires=(), job_ids=(), last_enqueued_at=last_before(original, place))


def paused_before(test: Callable[[Event], bool]) -> Falsify:
    """Slip in a pause just before an event."""

    def falsify(original: Recorded, place: int) -> Recorded | None:
        if place >= len(original.log) or not test(original.log[place]):
            return None
        event = original.log[place]
        pause = replace(
            event,
            id=event.id - 1,
            action="pause",
            fires=(),
            job_ids=(),
            details={},
            last_enqueued_at=last_before(original, place),
        )
        return replace(original, log=(*original.log[:place], pause, *original.log[place:]))

    return falsify


def triggered_after_removal(original: Recorded, place: int) -> Recorded | None:
    if place >= len(original.log) or original.log[place].action != "remove":
        return None
    event = original.log[place]
    late = replace(
        event,
        id=event.id + 10**6,
        action="trigger",
        job_ids=(10**9,),
        details={},
        recorded_at=event.recorded_at + timedelta(hours=1),
    )
    return replace(original, log=(*original.log[: place + 1], late, *original.log[place + 1 :]))


def moved_last(original: Recorded, place: int, event: Event) -> Event:
    return replace(event, last_enqueued_at=(event.last_enqueued_at or EPOCH) + MINUTE)


def earlier_anchor(original: Recorded, place: int, event: Event) -> Event:
    anchor = datetime.fromisoformat(event.details["anchored_at"])
    return with_details(event, anchored_at=(anchor - MINUTE).isoformat())


def late_expected(original: Recorded, place: int, event: Event) -> Event:
    expected = instant(event.details["expected"]) or EPOCH
    return with_details(event, expected=(expected - MINUTE).isoformat())


def other_before(original: Recorded, place: int, event: Event) -> Event:
    other = next(each for each in EXPRESSIONS if each != event.details["from"]["cron_expr"])
    return with_details(event, **{"from": event.details["from"] | {"cron_expr": other}})


def miscounted(original: Recorded, place: int, event: Event) -> Event | None:
    given_up = event.details.get("dropped")
    if given_up is None:
        return None
    return with_details(event, dropped=given_up | {"count": given_up["count"] + 1})


enqueue, pause, resume = is_("atomic_enqueue"), is_("pause"), is_("resume")
trigger, remove = is_("trigger"), is_("remove")
inserted, redefined, updated = is_("sync", "inserted"), is_("sync", "redefined"), is_("sync", "updated")


def rules(text: str) -> frozenset[str]:
    return frozenset(text.split())


ANY_AFTERWARDS = (
    "LastAsRead MarkIffJob FiresFitDefinition CoalesceOnlyLatest CatchUpContiguous CaughtUp EditSettles "
    "AfterAnchor PauseTouchesOnlyPause RowAsLogged DefinedAsRead NoRetroactiveFire Remove"
)

FALSIFICATIONS = [
    Falsification("an enqueue is dropped", rules(ANY_AFTERWARDS), dropped(enqueue)),
    Falsification("an enqueue is doubled", rules("LastAsRead"), doubled(enqueue)),
    Falsification("two enqueues are swapped", rules("LastAsRead"), swapped(enqueue, enqueue)),
    Falsification("a pause is dropped", rules("Resume RowAsLogged EditSettles"), dropped(pause)),
    Falsification(
        "a resume is dropped", rules("Unpaused Pause RowAsLogged EditSettles PausedBlocksEnqueue"), dropped(resume)
    ),
    Falsification("a pause is doubled", rules("Pause"), doubled(pause)),
    Falsification("a resume is doubled", rules("Resume"), doubled(resume)),
    Falsification("an enqueue comes before the resume", rules("Unpaused"), swapped(resume, enqueue)),
    Falsification("an enqueue comes after the pause", rules("PauseTouchesOnlyPause"), swapped(enqueue, pause)),
    Falsification("a pause is slipped in before an enqueue", rules("Unpaused Pause"), paused_before(enqueue)),
    Falsification(
        "an enqueue comes before its instant",
        rules("AlreadyDue"),
        changed(enqueue, lambda _, __, event: replace(event, clock=event.fires[-1] - SECOND)),
    ),
    Falsification(
        "a pass has read before the instant",
        rules("ReadCronState"),
        changed(enqueue, lambda _, __, event: with_details(event, read_at=(event.fires[-1] - SECOND).isoformat())),
    ),
    Falsification(
        "a wrong instant",
        rules("FiresFitDefinition"),
        changed(
            enqueue,
            lambda _, __, event: refired(
                replace(event, clock=event.clock + MINUTE),
                [event.fires[-1] + 7 * SECOND],
                read_at=(event.fires[-1] + 7 * SECOND).isoformat(),
            ),
        ),
    ),
    Falsification(
        "an instant of another definition",
        rules("FiresFitDefinition Advances AfterAnchor"),
        changed(enqueue, of_another_definition),
    ),
    Falsification(
        "catching up leaves an instant out", rules("CatchUpContiguous"), changed(enqueue, the_second_alone)
    ),
    Falsification("catching up stops early", rules("CaughtUp"), changed(enqueue, the_first_alone)),
    Falsification("catching up goes beyond the limit", rules("PassBounded"), changed(enqueue, one_too_many)),
    Falsification(
        "coalescing takes an earlier instant", rules("CoalesceOnlyLatest"), changed(enqueue, an_earlier_one)
    ),
    Falsification("coalescing takes two", rules("CoalesceOnlyLatest"), changed(enqueue, two_of_a_coalescing_pass)),
    Falsification("an enqueue leaves a wrong last fire", rules("MarkIffJob"), changed(enqueue, moved_last)),
    Falsification("an enqueue expected something else", rules("LastAsRead"), changed(enqueue, late_expected)),
    Falsification(
        "a job is missing",
        rules("MarkIffJob"),
        changed(enqueue, lambda _, __, event: replace(event, job_ids=event.job_ids[1:])),
    ),
    Falsification(
        "a job is too many",
        rules("MarkIffJob"),
        changed(enqueue, lambda _, __, event: replace(event, job_ids=(*event.job_ids, 10**9))),
    ),
    Falsification(
        "the anchor of an edit lies back", rules("NoRetroactiveFire"), changed(redefined, earlier_anchor)
    ),
    Falsification(
        "the anchor of a new row lies back", rules("NoRetroactiveFire"), changed(inserted, earlier_anchor)
    ),
    Falsification("an update moves the anchor", rules("NoRetroactiveFire"), changed(updated, earlier_anchor)),
    Falsification("an edit settles nothing", rules("EditSettles"), changed(settles, not_settled)),
    Falsification(
        "an edit settles something else",
        rules("EditSettles"),
        changed(settles, lambda _, __, event: refired(event, [event.fires[-1] + 7 * SECOND])),
    ),
    Falsification("an edit settles while paused", rules("PausedBlocksEnqueue"), paused_before(settles)),
    Falsification("an edit is dropped", rules(ANY_AFTERWARDS), dropped(redefined)),
    Falsification("an edit edits something else", rules("DefinedAsRead"), changed(redefined, other_before)),
    Falsification(
        "an edit drops another number",
        rules("EditSettles"),
        changed(redefined, miscounted),
        invisible="the spec does not count what an edit gives up",
    ),
    Falsification(
        "a registration is dropped",
        rules("MarkIffJob Pause Resume Remove Sync TriggerLeavesSchedule RowAsLogged"),
        dropped(inserted),
    ),
    Falsification(
        "a new row has a last fire",
        rules("RegisterStartsFresh"),
        changed(inserted, lambda _, __, event: replace(event, last_enqueued_at=event.clock)),
    ),
    Falsification("a removal is dropped", rules("Sync RowAsLogged"), dropped(remove)),
    Falsification("a removal is doubled", rules("Remove"), doubled(remove)),
    Falsification("an enqueue comes after the removal", rules("MarkIffJob"), swapped(enqueue, remove)),
    Falsification(
        "a trigger comes long after the removal", rules("TriggerLeavesSchedule"), triggered_after_removal
    ),
    Falsification(
        "a trigger makes no job",
        rules("TriggerLeavesSchedule"),
        changed(trigger, lambda _, __, event: replace(event, job_ids=())),
    ),
    Falsification("a pause moves the last fire", rules("PauseTouchesOnlyPause"), changed(pause, moved_last)),
    Falsification("a resume moves the last fire", rules("PauseTouchesOnlyPause"), changed(resume, moved_last)),
    Falsification("a removal tells another last fire", rules("MarkIffJob"), changed(remove, moved_last)),
    Falsification(
        "the row's last fire is moved",
        rules("RowAsLogged"),
        at_end(lambda row: replace(row, last_enqueued_at=(row.last_enqueued_at or EPOCH) + MINUTE)),
    ),
    Falsification(
        "the row's anchor is moved",
        rules("RowAsLogged"),
        at_end(lambda row: replace(row, anchored_at=row.anchored_at + MINUTE)),
    ),
    Falsification(
        "the row's pause is turned",
        rules("RowAsLogged"),
        at_end(lambda row: replace(row, paused_at=None if row.paused_at else EPOCH)),
    ),
    Falsification("the row is gone", rules("RowAsLogged"), at_end(lambda _: None)),
]
