"""Whether a run balances, and its numbers. What the log allows is judged by ``awa-cron verify``."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from faults import ROOT, CannotRunError
from faults.bad_rows import Lateness
from faults.instances import Instance
from faults.server import Database

HEALTHY_P99_S = 1.5

LOST = (
    "CatchUpContiguous",
    "CatchUpFiresEventuallyEnqueued",
    "CoalesceOnlyLatest",
    "CoalescedLatestFireEventuallyEnqueued",
    "EditSettles",
    "RemoveLeavesJobs",
)
DUPLICATED = ("NoDuplicateFire", "FiresAdvance", "Advances", "AfterAnchor", "NoRetroactiveFire")
"""Rules of ``awa-cron verify``, by what it means when one is broken."""

BECAME = ("enqueued", "settled", "coalesced", "paused", "dropped", "removed", "held", "pending")

LATENESS = """
SELECT extract(epoch FROM created_at - (metadata ->> 'cron_fire_time')::timestamptz)::float8 AS late_s
FROM awa.jobs
WHERE metadata ? 'cron_fire_time' AND metadata ->> 'cron_name' = ANY ($1)
"""
UNFINISHED = """
SELECT j.id, j.state, j.attempt, count(r.id) AS runs, j.errors::text AS errors
FROM awa.jobs AS j LEFT JOIN runs AS r ON r.job_id = j.id
WHERE j.metadata ? 'cron_name'
GROUP BY j.id
HAVING j.state != 'completed' OR count(r.id) = 0 OR count(r.id) > j.attempt
ORDER BY j.id
"""
WINDOW = """
SELECT * FROM awa.cron_events
WHERE (name = $1 OR name IS NULL) AND id BETWEEN $2 - 20 AND $3 + 5
ORDER BY id
LIMIT 60
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Books:
    """What ``awa-cron verify`` says of a database, and how often somebody took the lead there.

    Attributes:
        became: Due instants by what became of them.
        windows: The log around the first findings.
    """

    became: Counter[str]
    findings: Sequence[dict[str, Any]]
    windows: dict[str, list[str]]
    terms: int

    @classmethod
    async def of(cls, database: Database) -> Books:
        """Ask it.

        Raises:
            CannotRunError: It does not answer.
        """
        command = [sys.executable, "-m", "awa_cron", "verify", "--json", "--jobs-kept", "--dsn", database.dsn]
        answer = await asyncio.to_thread(
            subprocess.run,
            command,
            capture_output=True,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
            check=False,
        )
        if answer.returncode not in {0, 1} or not answer.stdout:
            raise CannotRunError(f"awa-cron verify does not answer: {answer.stderr.decode()}")
        said = json.loads(answer.stdout)
        findings = said["findings"]
        if (answer.returncode == 0) is bool(findings):
            raise CannotRunError("awa-cron verify contradicts itself")
        count = await database.value("SELECT count(*) FROM awa.cron_events WHERE action = 'acquire_leader'")
        return cls(
            became=Counter({what: sum(each[what] for each in said["accounts"]) for what in BECAME}),
            findings=findings,
            windows={_told(each): await _window(database, each) for each in findings[:5]},
            terms=int(count),
        )

    @property
    def numbers(self) -> dict[str, Any]:
        """For the report."""
        return {
            "leader_changes": max(0, self.terms - 1),
            "fires_due": self.became.total(),
            "became": dict(self.became),
            "jobs": self.became["enqueued"] + self.became["settled"],
            "lost": self.broken(LOST),
            "duplicated": self.broken(DUPLICATED),
            "findings": [_told(each) for each in self.findings[:50]],
        }

    def broken(self, rules: Sequence[str]) -> int:
        """Return how often rules were broken."""
        return sum(each["count"] for each in self.findings if each["rule"] in rules)


async def lateness(database: Database, schedules: Sequence[str]) -> dict[str, Any]:
    """Return how late the automatic jobs of some schedules were."""
    return dataclasses.asdict(Lateness.of([row["late_s"] for row in await database.fetch(LATENESS, schedules)]))


async def unfinished(database: Database) -> list[str]:
    """Return the jobs that have not run, or were run more often than handed out."""
    return [str(dict(row)) for row in await database.fetch(UNFINISHED)]


def ends(instances: Iterable[Instance]) -> dict[str, int]:
    """Return the exit statuses of ends that nobody asked for, and how often."""
    counts = sum((each.ended for each in instances), Counter[int]())
    return {str(status): count for status, count in sorted(counts.items())}


async def _window(database: Database, finding: dict[str, Any]) -> list[str]:
    events = finding["events"]
    if not events:
        return []
    rows = await database.fetch(WINDOW, finding["schedule"], min(events), max(events))
    return [json.dumps(dict(row), default=str) for row in rows]


def _told(finding: dict[str, Any]) -> str:
    return f"{finding['schedule']}: {finding['rule']}: {finding['message']}"
