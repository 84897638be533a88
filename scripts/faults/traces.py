"""TLC's verdict on a run: a sample of its log, and falsified copies of some, followed on ``spec/AwaCronTrace.tla``.

``awa-cron verify`` judges the whole log. Its rules judge each window of the sample again, and both must agree.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

import assurance
from assurance import trace
from assurance.java import Runner
from assurance.trace import Followed, Window
from awa_cron import rows
from awa_cron.model import Event
from awa_cron.sql import Schema
from awa_cron.verify import Checker, Finding
from faults.server import Database

OF_EACH_POLICY: Final = 40
"""The most windows of each policy that TLC is asked about."""

INSTANTS: Final = 60
"""The most fires of a window: catching up an hour in one event is too much for TLC."""

SHOWN: Final = 5
"""The most rejected windows that are shown."""

_SCHEMA: Final = Schema()


@dataclasses.dataclass(slots=True)
class Judged:
    """What TLC says of one run.

    Attributes:
        missing: Why TLC was not asked, or did not answer.
        in_the_log: How many windows the log has.
        too_large: Of those, the ones that no sample can have.
        rejected: How many of the windows that really happened are no behaviour of the spec.
        rejections: The first of them, each with its smallest piece that is none.
        unnoticed: Falsified windows that TLC accepts.
        disagreements: Windows of which ``awa-cron verify`` says something else.
    """

    missing: str | None = None
    windows: int = 0
    accepted: int = 0
    rejected: int = 0
    falsified: int = 0
    in_the_log: int = 0
    too_large: int = 0
    seconds: float = 0.0
    rejections: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    unnoticed: list[str] = dataclasses.field(default_factory=list)
    disagreements: list[str] = dataclasses.field(default_factory=list)

    @property
    def numbers(self) -> dict[str, Any]:
        """For the report."""
        counts = {
            "windows": self.windows,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "falsified": self.falsified,
            "falsified_rejected": self.falsified - len(self.unnoticed),
            "in_the_log": self.in_the_log,
            "too_large": self.too_large,
            "seconds": round(self.seconds, 1),
        }
        return counts if self.missing is None else {"missing": self.missing, **counts}

    def checks(self, *, required: bool) -> dict[str, bool]:
        """Return what must hold; nothing where TLC is missing and need not be there."""
        if self.missing is not None:
            return {"tlc_was_asked": False} if required else {}
        return {
            "tlc_accepts_what_happened": self.windows > 0 and not self.rejected,
            "tlc_rejects_what_is_falsified": self.falsified > 0 and not self.unnoticed,
            "tlc_and_verify_agree": not self.disagreements,
        }


async def read(database: Database) -> list[Window]:
    """Return the whole log of a database, cut into windows."""
    logs: dict[str, list[Event]] = {}
    for row in await database.fetch(_SCHEMA.statement("queries/verify_events"), None, 1, 1):
        logs.setdefault(row["name"], []).append(rows.event(row))
    ends = {each["name"]: each for each in await database.fetch(_SCHEMA.statement("queries/verify_rows"), None)}
    return [
        window
        for name, log in logs.items()
        for window in trace.windows(log, rows.schedule_state(ends[name]) if name in ends else None)
    ]


def judge(runner: Runner, databases: Iterable[tuple[Sequence[Window], int]]) -> Judged:
    """Ask TLC about a sample.

    Args:
        runner: Starts TLC.
        databases: Of each, its windows and the most fires of one pass.
    """
    judged = Judged()
    started = time.monotonic()
    try:
        for windows, pass_limit in databases:
            _judge(runner, judged, windows, pass_limit)
    except (assurance.CannotRunError, subprocess.TimeoutExpired) as error:
        judged.missing = str(error)
    judged.seconds = time.monotonic() - started
    return judged


def _judge(runner: Runner, judged: Judged, windows: Sequence[Window], pass_limit: int) -> None:
    small = [each for each in windows if sum(len(event.fires) for event in each.events) <= INSTANTS]
    judged.in_the_log += len(windows)
    judged.too_large += len(windows) - len(small)
    real = sample(small)
    false = list(falsified(real))
    answers = trace.follow(runner, [*real, *(window for _, window in false)], pass_limit=pass_limit)
    judged.windows += len(real)
    judged.falsified += len(false)
    for answer in answers[: len(real)]:
        judged.disagreements += _disagreement(answer, pass_limit, "happened")
        if answer.accepted:
            judged.accepted += 1
        else:
            judged.rejected += 1
            if len(judged.rejections) < SHOWN:
                judged.rejections.append(_rejection(runner, answer, pass_limit))
    for (how, _), answer in zip(false, answers[len(real) :], strict=True):
        judged.disagreements += _disagreement(answer, pass_limit, how)
        if answer.accepted:
            judged.unnoticed.append(f"{_name(answer.window)}: {how}")


def sample(windows: Sequence[Window]) -> list[Window]:
    """Choose windows of either policy, those in which most happens first."""
    chosen: list[Window] = []
    for policy in trace.POLICIES:
        of_policy = [each for each in windows if each.policy == policy and each.events]
        chosen += sorted(of_policy, key=interest, reverse=True)[:OF_EACH_POLICY]
    return chosen


def interest(window: Window) -> int:
    """Say how much happens: kinds of events, writes long after their read, several fires, clocks that step back."""
    events = window.events
    kinds = {(event.action, event.details.get("change")) for event in events}
    several = sum(len(event.fires) > 1 for event in events)
    settles = sum(event.action == "sync" and bool(event.fires) for event in events)
    back = sum(later.clock < event.clock for event, later in itertools.pairwise(events))
    return 4 * len(kinds) + 2 * settles + 2 * back + min(several, 4)


def falsified(windows: Sequence[Window]) -> Iterator[tuple[str, Window]]:
    """Of the first window of either policy that has an enqueue, drop it, and double it."""
    for policy in trace.POLICIES:
        for window in (each for each in windows if each.policy == policy):
            events = window.events
            place = next((at for at, event in enumerate(events) if event.action == "atomic_enqueue"), None)
            if place is not None:
                one = f"event {events[place].id}"
                yield f"{one} dropped", dataclasses.replace(window, events=events[:place] + events[place + 1 :])
                yield f"{one} doubled", dataclasses.replace(window, events=events[: place + 1] + events[place:])
                break


def found(window: Window, pass_limit: int) -> list[Finding]:
    """Return what the rules of ``awa-cron verify`` say of a window."""
    checker = Checker(_name(window), from_start=window.start.present is False, pass_limit=pass_limit)
    checker.state = copy.deepcopy(window.start)
    findings = [finding for event in window.events for finding in checker.feed(event)]
    now = window.events[-1].clock if window.events else None
    if now is not None:
        findings += checker.finish(window.row, now, grace=timedelta.max)[0]
    return findings


def _disagreement(answer: Followed, pass_limit: int, how: str) -> list[str]:
    findings = found(answer.window, pass_limit)
    if answer.accepted is not bool(findings):
        return []
    said = f"verify says {findings[0].message}" if findings else "verify finds nothing"
    return [f"{_name(answer.window)}: {how}: TLC {'accepts' if answer.accepted else 'rejects'} it, {said}"]


def _rejection(runner: Runner, answer: Followed, pass_limit: int) -> dict[str, Any]:
    stuck_at = answer.stuck_at
    return {
        "schedule": _name(answer.window),
        "stuck_at": "the row at the end" if stuck_at is None else f"event {stuck_at.id}, {stuck_at.action}",
        "window": [_told(event) for event in trace.smallest(runner, answer, pass_limit=pass_limit)],
    }


def _name(window: Window) -> str:
    return next((event.name or "" for event in window.events), "")


def _told(event: Event) -> str:
    return json.dumps(dataclasses.asdict(event), default=str)
