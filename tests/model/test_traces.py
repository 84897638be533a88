"""Real logs are behaviours of the spec, falsified ones are not: verifier and TLC say so, and agree. P35."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from assurance import trace
from assurance.java import Runner, find_runner
from awa_cron.verify import Checker, Finding
from faults import traces
from tests import postgres
from tests.model import ledger
from tests.model.falsified import FALSIFICATIONS, Falsification
from tests.model.logs import EPOCH, PASS_LIMIT, Recorded, recorded

WALKS, STEPS = 24, 60
OF_EACH = 3
"""Falsified logs of each kind that TLC is asked about."""


@pytest.fixture(scope="module")
def logs(server_dsn: str, databases: postgres.Databases) -> list[Recorded]:
    name = databases.take()
    try:
        return asyncio.run(recorded(postgres.on_database(server_dsn, name), WALKS, STEPS))
    finally:
        databases.give_back(name)


def found(log: Recorded) -> list[Finding]:
    """Return what the verifier finds, whatever may be due at the end."""
    checker = Checker(log.log[0].name or "", from_start=True, pass_limit=PASS_LIMIT)
    findings = [finding for event in log.log for finding in checker.feed(event)]
    at_end, _ = checker.finish(log.row, EPOCH, grace=timedelta.max)
    return findings + at_end


def followed(logs: Sequence[Recorded]) -> list[list[trace.Followed]]:
    """Ask TLC about many logs in one run; return the windows of each."""
    pieces = [trace.windows(log.log, log.row) for log in logs]
    answers = iter(trace.follow(find_runner(), [each for piece in pieces for each in piece], pass_limit=PASS_LIMIT))
    return [[next(answers) for _ in piece] for piece in pieces]


def test_real_logs_are_accepted_by_both(logs: list[Recorded]) -> None:
    assert [] == [finding for log in logs for finding in found(log)]
    answers = [answer for answers in followed(logs) for answer in answers]
    assert [] == [(answer.stuck_at, answer.window) for answer in answers if not answer.accepted]
    events = [event for log in logs for event in log.log]
    kinds = {(event.action, event.details.get("change")) for event in events}
    assert 8 == len(kinds), kinds
    ledger.record("traces", logs=len(logs), events=len(events), windows=len(answers))


@pytest.mark.parametrize("falsification", FALSIFICATIONS, ids=lambda each: each.name)
def test_the_verifier_names_the_rule(logs: list[Recorded], falsification: Falsification) -> None:
    falsified = [each for log in logs for each in falsification.everywhere(log)]
    assert falsified, "no log can be falsified in this way"
    first = [(findings[0].rule if (findings := found(each)) else "none") for each in falsified]
    assert set(first) <= falsification.rules | {"none"}
    assert first.count("none") < len(first) / 2, "most of these logs are no behaviours of the spec"


def test_tlc_and_the_verifier_agree_on_falsified_logs(logs: list[Recorded]) -> None:
    chosen = random.Random(1)
    asked: list[tuple[Falsification, Recorded]] = []
    for falsification in FALSIFICATIONS:
        possible = [each for log in logs for each in falsification.everywhere(log)]
        asked += [(falsification, each) for each in chosen.sample(possible, min(OF_EACH, len(possible)))]
    answers = followed([log for _, log in asked])
    rejected = 0
    for (falsification, log), windows in zip(asked, answers, strict=True):
        findings = found(log)
        tlc_rejects = not all(window.accepted for window in windows)
        rejected += tlc_rejects
        if falsification.invisible is not None:
            assert findings
            assert not tlc_rejects, f"TLC sees it: {falsification.name}"
            continue
        assert bool(findings) is tlc_rejects, (falsification.name, findings, log)
        if tlc_rejects:
            stuck_at = next(window for window in windows if not window.accepted).stuck_at
            places = (
                None if findings[0].rule == "RowAsLogged" else findings[0].events[-1],
                stuck_at and stuck_at.id,
            )
            assert places[0] == places[1], (falsification.name, findings[0], log)
    assert rejected >= 2 * len(FALSIFICATIONS)
    ledger.record("falsified traces", kinds=len(FALSIFICATIONS), asked=len(asked), rejected=rejected)


def test_wherever_a_real_log_is_cut_its_windows_are_accepted(logs: list[Recorded]) -> None:
    pieces = [window for log in logs for most in (1, 2, 3) for window in trace.windows(log.log, log.row, most=most)]
    answers = trace.follow(find_runner(), pieces, pass_limit=PASS_LIMIT)
    assert [] == [(answer.stuck_at, answer.window) for answer in answers if not answer.accepted]


def test_a_sample_is_accepted_and_what_is_falsified_in_it_is_not(logs: list[Recorded]) -> None:
    pieces = [window for log in logs for window in trace.windows(log.log, log.row)]
    judged = traces.judge(find_runner(), [(pieces, PASS_LIMIT)])
    assert ([], [], [], None) == (judged.rejections, judged.unnoticed, judged.disagreements, judged.missing)
    assert all(judged.checks(required=True).values())
    assert (2 * traces.OF_EACH_POLICY, 4) == (judged.windows, judged.falsified)


def test_of_a_rejected_window_the_smallest_is_shown(logs: list[Recorded]) -> None:
    pieces = [window for log in logs for window in trace.windows(log.log, log.row)]
    whole = next(each for each in pieces if [event.action for event in each.events][5:6] == ["atomic_enqueue"])
    again = replace(whole.events[5], id=999_999)
    twice = replace(whole, events=(*whole.events[:6], again, *whole.events[6:]))
    other_row = next(each for each in pieces if each.row is not None and len(each.events) > 1)
    assert other_row.row is not None
    moved = replace(other_row, row=replace(other_row.row, anchored_at=EPOCH - timedelta(days=1)))
    judged = traces.judge(find_runner(), [([twice, moved], PASS_LIMIT)])
    assert not judged.checks(required=False)["tlc_accepts_what_happened"]
    windows = {each["stuck_at"]: [json.loads(event) for event in each["window"]] for each in judged.rejections}
    [event] = windows.pop("event 999999, atomic_enqueue")
    assert (999_999, whole.events[0].name) == (event["id"], event["name"])
    assert {"the row at the end": [moved.events[-1].id]} == {
        stuck_at: [event["id"] for event in window] for stuck_at, window in windows.items()
    }


def test_without_tlc_the_verdict_says_so_and_may_fail() -> None:
    judged = traces.judge(Runner(["false", "{jvm}"], "nothing"), [([], PASS_LIMIT)])
    assert "did not follow" in judged.numbers["missing"]
    assert ({}, {"tlc_was_asked": False}) == (judged.checks(required=False), judged.checks(required=True))
