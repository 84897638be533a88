"""What is alike is folded, and the order is that of schedules and logs."""

from __future__ import annotations

from awa_cron.verify import Finding
from awa_cron.verify.findings import APART, Findings
from awa_cron.verify.verdict import EXAMPLES, MAX_FINDINGS


def finding(
    schedule: str = "s", rule: str = "R", events: tuple[int, ...] = (), jobs: tuple[int, ...] = ()
) -> Finding:
    return Finding(rule=rule, schedule=schedule, message=f"{rule} {events} {jobs}", events=events, jobs=jobs)


def collected(*found: Finding, kind: str = "log") -> Findings:
    findings = Findings()
    for each in found:
        findings.add(each, kind)
    return findings


def test_a_few_are_told_as_they_are() -> None:
    few = [finding(events=(number,)) for number in range(APART)]
    assert (tuple(few), APART) == (collected(*few).listed(), collected(*few).total)


def test_they_are_listed_by_schedule_then_as_the_log_goes_then_as_they_were_found() -> None:
    ordered = [
        finding("a", "Z", ()),
        finding("a", "B", (3,)),
        finding("a", "Y", (5,)),
        finding("a", "B", (5,)),
        finding("b", "A", (1,)),
    ]
    assert tuple(ordered) == collected(ordered[4], ordered[1], ordered[2], ordered[3], ordered[0]).listed()


def test_beyond_that_one_stands_for_the_rest() -> None:
    many = collected(*(finding(events=(number,)) for number in range(1, 101)))
    *_, last = many.listed()
    assert (100, APART) == (many.total, len(many.listed()))
    assert (81, (APART, 21, 22), EXAMPLES) == (last.count, last.events[:3], len(last.events))
    assert last.message == f"R ({APART},) (); and 80 more like it, such as events 21, 22, 23"


def test_jobs_of_one_kind_are_one_finding_of_a_schedule() -> None:
    findings = collected(*(finding("ab"[job % 2], jobs=(job,), events=(7,)) for job in range(50)), kind="no job")
    a, b = findings.listed()
    assert (25, "a", (0, 2, 4), (7,)) == (a.count, a.schedule, a.jobs[:3], a.events)
    assert (25, "b") == (b.count, b.schedule)
    assert a.message.endswith("; and 24 more like it, such as jobs 2, 4, 6")


def test_rules_and_kinds_are_told_apart() -> None:
    findings = collected(finding(rule="P"), finding(rule="Q"), kind="no job")
    findings.add(finding(rule="P"), "no event")
    assert [1, 1, 1] == [each.count for each in findings.listed()]


def test_a_long_window_stays_whole() -> None:
    window = tuple(range(EXAMPLES + 5))
    [kept] = collected(finding(events=window), finding(events=(99,)), kind="job").listed()
    assert window == kept.events


def test_one_kind_does_not_crowd_out_another() -> None:
    findings = collected(*(finding(f"s{number:05}", rule) for rule in "PPQ" for number in range(MAX_FINDINGS)))
    findings.add(finding("z", "last"), "no job")
    listed = findings.listed()
    assert (3 * MAX_FINDINGS + 1, MAX_FINDINGS + 1, "z") == (findings.total, len(listed), listed[-1].schedule)
