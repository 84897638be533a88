"""Whether a run balances, and its numbers."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from faults import ROOT
from faults.accounts import Account, account
from faults.bad_rows import Lateness
from faults.cluster import Cluster
from faults.operators import Operators
from faults.server import Database
from faults.strikes import Strikes

if TYPE_CHECKING:
    from faults.chaos import Run

HEALTHY_P99_S = 1.5
AROUND = timedelta(seconds=5)

EVENTS = "SELECT * FROM awa.cron_events WHERE name IS NOT NULL ORDER BY name, id"
FIRES = """
SELECT metadata ->> 'cron_name' AS name, (metadata ->> 'cron_fire_time')::timestamptz AS fire,
    extract(epoch FROM created_at - (metadata ->> 'cron_fire_time')::timestamptz)::float8 AS late_s
FROM awa.jobs
WHERE metadata ? 'cron_fire_time'
ORDER BY id
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
SELECT id, recorded_at, clock, action, name, actor, fires, job_ids, last_enqueued_at, details
FROM awa.cron_events
WHERE (name = $1 OR name IS NULL) AND recorded_at BETWEEN $2 AND $3
ORDER BY id
LIMIT 60
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a run.

    Attributes:
        numbers: For the report.
        windows: The log of events around each instant that does not balance.
    """

    ok: bool
    numbers: dict[str, Any]
    windows: dict[str, list[str]]


async def judge(
    run: Run,
    *,
    strikes: Strikes,
    operators: Operators,
    cluster: Cluster,
    clocked: Cluster,
    until: datetime,
    bad: dict[str, Any],
) -> Verdict:
    """Balance both databases, and collect what the run has counted."""
    accounts = await _accounts(cluster.database, until)
    # Its clock may stand anywhere in the end: only what was enqueued can be asked for.
    aside = await _accounts(clocked.database, None)
    unfinished = await cluster.database.fetch(UNFINISHED)
    fires = await cluster.database.fetch(FIRES)
    terms = await _terms(cluster.database), await _terms(clocked.database)
    everybody = [*cluster.instances, *clocked.instances, *strikes.pooled]
    crashes = [f"{each}: {crash}" for each in everybody for crash in each.crashes()]
    checks = {
        "nothing lost": not any(each.lost for each in (*accounts, *aside)),
        "nothing twice": not any(each.duplicated for each in (*accounts, *aside)),
        "nothing invented": not any(each.stray for each in (*accounts, *aside)),
        "every job ran": not unfinished,
        "no instance crashed": not crashes,
        "bad rows held nothing back": bad["healthy"]["p99"] < HEALTHY_P99_S and bad["healthy"]["jobs"] > 0,
        "bad rows reported and shown": not (bad["unseen"] or bad["unreported"] or bad["repeated"]),
        "the log verifies": await _verified(cluster.database),
        "the clocks' log verifies": await _verified(clocked.database),
    }
    counts: Counter[str] = sum((each.counts for each in accounts), Counter())
    ended = sum((each.ended for each in everybody), Counter[int]())
    numbers = {
        "faults": dict(sorted(run.struck.items())),
        "skipped": run.skipped,
        "operations": dict(sorted(operators.done.items())),
        "ended_in_the_middle_of_atomic_enqueue": strikes.in_the_middle,
        "leader_changes": max(0, terms[0] - 1),
        "instances_started": sum(each.starts for each in everybody),
        "ends_nobody_asked_for": {str(status): count for status, count in sorted(ended.items())},
        "fires_due": sum(each.due for each in accounts),
        "became": dict(sorted(counts.items())),
        "jobs": len(fires),
        "lost": sum(len(each.lost) for each in accounts),
        "duplicated": sum(len(each.duplicated) for each in accounts),
        "lateness_s": dataclasses.asdict(Lateness.of([row["late_s"] for row in fires])),
        "bad_rows": bad,
        "clocks": {
            "leader_changes": max(0, terms[1] - 1),
            "fires_due": sum(each.due for each in aside),
            "jobs": sum(each.counts["enqueued"] for each in aside),
            "lost": sum(len(each.lost) for each in aside),
            "duplicated": sum(len(each.duplicated) for each in aside),
        },
        "verdicts": checks,
        "trouble": run.trouble,
        "unfinished": [str(dict(row)) for row in unfinished[:20]],
        "crashes": crashes[:5],
    }
    windows = await _windows(cluster.database, accounts) | await _windows(clocked.database, aside)
    return Verdict(all(checks.values()), numbers, windows)


async def _accounts(database: Database, until: datetime | None) -> list[Account]:
    events: dict[str, list[dict[str, Any]]] = {}
    for row in await database.fetch(EVENTS):
        events.setdefault(row["name"], []).append(dict(row) | {"details": json.loads(row["details"])})
    jobs: dict[str, list[datetime]] = {}
    for row in await database.fetch(FIRES):
        jobs.setdefault(row["name"], []).append(row["fire"])
    return [
        account(name, events.get(name, []), jobs.get(name, []), until)
        for name in sorted(events.keys() | jobs.keys())
    ]


async def _terms(database: Database) -> int:
    count = await database.value("SELECT count(*) FROM awa.cron_events WHERE action = 'acquire_leader'")
    return int(count)


async def _verified(database: Database) -> bool:
    """Ask ``awa-cron verify``."""
    command = [sys.executable, "-m", "awa_cron", "verify", "--json", "--dsn", database.dsn]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    answer = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, env=environment, check=False, text=True
    )
    if answer.returncode != 0:
        print(answer.stdout[-3000:], answer.stderr[-3000:], file=sys.stderr)
    return answer.returncode == 0


async def _windows(database: Database, accounts: list[Account]) -> dict[str, list[str]]:
    """Return the log around the first instants of each schedule that does not balance."""
    found = {}
    for each in accounts:
        for instant in sorted(each.lost | each.duplicated | each.stray)[:2]:
            rows = await database.fetch(WINDOW, each.name, instant - AROUND, instant + 2 * AROUND)
            what = "lost" if instant in each.lost else "twice" if instant in each.duplicated else "invented"
            found[f"{each.name} {instant.isoformat()} {what}"] = [_told(dict(row)) for row in rows]
    return found


def _told(row: dict[str, Any]) -> str:
    return json.dumps(row, default=str)
