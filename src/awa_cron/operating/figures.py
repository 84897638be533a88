"""An operator's verb for numbers: what a monitor wants to know, read from the database, so right whoever leads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from awa_cron.actions import asking
from awa_cron.operating.connected import Connected

LATELY_S: Final = 300.0
OVERDUE_S: Final = 5.0
"""What is due for no longer is being seen to."""
EVENTS_LOOKED_AT: Final = 10_000
DEAD_COUNTED: Final = 10_000
JOBS_LOOKED_AT: Final = 20
"""So many of the newest jobs of each schedule."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueueDepth:
    """The jobs of one queue in one state.

    Attributes:
        oldest_s: For how long the oldest of them could have run.
    """

    queue: str
    state: str
    jobs: int
    oldest_s: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Numbers for a monitor.

    Attributes:
        now: The database's clock when they were read.
        last_event_id: How far the event log has come; 0 while it is empty.
        last_event_at: When its newest event was written.
        fires: Fires that became jobs within ``LATELY_S``, among the newest events.
        lateness_s: Of these, from their instants to their jobs: the median, the 99th percentile and the most.
        overdue: Schedules that fire, and whose next fire has been due for more than ``OVERDUE_S``.
        overdue_s: For how long the first of them has been due; None if there is none.
        depths: By queue and state, unfinished and dead jobs only.
    """

    now: datetime
    last_event_id: int
    last_event_at: datetime | None
    fires: int
    lateness_s: tuple[float, float, float] | None
    overdue: int
    overdue_s: float | None
    depths: tuple[QueueDepth, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dying:
    """The dead jobs, for a glance.

    Attributes:
        dead: How many there are; one more than ``DEAD_COUNTED`` stands for any more.
        in_a_row: By schedule, how many of its newest jobs died one after the other; without those whose newest
            did not.
    """

    dead: int
    in_a_row: Mapping[str, int]


class FigureVerbs(Connected):
    """Count."""

    async def figures(self) -> Figures:
        """Return the numbers for a monitor."""
        async with self._connected().session() as connection, asking("figures"):
            recent = await connection.fetchrow(
                self.schema.statement("queries/recent_fires"), EVENTS_LOOKED_AT, LATELY_S, OVERDUE_S
            )
            depths = await connection.fetch(self.schema.statement("queries/queue_depth"))
        assert recent is not None
        return Figures(
            now=recent["now"],
            last_event_id=recent["last_event_id"] or 0,
            last_event_at=recent["last_event_at"],
            fires=recent["fires"],
            lateness_s=(recent["p50_s"], recent["p99_s"], recent["max_s"]) if recent["fires"] else None,
            overdue=recent["overdue"],
            overdue_s=recent["overdue_s"],
            depths=tuple(QueueDepth(**dict(row)) for row in depths),
        )

    async def dying(self, names: Sequence[str] = ()) -> Dying:
        """Return how many jobs are dead, and which of some schedules' newest jobs died."""
        async with self._connected().session() as connection, asking("dead list"):
            found = await connection.fetchrow(
                self.schema.statement("queries/dying"), list(names), DEAD_COUNTED + 1, JOBS_LOOKED_AT
            )
        assert found is not None
        in_a_row = {name: run for name, run in zip(names, found["runs"], strict=True) if run}
        return Dying(dead=found["dead"], in_a_row=in_a_row)
