"""Real logs are behaviours of the spec, falsified ones are not: verifier and TLC say so, and agree. P35."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import timedelta

import pytest

from assurance import trace
from assurance.java import find_runner
from awa_cron.verify import Checker, Finding
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
