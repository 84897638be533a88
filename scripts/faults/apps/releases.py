"""What the instances register, in two releases that define some schedules differently."""

from __future__ import annotations

import asyncio
import dataclasses
import os

import asyncpg

import awa_cron

HASTY = awa_cron.Settings(
    ping_interval_s=1.0,
    ping_timeout_s=1.0,
    election_interval_s=0.5,
    sync_interval_s=2.0,
    statement_timeout_s=3.0,
    poll_interval_s=0.5,
    heartbeat_interval_s=1.0,
    rescue_after_s=5.0,
    shutdown_timeout_s=3.0,
    pass_limit=5,
)
"""A lease of 3 s: many leaders follow each other. Few fires a pass: edits have something to drop."""

CLOCKED = dataclasses.replace(HASTY, pass_limit=1_000)
"""Of instances whose clock is stepped by an hour."""

EACH_SECOND = "* * * * * *"

STEADY = ("steady_coalesce", "steady_catch_up")
"""Schedules that no operator touches and no release changes."""


class Recorder:
    """Writes into a table of this module's own that a run has come to its end."""

    def __init__(self) -> None:
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._turn = asyncio.Lock()

    async def record(self, job: awa_cron.Job) -> None:
        """Handle a job."""
        async with self._turn, asyncio.timeout(3):
            if self._connection is None or self._connection.is_closed():
                self._connection = await asyncpg.connect(os.environ["AWA_CRON_DSN"])
            try:
                await self._connection.execute(
                    "INSERT INTO runs (job_id, attempt) VALUES ($1, $2)", job.id, job.attempt
                )
            except BaseException:
                self._connection.terminate()
                raise


def client(release: int) -> awa_cron.Client:
    """Return the client of a release, 1 or 2."""
    made = awa_cron.Client(settings=HASTY)
    recorder = Recorder()
    made.task("work")(recorder.record)

    def register(name: str, policy: str, *expressions: str, zones: tuple[str, ...] = ("UTC",)) -> None:
        made.periodic(
            name,
            expressions[(release - 1) % len(expressions)],
            kind="work",
            timezone=zones[(release - 1) % len(zones)],
            missed_fire_policy=policy,
            args={"release": release} if len(expressions) > 1 else {},
        )

    register("steady_coalesce", "coalesce", EACH_SECOND)
    register("steady_catch_up", "catch_up", EACH_SECOND)
    register("operated_coalesce", "coalesce", EACH_SECOND)
    register("operated_catch_up", "catch_up", EACH_SECOND)
    register("edited_coalesce", "coalesce", "*/2 * * * * *", "1-59/2 * * * * *")
    register("edited_catch_up", "catch_up", EACH_SECOND, "*/3 * * * * *")
    register("moved_catch_up", "catch_up", "*/5 * * * * *", zones=("Asia/Kathmandu", "Pacific/Auckland"))
    register("changing_policy", ("coalesce", "catch_up")[release - 1], EACH_SECOND)
    if release > 1:
        register("added_later", "catch_up", EACH_SECOND)
    return made
