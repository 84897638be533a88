"""Schedules that cannot fire, written by hand into the table: each is to stop nothing but itself."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from typing import Any

from faults.cluster import Cluster
from faults.operators import Operators

CALM_S = 6.0
"""How long is measured."""

UNREADABLE = {
    "bad_expression": "cron_expr = '61 * * * * *'",
    "bad_zone": "timezone = 'Mars/Phobos'",
    "bad_policy": "missed_fire_policy = 'skip'",
    "bad_anchor": "anchored_at = 'infinity'",
}
"""Rows that cannot be evaluated: by name, what is wrong."""

REFUSED = {
    "refused_priority": "priority = 9",
    "refused_kind": "kind = repeat('k', 300)",
    "refused_tags": "tags = array_fill('t'::text, ARRAY[21])",
}
"""Rows that fire each second and whose jobs the table of jobs refuses."""

BAD = UNREADABLE | REFUSED

INSERT = "INSERT INTO awa.cron_jobs (name, cron_expr, kind) VALUES ($1, '* * * * * *', 'work')"
DELETE = "DELETE FROM awa.cron_jobs WHERE name = ANY ($1)"


def spoil(name: str) -> str:
    """Return the statement that makes a row bad; $1 is its name."""
    return f"UPDATE awa.cron_jobs SET {BAD[name]} WHERE name = $1"  # noqa: S608


LATENESS = """
SELECT extract(epoch FROM created_at - (metadata ->> 'cron_fire_time')::timestamptz)::float8 AS late_s
FROM awa.jobs
WHERE metadata ->> 'cron_name' = ANY ($1)
  AND (metadata ->> 'cron_fire_time')::timestamptz BETWEEN $2 AND $3
ORDER BY 1
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Lateness:
    """How long after their instants jobs were there, in seconds."""

    jobs: int
    p50: float
    p99: float
    longest: float

    @classmethod
    def of(cls, late_s: list[float]) -> Lateness:
        """Summarize."""
        ordered = sorted(late_s)
        return cls(
            len(ordered),
            percentile(ordered, 50),
            percentile(ordered, 99),
            round(ordered[-1], 3) if ordered else 0.0,
        )


def percentile(ordered: list[float], percent: int) -> float:
    """Return the smallest value that so many percent do not exceed; 0 where there is none."""
    return round(ordered[max(0, -(-len(ordered) * percent // 100) - 1)], 3) if ordered else 0.0


async def measured(cluster: Cluster, operators: Operators, *, held: str) -> dict[str, Any]:
    """Let bad rows, and one that an outsider holds, stand beside the good ones, and measure.

    Nothing else should be the matter.
    """
    database = cluster.database
    for name in BAD:
        await database.fetch(INSERT, name)
        await database.fetch(spoil(name), name)
    holder = await database.session()
    try:
        await holder.execute("BEGIN")
        await holder.execute("SELECT 1 FROM awa.cron_jobs WHERE name = $1 FOR UPDATE", held)
        start = await database.value("SELECT clock_timestamp()")
        await asyncio.sleep(CALM_S)
        end = await database.value("SELECT clock_timestamp()")
        shown = await operators.broken()
    finally:
        holder.terminate()
    names = [row["name"] for row in await database.fetch("SELECT name FROM awa.cron_jobs")]
    good = sorted(set(names) - BAD.keys() - {held})
    late = [row["late_s"] for row in await database.fetch(LATENESS, good, start, end)]
    reports = Counter(
        record["schedule"]
        for instance in cluster.instances
        for record in instance.records("schedule is broken and skipped")
    )
    await database.fetch(DELETE, list(BAD))
    leaders = {
        row[0]
        for row in await database.fetch(
            "SELECT actor FROM awa.cron_events WHERE action = 'acquire_leader' AND clock > $1", start
        )
    }
    return {
        "healthy": dataclasses.asdict(Lateness.of(late)),
        "healthy_schedules": len(good),
        "unseen": sorted(BAD.keys() - shown.keys()),
        "unreported": sorted(BAD.keys() - reports.keys()),
        # Once by each leader: one that takes over says it again.
        "repeated": sorted(name for name, count in reports.items() if count > 1 + len(leaders)),
    }
