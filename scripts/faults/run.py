"""One run of scripts/chaos: a program strikes, everything heals, the accounts are balanced."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from assurance.java import Runner
from awa_cron import cronexpr
from awa_cron.errors import AwaCronError
from awa_cron.sql import DRIVER_ERRORS
from faults import CannotRunError, bad_rows, pooler, traces, verdict
from faults.apps.releases import CLOCKED, HASTY, STEADY
from faults.cluster import Cluster, a_cluster, maker
from faults.operators import Operators
from faults.program import LEADER, Step, program
from faults.server import Database, Server, a_database
from faults.strikes import Strikes
from faults.verdict import HEALTHY_P99_S

INSTANCES = 3
OPERATED = (
    "operated_coalesce",
    "operated_catch_up",
    "edited_coalesce",
    "edited_catch_up",
    "changing_policy",
    "moved_catch_up",
)
LANES = {
    "process": (
        "kill",
        "freeze",
        "black_hole",
        "lost_answers",
        "latency",
        "stale_write",
        "forgotten_clients",
        "forgotten_servers",
    ),
    "server": (
        "terminate_leader",
        "terminate_enqueue",
        "restart_fast",
        "restart_immediate",
        "idle_session_timeout",
        "statement_timeout",
        "row_lock",
        "pooler",
    ),
}
HELD = "changing_policy"
SETTLE_S = 30.0


class Run:
    """One run of a program.

    Args:
        seed: Of the program.
        seconds: How long faults strike.
        tell: Gets a line about each thing that happens.
        only: The faults that may strike; all, if it is empty.
        tlc: Starts TLC; or why it cannot be started.
        require_tlc: Whether a run fails of which TLC says nothing.
    """

    def __init__(
        self,
        seed: int,
        seconds: float,
        tell: Callable[[str], None],
        only: Sequence[str] = (),
        *,
        tlc: Runner | str,
        require_tlc: bool,
    ) -> None:
        self.seed = seed
        self._only = only
        self._tlc = tlc
        self._require_tlc = require_tlc
        self.seconds = seconds
        self._tell = tell
        self._began = 0.0
        self.steps: list[Step] = []
        self.struck: Counter[str] = Counter()
        self.skipped: dict[str, str] = {}
        self.trouble: list[str] = []
        self.diary: list[str] = []

    async def run(self, server: Server, directory: Path) -> dict[str, Any]:
        """Do it, and return the report."""
        self.steps = program(
            self.seed,
            self.seconds,
            instances=INSTANCES,
            faults={lane: await self._possible(kinds, server) for lane, kinds in LANES.items()},
            schedules=OPERATED,
        )
        async with AsyncExitStack() as stack:
            main = await stack.enter_async_context(a_database(server, "chaos"))
            aside = await stack.enter_async_context(a_database(server, "clocks"))
            cluster = await stack.enter_async_context(
                a_cluster(main, INSTANCES, maker(directory, "instance", "faults.apps.release_1:client"))
            )
            clocked = await stack.enter_async_context(a_cluster(aside, 2, _clocked(directory)))
            operators = Operators(cluster)
            stack.push_async_callback(operators.close)
            strikes = Strikes(server, cluster, directory, self.seed)
            cluster.start()
            clocked.start()
            await cluster.has_leader()
            await clocked.has_leader()
            self._began = time.monotonic()
            await self._perform(strikes, operators, clocked, directory)
            await self._heal(cluster, operators)
            for place in range(len(clocked.instances)):
                _set_clock(directory, place, 0.0)
            self.say(f"{len(bad_rows.BAD)} bad rows are written, and {HELD} is held")
            bad = await bad_rows.measured(cluster, operators, held=HELD)
            owed = await self._settle(cluster, operators)
            await asyncio.gather(cluster.stop(), clocked.stop())
            return await self._report(strikes, operators, cluster, clocked, bad | {"owed": owed})

    async def _report(
        self, strikes: Strikes, operators: Operators, cluster: Cluster, clocked: Cluster, found: dict[str, Any]
    ) -> dict[str, Any]:
        """Balance both databases, and tell what the run has counted."""
        books, aside = await verdict.Books.of(cluster.database), await verdict.Books.of(clocked.database)
        judged = await self._judged(cluster, clocked)
        undone = await verdict.unfinished(cluster.database)
        everybody = [*cluster.instances, *clocked.instances, *strikes.pooled]
        crashes = [f"{each}: {crash}" for each in everybody for crash in each.crashes()]
        owed, bad = found.pop("owed"), found
        checks = {
            "nothing_lost": not (owed or books.broken(verdict.LOST) or aside.broken(verdict.LOST)),
            "nothing_twice": not (books.broken(verdict.DUPLICATED) or aside.broken(verdict.DUPLICATED)),
            "the_log_verifies": not (books.findings or aside.findings),
            **judged.checks(required=self._require_tlc),
            "every_job_ran": not undone,
            "no_instance_crashed": not crashes,
            "bad_rows_held_nothing_back": bad["healthy"]["jobs"] > 0 and bad["healthy"]["p99"] < HEALTHY_P99_S,
            "bad_rows_reported_and_shown": not (bad["unseen"] or bad["unreported"] or bad["repeated"]),
        }
        report = {
            "ok": all(checks.values()),
            "seed": self.seed,
            "seconds": self.seconds,
            "faults_injected": self.struck.total(),
            "faults": dict(sorted(self.struck.items())),
            "skipped": self.skipped,
            "ended_in_the_middle_of_atomic_enqueue": strikes.in_the_middle,
            "stale_writes": strikes.stale_writes,
            "operations": dict(sorted(operators.done.items())),
            "instances_started": sum(each.starts for each in everybody),
            "ends_nobody_asked_for": verdict.ends(everybody),
            **books.numbers,
            "owed": owed,
            "tlc": judged.numbers,
            # A pause makes the fires of the others late, and that is no fault.
            "lateness_s": await verdict.lateness(cluster.database, STEADY),
            "bad_rows": bad,
            "clocks": aside.numbers,
            "verdicts": checks,
            "trouble": self.trouble,
            "unfinished": undone[:20],
            "crashes": crashes[:5],
        }
        if not report["ok"]:
            report |= {
                "program": [str(step) for step in self.steps],
                "diary": self.diary,
                "windows": books.windows | aside.windows,
                "tlc_rejects": judged.rejections,
                "tlc_does_not_notice": judged.unnoticed,
                "tlc_and_verify_disagree": judged.disagreements[: traces.SHOWN],
            }
        return report

    async def _judged(self, cluster: Cluster, clocked: Cluster) -> traces.Judged:
        """Ask TLC about both databases."""
        if isinstance(self._tlc, str):
            return traces.Judged(missing=self._tlc)
        logs = [
            (await traces.read(cluster.database), HASTY.pass_limit),
            (await traces.read(clocked.database), CLOCKED.pass_limit),
        ]
        return await asyncio.to_thread(traces.judge, self._tlc, logs)

    def say(self, text: str) -> None:
        """Tell what happens, and keep it for the report of a failure."""
        line = f"{time.monotonic() - self._began:7.2f} s  {text}"
        self.diary.append(line)
        self._tell(line)

    async def _possible(self, kinds: Sequence[str], server: Server) -> list[str]:
        """Leave out what cannot be done here, and say so."""
        if not server.ours:
            self._skip("the server is not the harness's own", "restart_fast", "restart_immediate")
            probe = Database(server.dsn)
            if not await probe.value("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
                self._skip("the role may not change settings", "idle_session_timeout", "statement_timeout")
            probe.close()
        if not pooler.installed():
            self._skip(pooler.MISSING, "pooler")
        return [kind for kind in kinds if kind not in self.skipped and (not self._only or kind in self._only)]

    def _skip(self, reason: str, *kinds: str) -> None:
        self.skipped |= dict.fromkeys(kinds, reason)

    async def _perform(self, strikes: Strikes, operators: Operators, clocked: Cluster, directory: Path) -> None:
        """Run every lane of the program beside the others."""
        faults = strikes.kinds()

        async def step_clock(step: Step) -> None:
            if step.target == LEADER:
                found = await clocked.leader()
                place = found[0] if found is not None else 0
            else:
                place = int(step.target)
            _set_clock(directory, place, step.amount)
            self.struck["step_clock"] += 1

        async def strike(step: Step) -> None:
            self.struck[step.what] += 1
            await faults[step.what](step)

        ways: Mapping[str, Callable[[Step], Awaitable[None]]] = {
            "operator": operators.act,
            "deploy": operators.act,
            "clock": step_clock,
        }
        lanes: dict[str, list[Step]] = {}
        for step in self.steps:
            lanes.setdefault(step.lane, []).append(step)
        async with asyncio.TaskGroup() as group:
            for name, steps in lanes.items():
                group.create_task(self._lane(steps, ways.get(name, strike)))

    async def _lane(self, steps: Sequence[Step], act: Callable[[Step], Awaitable[None]]) -> None:
        for step in steps:
            await asyncio.sleep(max(0.0, self._began + step.at_s - time.monotonic()))
            self.say(f"{step.what} {step.target}, {step.seconds:.1f} s, {step.amount:g}")
            try:
                await act(step)
            except (*DRIVER_ERRORS, AwaCronError, CannotRunError) as error:
                self.trouble.append(f"{step}: {type(error).__name__}: {error}")
                self.say(f"{step.what} did not come about: {error}")

    async def _heal(self, cluster: Cluster, operators: Operators) -> None:
        """End all faults, and let one release run everywhere."""
        self.say("all faults are over")
        cluster.start()
        for place, instance in enumerate(cluster.instances):
            if not instance.module.startswith("faults.apps.release_2"):
                await operators.deploy(place, 2)
        for name in OPERATED:
            await operators.operate("resume", name)
        await cluster.has_leader()
        await asyncio.sleep(3)

    async def _settle(self, cluster: Cluster, operators: Operators) -> list[str]:
        """Choose the end; wait until what was due before it is enqueued, and until the jobs have run.

        Returns:
            The schedules that still owe something that was due before the end.
        """
        database = cluster.database
        until = await database.value("SELECT date_trunc('second', clock_timestamp())")
        self.say(f"the end: all that was due by {until:%H:%M:%S} must become jobs, and all jobs must run")

        async def overdue() -> list[str]:
            return [
                row["name"]
                for row in await database.fetch("SELECT * FROM awa.cron_jobs")
                if cronexpr.latest_due(
                    row["cron_expr"],
                    row["timezone"],
                    after=max(filter(None, (row["last_enqueued_at"], row["anchored_at"]))),
                    until=until,
                )
            ]

        await _until(overdue, SETTLE_S)
        owed = await overdue()
        for row in await database.fetch("SELECT name FROM awa.cron_jobs"):
            await operators.operate("pause", row["name"])
        waiting = "SELECT count(*) FROM awa.jobs WHERE state NOT IN ('completed', 'failed', 'cancelled')"
        hurry = "UPDATE awa.jobs SET run_at = now() WHERE state = 'retryable' AND run_at > now() RETURNING 0"

        async def unfinished() -> object:
            await database.fetch(hurry)  # their next attempt may be minutes away
            return await database.value(waiting)

        await _until(unfinished, SETTLE_S)
        return owed


async def _until(is_left: Callable[[], Awaitable[object]], timeout_s: float) -> None:
    """Wait until nothing is left, or for so long: the accounts then tell what is."""
    deadline = time.monotonic() + timeout_s
    while await is_left() and time.monotonic() < deadline:  # noqa: ASYNC110 (it is in other processes)
        await asyncio.sleep(0.2)


def _clocked(directory: Path) -> Callable[[int, str], Any]:
    def make(place: int, dsn: str) -> Any:
        _set_clock(directory, place, 0.0)
        module = "faults.apps.clocked:client"
        variables = {"FAULTS_CLOCK": str(directory / f"clock_{place}")}
        return maker(directory, "clocked", module, "--no-work", **variables)(place, dsn)

    return make


def _set_clock(directory: Path, place: int, seconds: float) -> None:
    beside = directory / f"clock_{place}.new"
    beside.write_text(str(seconds))
    beside.replace(directory / f"clock_{place}")
