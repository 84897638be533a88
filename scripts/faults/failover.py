"""From the leader's death to the next fire, measured.

Three instances share a schedule that fires each second. Again and again the leader is struck, at any moment of its
second; the time runs until the first fire that a new term enqueues, by the database's clock.

    kill        SIGKILL: the system closes its connections, and the server frees the lock at once
    terminate   pg_terminate_backend on the session that holds the lock; the leader itself may be elected again
    freeze      SIGSTOP: the connections stay open, and the server ends the silent session when the lease is over
    black_hole  nothing passes between the leader and the server, in either direction; the same

What governs them: the lease is two ping intervals and one ping timeout, from the last ping; an election interval,
and up to a quarter more, passes between attempts; a pass starts with each second.
Exit status: 0 all measured, 1 not, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import logging
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import awa_cron
from awa_cron.errors import AwaCronError
from faults import CannotRunError
from faults.bad_rows import percentile
from faults.cluster import Cluster, a_cluster, maker
from faults.server import Server, a_database, a_server

INSTANCES = 3
DEFAULTS = awa_cron.Settings()
GOVERNING = ("ping_interval_s", "ping_timeout_s", "election_interval_s")

SUCCESSION = """
SELECT extract(epoch FROM term.recorded_at - $1)::float8 AS leader_s,
    extract(epoch FROM fire.recorded_at - $1)::float8 AS fire_s
FROM (
    SELECT e.id, e.recorded_at
    FROM awa.cron_events AS e
    WHERE e.action = 'acquire_leader' AND e.recorded_at > $1
    ORDER BY e.id
    LIMIT 1
) AS term
JOIN awa.cron_events AS fire ON fire.action = 'atomic_enqueue' AND fire.id > term.id
ORDER BY fire.id
LIMIT 1
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One row of the table, in seconds."""

    death: str
    runs: int
    leader_p50: float
    leader_p99: float
    fire_p50: float
    fire_p99: float
    fire_longest: float


class Bench:
    """Strikes the leader of a cluster, and measures.

    Args:
        cluster: Running.
        settings: Of its instances.
        seed: Decides the moments.
    """

    def __init__(self, cluster: Cluster, settings: awa_cron.Settings, seed: int) -> None:
        self._cluster = cluster
        self._settings = settings
        self._dice = random.Random(seed)  # noqa: S311
        self._longest_s = settings.leader_idle_timeout_s + 2 * settings.election_interval_s + 15

    async def measure(self, death: str, runs: int, tell: Callable[[str], None]) -> Line:
        """Strike so often in one way.

        Raises:
            CannotRunError: No successor came.
        """
        found = []
        for number in range(1, runs + 1):
            leader_s, fire_s = await self._once(death)
            tell(f"{death} {number}: a leader after {leader_s:.2f} s, a fire after {fire_s:.2f} s")
            found.append((leader_s, fire_s))
        leaders, fires = sorted(leader for leader, _ in found), sorted(fire for _, fire in found)
        return Line(
            death,
            runs,
            percentile(leaders, 50),
            percentile(leaders, 99),
            percentile(fires, 50),
            percentile(fires, 99),
            round(fires[-1], 3),
        )

    async def _once(self, death: str) -> tuple[float, float]:
        place = await self._settled()
        await asyncio.sleep(self._dice.uniform(0, 2 * self._settings.ping_interval_s))
        instance, wire = self._cluster.instances[place], self._cluster.wires[place]
        backend = await self._cluster.leader()
        if backend is None or backend[0] != place:
            return await self._once(death)
        value = self._cluster.database.value
        struck: datetime
        match death:
            case "kill":
                struck = await value("SELECT clock_timestamp()")
                instance.kill()
            case "terminate":
                struck = await value("SELECT clock_timestamp() FROM pg_terminate_backend($1)", backend[1])
            case "freeze":
                struck = await value("SELECT clock_timestamp()")
                instance.freeze()
            case _:
                struck = await value("SELECT clock_timestamp()")
                wire.fall_silent()
        try:
            return await self._succession(death, struck)
        finally:
            instance.thaw()
            wire.speak()
            instance.start()

    async def _succession(self, death: str, struck: datetime) -> tuple[float, float]:
        deadline = time.monotonic() + self._longest_s
        while time.monotonic() < deadline:
            if rows := await self._cluster.database.fetch(SUCCESSION, struck):
                return rows[0]["leader_s"], rows[0]["fire_s"]
            await asyncio.sleep(0.05)
        raise CannotRunError(f"{death}: no successor within {self._longest_s:.0f} s")

    async def _settled(self) -> int:
        """Wait until all run, and one has led for two seconds; return which."""
        for instance in self._cluster.instances:
            while len(instance.records("running")) < instance.starts:  # noqa: ASYNC110 (it is another process)
                await asyncio.sleep(0.1)
        while True:
            place = await self._cluster.has_leader()
            await asyncio.sleep(2)
            if await self._cluster.has_leader() == place:
                return place


async def measured(
    server: Server,
    directory: Path,
    settings: awa_cron.Settings,
    *,
    runs: int,
    seed: int,
    tell: Callable[[str], None],
) -> list[Line]:
    """Measure every kind of death."""
    given = json.dumps(dataclasses.asdict(settings))
    make = maker(directory, "standby", "faults.apps.standby:client", "--no-work", FAULTS_SETTINGS=given)
    async with a_database(server, "failover") as database, a_cluster(database, INSTANCES, make) as cluster:
        cluster.start()
        bench = Bench(cluster, settings, seed)
        lines = [await bench.measure(death, runs, tell) for death in ("kill", "terminate", "freeze", "black_hole")]
        await cluster.stop()
    return lines


def table(lines: list[Line], settings: awa_cron.Settings) -> str:
    """Return the README's table."""
    rows = [
        "| the leader's death | runs | next leader, p50 | p99 | next fire, p50 | p99 |",
        "|---|---|---|---|---|---|",
        *(
            f"| {line.death} | {line.runs} | {line.leader_p50:.2f} s | {line.leader_p99:.2f} s"
            f" | {line.fire_p50:.2f} s | {line.fire_p99:.2f} s |"
            for line in lines
        ),
    ]
    governing = ", ".join(f"`{name}={getattr(settings, name):g}`" for name in GOVERNING)
    rows += ["", f"{INSTANCES} instances; {governing}: a lease of {settings.leader_idle_timeout_s:g} s."]
    return "\n".join(rows)


def main() -> int:
    """Read the command line, measure, and report."""
    parser = argparse.ArgumentParser(
        prog="scripts/failover", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=30, help="of each kind (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: %(default)s)")
    parser.add_argument("--ping", type=float, default=1.0, help="ping interval in seconds (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=1.0, help="ping timeout (default: %(default)s)")
    parser.add_argument("--election", type=float, default=0.5, help="election interval (default: %(default)s)")
    parser.add_argument("--defaults", action="store_true", help="measure with the library's defaults; takes hours")
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    settings = DEFAULTS
    if not options.defaults:
        settings = dataclasses.replace(
            DEFAULTS,
            ping_interval_s=options.ping,
            ping_timeout_s=options.timeout,
            election_interval_s=options.election,
        )
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)

    def tell(line: str) -> None:
        if not options.json:
            print(line, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="awa_cron_failover_", ignore_cleanup_errors=True) as name:
        try:
            with a_server() as server:
                lines = asyncio.run(
                    measured(
                        server,
                        Path(name).resolve(),
                        settings,
                        runs=options.runs,
                        seed=options.seed,
                        tell=tell,
                    )
                )
        except (CannotRunError, AwaCronError) as error:
            sys.exit(f"scripts/failover: {error}")
    report: dict[str, Any] = {
        "settings": {each: getattr(settings, each) for each in GOVERNING}
        | {"lease_s": settings.leader_idle_timeout_s},
        "instances": INSTANCES,
        "deaths": [dataclasses.asdict(line) for line in lines],
    }
    print(json.dumps(report, indent=1) if options.json else table(lines, settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
