"""Schedules that cannot fire, written by hand into the table: each is to stop nothing but itself."""

from __future__ import annotations

import dataclasses

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
