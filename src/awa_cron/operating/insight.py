"""An operator's verbs that answer questions: how do things stand, what would a resume do, why is there no job."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from awa_cron.errors import InvalidArgument, ScheduleNotFound
from awa_cron.insight.reader import Reader, views
from awa_cron.insight.reasons import Explanation
from awa_cron.insight.resuming import ResumePreview, resume_preview
from awa_cron.insight.views import JobView, LeaderView, ScheduleView
from awa_cron.model import aware
from awa_cron.operating.connected import Connected, found

EARLIEST, LATEST = 1000, 9000
"""Years of the instants that are explained; far from the ends of what can be calculated with."""


class InsightVerbs(Connected):
    """See how schedules, jobs and the leadership stand, and why."""

    async def overview(self, *, next_fires: int = 1) -> list[ScheduleView]:
        """Return how every stored schedule stands, by name, by the database's clock.

        Args:
            next_fires: How many fires to come, of each that fires; 1 to 1,000.
        """
        return await self._views(None, next_fires)

    async def view(self, name: str, *, next_fires: int = 5) -> ScheduleView:
        """Return how one schedule stands.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        return found(next(iter(await self._views(name, next_fires)), None), name)

    async def leadership(self) -> LeaderView:
        """Return who leads, if anybody does, since when, and the newest sign that somebody evaluates."""
        async with self._reader() as reader:
            return await reader.leadership()

    async def preview_resume(self, name: str) -> ResumePreview:
        """Return what a resume now would make of the fires that are due; it changes nothing.

        Of a schedule that is not paused, it is what the next pass does. The pass limit is that of this client's
        settings.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        view = await self.view(name, next_fires=1)
        return resume_preview(view.schedule, view.now, self.settings.pass_limit, view.schedule.broken)

    async def jobs_of(self, name: str, *, limit: int = 20) -> list[JobView]:
        """Return a schedule's newest jobs, newest first, also of a removed one.

        Args:
            name: The schedule.
            limit: The most jobs, 1 to 100,000.

        Raises:
            ScheduleNotFound: No schedule has that name, and no job carries it.
        """
        async with self._reader() as reader:
            jobs = await reader.jobs(name, limit=_whole("limit", limit, 100_000))
            known = jobs or await reader.schedules(name)
        if not known:
            raise ScheduleNotFound(name)
        return jobs

    async def get_jobs(self, ids: Sequence[int]) -> list[JobView]:
        """Return the jobs that have these ids, newest first; those that are gone are left out."""
        wanted = list(ids)
        if not wanted:
            return []
        async with self._reader() as reader:
            return await reader.jobs(None, ids=wanted, limit=len(wanted))

    async def explain(self, name: str, at: datetime | None = None) -> list[Explanation]:
        """Say why an instant did or did not become a job of a schedule, also of a removed one.

        Args:
            name: The schedule.
            at: The instant; None for the latest of its expression until now, and the next.

        Returns:
            One explanation per instant, ascending.

        Raises:
            ScheduleNotFound: No schedule has that name, and none had.
            InvalidArgument: The instant has no zone, or is not of our time.
        """
        instant = None if at is None else aware(at, "at")
        if instant is not None and not EARLIEST <= instant.year <= LATEST:
            raise InvalidArgument(f"at is {instant}: it must be in the years {EARLIEST} to {LATEST}")
        async with self._reader() as reader:
            return await reader.explain(name, instant)

    async def _views(self, name: str | None, next_fires: int) -> list[ScheduleView]:
        count = _whole("next_fires", next_fires, 1_000)
        async with self._reader() as reader:
            listed = await reader.schedules(name)
        # Not in the session, whose use is bounded in time.
        return await views(listed, count, self._now())

    @asynccontextmanager
    async def _reader(self) -> AsyncIterator[Reader]:
        async with self._connected().session() as connection:
            yield Reader(connection, self.schema, self._now())


def _whole(what: str, value: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidArgument(f"{what} is {value!r}: it must be a whole number from 1 to {most:,}")
    return value
