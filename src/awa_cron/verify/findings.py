"""Collects findings: those alike are folded into one, so that ten thousand lost jobs hide nothing else. Pure."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Final, TypeAlias

from awa_cron.verify.verdict import EXAMPLES, MAX_FINDINGS, Finding

OF_THE_LOG: Final = "log"
"""The kind of a finding about one event, or about the end of a log."""

APART: Final = 20
"""So many findings of one rule about the log of one schedule are told apart."""


_Placed: TypeAlias = tuple[str, tuple[int, ...], int, Finding]
"""A finding after what it is sorted by; the number tells the root of a trouble from what follows."""


class Findings:
    """What has been found so far."""

    def __init__(self) -> None:
        self.total = 0
        self._groups: dict[str, dict[tuple[str, str], list[_Placed]]] = {}

    def add(self, finding: Finding, kind: str = OF_THE_LOG) -> None:
        """Take a finding; of jobs, all of one kind about one schedule are alike.

        Args:
            finding: Which stands for itself only.
            kind: Of trouble. At most ``MAX_FINDINGS`` of each are kept.
        """
        self.total += 1
        groups = self._groups.setdefault(kind, {})
        key = finding.schedule, finding.rule
        group = groups.get(key)
        placed = (finding.schedule, finding.events, self.total, finding)
        if group is None:
            if len(groups) < MAX_FINDINGS:
                groups[key] = [placed]
        elif len(group) < (APART if kind == OF_THE_LOG else 1):
            group.append(placed)
        else:
            group[-1] = (*group[-1][:3], _with_one_more(group[-1][3], finding))

    def listed(self) -> tuple[Finding, ...]:
        """Return what is kept, by schedule, in the order of the log."""
        kept: list[_Placed] = []
        for groups in self._groups.values():
            kept += sorted(itertools.chain.from_iterable(groups.values()))[:MAX_FINDINGS]
        return tuple(_told(finding) for *_, finding in sorted(kept))


def _with_one_more(finding: Finding, other: Finding) -> Finding:
    return dataclasses.replace(
        finding,
        count=finding.count + 1,
        events=_examples(finding.events, other.events),
        jobs=_examples(finding.jobs, other.jobs),
    )


def _examples(ids: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*ids, *more)))[: max(EXAMPLES, len(ids))]


def _told(finding: Finding) -> Finding:
    """Say in the message how many it stands for, and name some of them."""
    if finding.count == 1:
        return finding
    more = f"; and {finding.count - 1:,} more like it"
    what, others = ("jobs", finding.jobs[1:4]) if finding.jobs else ("events", finding.events[1:4])
    if others:
        more += f", such as {what} {', '.join(map(str, others))}"
    return dataclasses.replace(finding, message=finding.message + more)
