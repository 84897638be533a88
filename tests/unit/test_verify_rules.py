"""The rules by which one schedule's log is judged. Instants are minutes of one day."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from awa_cron.model import Event, ScheduleState
from awa_cron.verify.checker import Checker
from awa_cron.verify.fates import PAUSES_KEPT
from awa_cron.verify.verdict import Account, Finding

START = datetime(2026, 1, 1, tzinfo=UTC)
EACH, TENS, BROKEN = ("* * * * *", "UTC"), ("*/10 * * * *", "UTC"), ("61 * * * *", "UTC")


def at(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def text(minute: float | None) -> str | None:
    return None if minute is None else at(minute).isoformat()


class Log:
    """Writes the events of one schedule, right ones unless told otherwise."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._jobs = 0

    def add(
        self,
        action: str,
        clock: float,
        *,
        fires: Sequence[float] = (),
        last: float | None = None,
        jobs: int | None = None,
        recorded: float | None = None,
        **details: Any,
    ) -> None:
        made = len(fires) if jobs is None else jobs
        self.events.append(
            Event(
                id=len(self.events) + 1,
                recorded_at=at(clock if recorded is None else recorded),
                clock=at(clock),
                action=action,
                name="s",
                actor=None,
                fires=tuple(map(at, fires)),
                job_ids=tuple(range(self._jobs + 1, self._jobs + made + 1)),
                last_enqueued_at=None if last is None else at(last),
                details=details,
            )
        )
        self._jobs += made

    def inserted(
        self,
        clock: float,
        definition: tuple[str, str] = EACH,
        *,
        policy: str = "coalesce",
        anchor: float | None = None,
        **more: Any,
    ) -> None:
        anchored_at = text(clock if anchor is None else anchor)
        self.add(
            "sync", clock, **(self._told("inserted", definition, policy) | {"anchored_at": anchored_at} | more)
        )

    def redefined(
        self,
        clock: float,
        before: tuple[str, str],
        after: tuple[str, str],
        *,
        anchor: float | None = None,
        policy: str = "coalesce",
        **more: Any,
    ) -> None:
        details = self._told("redefined", after, policy) | {
            "from": {"cron_expr": before[0], "timezone": before[1]},
            "anchored_at": text(clock if anchor is None else anchor),
        }
        self.add("sync", clock, **(details | more))

    def updated(self, clock: float, definition: tuple[str, str] = EACH, *, anchor: float, **more: Any) -> None:
        details = self._told("updated", definition, more.pop("policy", "coalesce")) | {
            "from": {"cron_expr": definition[0], "timezone": definition[1]},
            "anchored_at": text(anchor),
        }
        self.add("sync", clock, **(details | more))

    def enqueue(
        self, clock: float, *fires: float, expected: float | None, read: float | None = None, **more: Any
    ) -> None:
        more.setdefault("last", fires[-1] if fires else None)
        self.add("atomic_enqueue", clock, fires=fires, expected=text(expected), read_at=text(read), **more)

    @staticmethod
    def _told(change: str, definition: tuple[str, str], policy: str) -> dict[str, Any]:
        return {
            "change": change,
            "cron_expr": definition[0],
            "timezone": definition[1],
            "missed_fire_policy": policy,
        }


def row(
    definition: tuple[str, str] = EACH,
    *,
    last: float | None = None,
    anchor: float = 0,
    paused: float | None = None,
    policy: str = "coalesce",
) -> ScheduleState:
    return ScheduleState(
        name="s",
        cron_expr=definition[0],
        timezone=definition[1],
        missed_fire_policy=policy,
        last_enqueued_at=None if last is None else at(last),
        anchored_at=at(anchor),
        paused_at=None if paused is None else at(paused),
    )


def verdict(
    log: Log,
    stored: ScheduleState | None,
    now: float,
    *,
    from_start: bool = True,
    grace_s: float = 60,
    pass_limit: int | None = None,
) -> tuple[list[Finding], Account]:
    checker = Checker("s", from_start=from_start, pass_limit=pass_limit)
    found = [finding for event in log.events for finding in checker.feed(event)]
    at_end, account = checker.finish(stored, at(now), grace=timedelta(seconds=grace_s))
    return found + at_end, account


def rules_broken(log: Log, **options: Any) -> list[str]:
    """Return the rules that the last event breaks; those before it must be right."""
    checker = Checker("s", from_start=options.pop("from_start", True), **options)
    *before, last = log.events
    for event in before:
        assert [] == checker.feed(event)
    return [finding.rule for finding in checker.feed(last)]


def test_a_quiet_life_has_no_finding_and_every_instant_is_accounted_for() -> None:
    log = Log()
    log.inserted(0.5)
    log.enqueue(1.1, 1, expected=None, read=1.05)
    log.enqueue(4.1, 4, expected=1, read=4.05)  # 2 and 3 passed while nobody led
    log.add("pause", 4.5, last=4)
    log.add("trigger", 5.5, jobs=1, last=4)
    log.add("resume", 6.5, last=4)
    log.enqueue(8.1, 8, expected=4, read=8.05)  # 5 and 6 were paused over, 7 is coalesced
    log.redefined(10.5, EACH, TENS, fires=[10], last=10)  # 9 is coalesced
    log.add("pause", 11, last=10)
    log.redefined(
        31,
        TENS,
        EACH,
        last=10,
        dropped={"count": 2, "counted_all": True, "first": text(20), "last": text(30)},
    )
    log.add("resume", 31.5, last=10)
    log.enqueue(33, 33, expected=10, read=33)
    log.add("remove", 34.5, last=33, cron_expr=EACH[0], timezone=EACH[1])
    found, account = verdict(log, None, 40)
    assert [] == found
    shown = {name: getattr(account, name) for name in ("enqueued", "settled", "coalesced", "paused", "dropped")}
    assert {"enqueued": 4, "settled": 1, "coalesced": 5, "paused": 2, "dropped": 2} == shown
    assert (1, 1, 0, 0) == (account.removed, account.triggered, account.held, account.pending)
    assert at(0.5) == account.since


def test_catching_up_is_counted_instant_by_instant() -> None:
    log = Log()
    log.inserted(0, policy="catch_up")
    log.enqueue(5, 1, 2, expected=None, read=5)
    log.enqueue(5, 3, 4, expected=2, read=5)
    found, account = verdict(log, row(last=4, policy="catch_up"), 5.5, pass_limit=2)
    assert ([], 4, 0, 1) == (found, account.enqueued, account.coalesced, account.pending)


@pytest.mark.parametrize(
    ("rule", "more"),
    [
        ("LastAsRead", {"expected": 1}),
        ("AlreadyDue", {"clock": 2.9}),
        ("ReadCronState", {"read": 2.9}),
        ("CoalesceOnlyLatest", {"read": 4.0}),
        ("MarkIffJob", {"last": 2}),
        ("MarkIffJob", {"jobs": 2}),
        ("MarkIffJob", {"jobs": 0}),
    ],
)
def test_an_enqueue_breaks_a_rule(rule: str, more: dict[str, Any]) -> None:
    log = Log()
    log.inserted(0)
    log.enqueue(2, 2, expected=None)
    log.enqueue(more.pop("clock", 4), 3, expected=more.pop("expected", 2), **more)
    assert [rule] == rules_broken(log)


def test_fires_that_do_not_fit() -> None:
    cases: list[tuple[list[str], list[float]]] = [
        ([], [20]),
        (["FiresFitDefinition"], [15]),
        (["FiresFitDefinition"], [20.5]),
        (["Advances"], [10]),
        (["CoalesceOnlyLatest"], [20, 30]),
        (["FiresAdvance", "MarkIffJob"], [30, 20]),
        (["MarkIffJob"], []),
    ]
    for rules, fires in cases:
        log = Log()
        log.inserted(0, TENS)
        log.enqueue(10, 10, expected=None)
        log.enqueue(40, *fires, expected=10, last=max(fires, default=10))
        assert set(rules) <= set(rules_broken(log)), fires
        assert bool(rules) == bool(rules_broken(log)), fires


def test_a_catch_up_schedule_leaves_nothing_out_and_keeps_to_the_limit() -> None:
    for rule, fires in (("CatchUpContiguous", [2]), ("CatchUpContiguous", [1, 3]), ("PassBounded", [1, 2, 3])):
        log = Log()
        log.inserted(0, policy="catch_up")
        log.enqueue(5, *fires, expected=None, read=5)
        assert [rule] == rules_broken(log, pass_limit=2)


def test_nothing_fires_while_paused() -> None:
    log = Log()
    log.inserted(0)
    log.add("pause", 0.5)
    log.enqueue(1, 1, expected=None, read=1)
    [finding] = verdict(log, row(last=1), 1.5)[0]
    assert ("Unpaused", (2, 3)) == (finding.rule, finding.events)


def test_nothing_fires_before_the_anchor_or_below_the_floor() -> None:
    log = Log()
    log.inserted(0)
    log.enqueue(5, 5, expected=None, read=5)
    log.add("remove", 6, last=5, cron_expr=EACH[0], timezone=EACH[1])
    log.inserted(3, anchor=5)  # the clock has stepped back
    log.enqueue(5.5, 5, expected=None, read=5.5)
    assert {"AfterAnchor", "FiresAdvance"} == set(rules_broken(log))
    log.events.pop()
    log.enqueue(6.5, 6, expected=None, read=6.5)
    assert [] == rules_broken(log)


def test_a_new_row_is_anchored_at_the_clock_or_the_floor() -> None:
    for anchor in (2.0, 4.0, 6.0):
        log = Log()
        log.inserted(0)
        log.enqueue(5, 5, expected=None, read=5)
        log.add("remove", 6, last=5, cron_expr=EACH[0], timezone=EACH[1])
        log.inserted(3, anchor=anchor)
        assert ["NoRetroactiveFire"] == rules_broken(log)


def test_a_new_row_starts_fresh() -> None:
    log = Log()
    log.inserted(0, last=0)
    assert ["RegisterStartsFresh"] == rules_broken(log)
    log = Log()
    log.inserted(0, fires=[0])
    assert "NoRetroactiveFire" in rules_broken(log)
    log = Log()
    log.inserted(0)
    log.inserted(1)
    assert ["Sync"] == rules_broken(log)


def test_an_edit_settles_what_was_due() -> None:
    dropped = {"count": 1, "counted_all": True, "first": text(3), "last": text(3)}
    right: dict[str, dict[str, Any]] = {
        "coalesce": {"fires": [3], "last": 3},
        "catch_up": {"fires": [1, 2], "last": 2, "dropped": dropped},
    }
    wrong: dict[str, list[dict[str, Any]]] = {
        "coalesce": [
            {},
            {"fires": [2], "last": 2},
            {"fires": [2, 3], "last": 3},
            right["coalesce"] | {"dropped": dropped},
        ],
        "catch_up": [
            {},
            {"fires": [1, 2], "last": 2},
            {"fires": [1], "last": 1, "dropped": dropped},
            {"fires": [2, 3], "last": 3},
            right["catch_up"] | {"dropped": dropped | {"count": 2}},
            {"fires": [1, 2, 3], "last": 3},
        ],
    }
    for policy, more in right.items():
        cases = [(more, set[str]()), *((each, {"EditSettles"}) for each in wrong[policy])]
        for case, rules in cases:
            log = Log()
            log.inserted(0, policy=policy)
            log.redefined(3.5, EACH, TENS, **case)
            assert rules == set(rules_broken(log, pass_limit=2)), (policy, case)


def test_an_edit_while_paused_makes_no_job() -> None:
    dropped = {"count": 3, "counted_all": True, "first": text(1), "last": text(3)}
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({"dropped": dropped}, set()),
        ({}, {"EditSettles"}),
        ({"fires": [3], "last": 3}, {"PausedBlocksEnqueue"}),
    ]
    for case, rules in cases:
        log = Log()
        log.inserted(0)
        log.add("pause", 0.5)
        log.redefined(3.5, EACH, TENS, **case)
        assert rules == set(rules_broken(log))


def test_an_edit_moves_the_anchor_to_the_clock_and_never_back() -> None:
    for clock, anchor, right in (
        (5.5, 5.5, True),
        (5.5, 0, False),
        (5.5, 6, False),
        (-1, 0, True),
        (-1, -1, False),
    ):
        log = Log()
        log.inserted(0, TENS)
        log.redefined(clock, TENS, EACH, anchor=anchor)
        assert ([] if right else ["NoRetroactiveFire"]) == rules_broken(log), (clock, anchor)


def test_an_edit_of_something_else_is_none() -> None:
    for more, rules in (
        ({}, []),
        ({"anchor": 1}, ["NoRetroactiveFire"]),
        ({"last": 1}, ["MarkIffJob"]),
        ({"fires": [1], "last": 1}, ["Sync"]),
        ({"definition": TENS}, ["DefinedAsRead"]),
    ):
        log = Log()
        log.inserted(0)
        log.updated(2, **({"anchor": 0} | more))
        assert rules == rules_broken(log), more
    log = Log()
    log.inserted(0)
    log.redefined(0.5, EACH, EACH)
    assert ["Sync"] == rules_broken(log)


def test_an_unreadable_definition_settles_nothing() -> None:
    for definition, rules in ((BROKEN, []), (EACH, ["EditSettles"])):
        log = Log()
        log.inserted(0, definition)
        log.redefined(3.5, definition, TENS, dropped={"unreadable": "it says so"})
        assert rules == rules_broken(log)
    log = Log()
    log.inserted(0, BROKEN)
    log.enqueue(1, 1, expected=None)
    assert ["FiresFitDefinition"] == rules_broken(log)


def test_pauses_alternate_and_touch_nothing_else() -> None:
    for actions, rules in (
        (["pause", "resume"], []),
        (["resume"], ["Resume"]),
        (["pause", "pause"], ["Pause"]),
        (["pause", "resume", "resume"], ["Resume"]),
    ):
        log = Log()
        log.inserted(0)
        for action in actions:
            log.add(action, 1)
        assert rules == rules_broken(log)
    log = Log()
    log.inserted(0)
    log.add("pause", 1, last=1)
    assert ["PauseTouchesOnlyPause"] == rules_broken(log)


def test_what_has_no_row_can_only_be_registered() -> None:
    for action, rule in (("pause", "Pause"), ("resume", "Resume"), ("remove", "Remove")):
        log = Log()
        log.add(action, 1)
        assert rule in rules_broken(log)
    log = Log()
    log.enqueue(1, 1, expected=None)
    assert ["MarkIffJob"] == rules_broken(log)


def test_a_trigger_may_be_recorded_a_moment_after_the_removal_that_it_overtook() -> None:
    for recorded, rules in ((2.5, []), (4, ["TriggerLeavesSchedule"])):
        log = Log()
        log.inserted(0)
        log.add("remove", 2, cron_expr=EACH[0], timezone=EACH[1])
        log.add("trigger", 1.9, jobs=1, recorded=recorded)
        assert rules == rules_broken(log)


def test_a_removal_tells_what_it_removed() -> None:
    log = Log()
    log.inserted(0)
    log.add("remove", 2, cron_expr=TENS[0], timezone=TENS[1])
    assert ["Remove"] == rules_broken(log)


def test_a_clock_that_steps_back_is_nobodys_fault() -> None:
    log = Log()
    log.inserted(10)
    log.enqueue(12.5, 12, expected=None, read=12.1)
    log.add("pause", 3, last=12)
    log.add("resume", 2, last=12)
    log.enqueue(13.5, 13, expected=12, read=13.1)
    log.redefined(4, EACH, TENS, anchor=10, last=13)
    found, account = verdict(log, row(TENS, last=13, anchor=10), 5)
    assert ([], 0) == (found, account.pending)


def test_a_log_that_begins_in_the_middle_raises_no_alarm() -> None:
    log = Log()
    log.inserted(0, policy="catch_up")
    log.enqueue(5, 1, 2, expected=None, read=5)
    log.add("pause", 6, last=2)
    log.add("trigger", 6, jobs=1, last=2)
    log.add("resume", 7, last=2)
    log.enqueue(8, 3, 4, 5, 6, 7, 8, expected=2, read=8)
    log.add("remove", 9, last=8, cron_expr=EACH[0], timezone=EACH[1])
    log.inserted(4, anchor=8)
    log.enqueue(9, 9, expected=None, read=9)
    log.redefined(11.5, EACH, TENS, fires=[11], last=11)
    end = row(TENS, last=11, anchor=11.5)
    for begin in range(len(log.events)):
        part = Log()
        part.events = log.events[begin:]
        assert [] == verdict(part, end, 12, from_start=begin == 0)[0], begin


def test_the_row_has_to_be_where_the_log_ends() -> None:
    log = Log()
    log.inserted(0)
    log.enqueue(1, 1, expected=None, read=1)
    right = row(last=1)
    assert [] == verdict(log, right, 1.5)[0]
    for stored in (
        None,
        row(last=0),
        row(last=1, anchor=1),
        row(TENS, last=1),
        row(last=1, paused=1),
        row(last=1, policy="catch_up"),
    ):
        assert ["RowAsLogged"] == [each.rule for each in verdict(log, stored, 1.5)[0]]
    log.add("remove", 1.2, last=1, cron_expr=EACH[0], timezone=EACH[1])
    assert ["RowAsLogged"] == [each.rule for each in verdict(log, right, 1.5)[0]]
    assert ["RowAsLogged"] == [each.rule for each in verdict(Log(), right, 1.5)[0]]
    assert [] == verdict(Log(), right, 1.5, from_start=False)[0]


def test_what_is_due_for_too_long_is_lost_or_late() -> None:
    log = Log()
    log.inserted(0)
    log.enqueue(1, 1, expected=None, read=1)
    for now, rules, pending in ((1.9, [], 0), (2.9, [], 1), (3.1, ["CoalescedLatestFireEventuallyEnqueued"], 2)):
        found, account = verdict(log, row(last=1), now)
        assert (rules, pending) == ([each.rule for each in found], account.pending)
    log.add("pause", 1.5, last=1)
    found, account = verdict(log, row(last=1, paused=1.5), 20)
    assert ([], 19) == (found, account.held)
    log.add("resume", 20, last=1)
    assert [] == verdict(log, row(last=1), 20.5)[0], "the leader has a grace from the end of the pause"
    assert 1 == len(verdict(log, row(last=1), 21.5)[0])


def test_a_catch_up_schedule_that_is_being_worked_through_is_not_late() -> None:
    log = Log()
    log.inserted(0, policy="catch_up")
    log.enqueue(30, 1, 2, expected=None, read=30)
    stored = row(last=2, policy="catch_up")
    found, account = verdict(log, stored, 30.5)
    assert ([], 28) == (found, account.pending)
    assert ["CatchUpFiresEventuallyEnqueued"] == [each.rule for each in verdict(log, stored, 31.5)[0]]


def test_ten_years_are_counted_up_to_a_bound() -> None:
    log = Log()
    log.inserted(0)
    years = 10 * 365 * 24 * 60
    log.enqueue(years, years, expected=None, read=years)
    found, account = verdict(log, row(last=years), years)
    assert [] == found
    assert account.coalesced > 10_000
    assert not account.counted_all


def test_what_makes_no_jobs_has_none() -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("pause", {"jobs": 1}, "PauseTouchesOnlyPause"),
        ("remove", {"jobs": 1, "cron_expr": EACH[0], "timezone": EACH[1]}, "RemoveLeavesJobs"),
        ("trigger", {"jobs": 0}, "TriggerLeavesSchedule"),
        ("trigger", {"jobs": 2}, "TriggerLeavesSchedule"),
        ("trigger", {"jobs": 1, "fires": [1]}, "TriggerLeavesSchedule"),
    ]
    for action, more, rule in cases:
        log = Log()
        log.inserted(0)
        log.add(action, 1, **more)
        assert [rule] == rules_broken(log), (action, more)


def test_a_sync_says_what_it_changed() -> None:
    log = Log()
    log.inserted(0)
    log.updated(1, anchor=0, change="replaced")
    assert ["Sync"] == rules_broken(log)


def test_an_unreadable_row_settles_no_fire() -> None:
    for definition, policy in ((BROKEN, "coalesce"), (EACH, "sometimes")):
        log = Log()
        log.inserted(0, definition, policy=policy)
        log.redefined(1.5, definition, TENS, fires=[1], last=1)
        assert ["FiresFitDefinition"] == rules_broken(log)


def test_a_pass_that_stops_early_is_told_from_one_that_has_caught_up() -> None:
    for read, limit, rules in ((5, 3, ["CaughtUp"]), (3, 3, ["CaughtUp"]), (2.9, 3, []), (5, 2, []), (5, None, [])):
        log = Log()
        log.inserted(0, policy="catch_up")
        log.enqueue(5, 1, 2, expected=None, read=read)
        assert rules == rules_broken(log, pass_limit=limit), (read, limit)


def test_the_same_fire_twice_is_out_of_order() -> None:
    log = Log()
    log.inserted(0, policy="catch_up")
    log.enqueue(5, 1, 1, expected=None)
    assert "FiresAdvance" in rules_broken(log)


def test_what_an_edit_drops_is_counted_up_to_a_thousand() -> None:
    for minutes, counted_all in ((1000, True), (1001, False)):
        log = Log()
        log.inserted(0)
        log.add("pause", 0.5)
        dropped = {"count": 1000, "counted_all": counted_all, "first": text(1), "last": text(minutes)}
        log.redefined(minutes, EACH, TENS, dropped=dropped)
        assert [] == rules_broken(log)


def test_an_instant_is_due_at_its_own_moment_and_late_after_the_grace() -> None:
    log = Log()
    log.inserted(0)
    found, account = verdict(log, row(), 1)
    assert ([], 1) == (found, account.pending)
    assert [] == verdict(log, row(), 2)[0], "a grace of a minute"
    assert 1 == len(verdict(log, row(), 2 + 1e-6)[0])


def test_a_late_trigger_has_a_minute() -> None:
    for recorded, rules in ((3, []), (3 + 1e-6, ["TriggerLeavesSchedule"])):
        log = Log()
        log.inserted(0)
        log.add("remove", 2, cron_expr=EACH[0], timezone=EACH[1])
        log.add("trigger", 1.9, jobs=1, recorded=recorded)
        assert rules == rules_broken(log)


def test_each_of_several_fires_is_due_and_has_a_job_of_its_own() -> None:
    log = Log()
    log.inserted(0, policy="catch_up")
    log.enqueue(1.5, 1, 2, expected=None)
    assert ["AlreadyDue"] == rules_broken(log)
    [inserted, event] = log.events
    log.events = [inserted, dataclasses.replace(event, clock=at(2), job_ids=(1, 1))]
    assert ["MarkIffJob"] == rules_broken(log)


def test_the_floor_is_the_highest_last_fire_of_all_removed_rows() -> None:
    log = Log()
    log.inserted(0)
    log.enqueue(5, 5, expected=None, read=5)
    log.add("remove", 6, last=5, cron_expr=EACH[0], timezone=EACH[1])
    for clock in (1, 2):  # the clock has stepped back
        log.inserted(clock, anchor=5)
        log.add("remove", clock + 0.5, last=None, cron_expr=EACH[0], timezone=EACH[1])
    assert [] == rules_broken(log)


def test_after_an_event_that_cannot_be_read_nothing_is_known() -> None:
    log = Log()
    log.inserted(0)
    log.enqueue(1, 1, expected=None, read=1)
    log.enqueue(2, 2, expected=1, read=2)
    log.events[-1] = dataclasses.replace(log.events[-1], fires=(at(2).replace(tzinfo=None),))
    assert ["Readable"] == rules_broken(log)
    log.enqueue(4, 4, expected=3, read=4)
    found, _ = verdict(log, row(last=4), 4.5)
    assert ["Readable"] == [each.rule for each in found]


def test_pauses_that_a_fire_has_accounted_for_make_room_for_others() -> None:
    log = Log()
    log.inserted(0)
    last: float | None = None
    for start in range(0, 3 * (PAUSES_KEPT + 1), 3):
        log.add("pause", start + 0.5, last=last)
        log.add("resume", start + 1.5, last=last)
        log.enqueue(start + 2.5, start + 2, expected=last, read=start + 2.5)
        last = start + 2
    found, account = verdict(log, row(last=last), last or 0)
    assert ([], PAUSES_KEPT + 1) == (found, account.paused)


def test_only_a_registration_is_a_beginning() -> None:
    log = Log()
    log.add("acquire_leader", 0)
    log.inserted(0)
    log.redefined(0.5, EACH, TENS)
    log.add("pause", 0.6)
    whole = [True, False, False]
    for begin, beginning in enumerate(whole, start=1):
        checker = Checker("s", from_start=False)
        for event in (log.events[0], *log.events[begin:]):
            checker.feed(event)
        assert (True, beginning) == (checker.began, checker.from_registration), begin
    checker = Checker("s", from_start=False)
    checker.feed(log.events[0])
    assert (False, False) == (checker.began, checker.from_registration)
