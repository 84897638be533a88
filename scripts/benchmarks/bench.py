"""Herds, idle ticks, outages, lateness, jobs and syncs, beside peers and beside the bare SQL, on one server.

Each measurement has a fresh database and a process of its own; where it is taken several times, that is in turns
with those that it is compared with, and the median counts.
Peers are those of the extra 'bench'. The server is the one that AWA_CRON_TEST_DSN names, or an embedded one with
Postgres's defaults. With --write the results go to docs/benchmarks.json, and docs/benchmarks.md and its plot are
drawn from that; --write alone with --from draws them again.
Exit status: 0 all was measured, 1 something of ours failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import ROOT, gauges, place, plan, report
from benchmarks.plan import Measurement

LIMIT_S = 600


def main() -> int:
    """Read the command line, measure, and report."""
    options, results = _asked()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # or the server would outlive us
    if results is None:
        with place.server() as dsn:
            results = {"quick": options.quick} | run(dsn, options.chosen)
    if options.json:
        options.json.write_text(report.as_json(results), encoding="utf-8")
    if options.write:
        report.write(ROOT / "docs", results)
    print(report.tables(results))
    failed = [each for each in results["results"] if each["subject"] in report.OURS and each["problem"]]
    for each in failed:
        print(f"scripts/bench: {each['case']} ({each['variant']}): {each['problem']}", file=sys.stderr)
    return 1 if failed else 0


def _asked() -> tuple[argparse.Namespace, dict[str, Any] | None]:
    """Return the options, with the measurements that are ``chosen``, and the results that are taken instead."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small numbers, in under a minute")
    parser.add_argument("--only", action="append", metavar="CASE", help="this case only; repeatable")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here too")
    parser.add_argument("--from", dest="source", type=Path, metavar="FILE", help="measure nothing; take these")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.*")
    options = parser.parse_args()
    if options.quick and options.write:
        parser.error("--quick measures small numbers, and --write publishes: leave one out")
    if options.source and options.only:
        parser.error("--only says what to measure, and with --from nothing is measured: leave one out")
    measurements = list(plan.quick() if options.quick else plan.full())
    cases = {each.case for each in measurements}
    if unknown := sorted(set(options.only or ()) - cases):
        parser.error(f"--only {unknown[0]}: it is one of {', '.join(sorted(cases))}")
    options.chosen = [each for each in measurements if not options.only or each.case in options.only]
    results = None
    if options.source:
        try:
            results = json.loads(options.source.read_text(encoding="utf-8"))
            report.tables(results)
        except (OSError, ValueError, LookupError, TypeError) as error:
            parser.error(f"--from {options.source} is not what --json has written: {error!r}")
    if options.json:
        try:  # now, and not when all is measured
            options.json.open("a").close()
        except OSError as error:
            parser.error(f"--json {options.json} cannot be written: {error.strerror}")
    return options, results


def run(dsn: str, measurements: Iterable[Measurement]) -> dict[str, Any]:
    """Take the measurements, one at a time."""
    results: dict[str, Any] = {
        "at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": place.machine(dsn),
    }
    series = [list(each) for _, each in itertools.groupby(measurements, key=lambda one: one.series)]
    results["results"] = [found for each in series for found in _in_turns(dsn, each)]
    results["machine"]["busy_after"] = place.busy()
    return results


def _in_turns(dsn: str, measurements: list[Measurement]) -> list[dict[str, Any]]:
    """Take measurements that are compared with each other in turns: a machine is not always as fast."""
    takings = [Taking(each) for each in measurements]
    for _ in range(max(each.runs for each in measurements)):
        for taking in takings:
            taking.take(dsn)
    return [taking.result() for taking in takings]


class Taking:
    """A measurement while it is taken, so many times as it says, or until it fails."""

    def __init__(self, measurement: Measurement) -> None:
        self._measurement = measurement
        self._runs: list[dict[str, float | None]] = []
        self._problem: str | None = None

    def take(self, dsn: str) -> None:
        """Take it once more, if it is to be."""
        if self._problem is not None or len(self._runs) == self._measurement.runs:
            return
        with place.database(dsn) as database:
            found = _once(database, self._measurement)
        if isinstance(found, str):
            self._problem = found
            self._tell(found)
        else:
            self._runs.append(found)
            self._tell(_told(found))

    def result(self) -> dict[str, Any]:
        """Return the medians, and all that they are of."""
        runs = self._runs
        values = {name: _median([run[name] for run in runs]) for name in runs[0]} if runs else {}
        return dataclasses.asdict(self._measurement) | {
            "values": values,
            "all_runs": runs,
            "problem": self._problem,
        }

    def _tell(self, what: str) -> None:
        one = self._measurement
        size = one.arguments.get("count", "")
        print(f"{one.case} {size} {one.subject} {one.variant}: {what}", file=sys.stderr, flush=True)


def _told(values: dict[str, float | None]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items() if value is not None)


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return gauges.median(known) if known else None


def _once(dsn: str, measurement: Measurement) -> dict[str, float | None] | str:
    """Return what one process measured, or why it did not."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.measure",
        measurement.place,
        dsn,
        json.dumps(measurement.arguments),
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT / "scripts")))}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not done within {LIMIT_S} s"
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return lines[-1] if lines else f"ended with status {done.returncode}"
    found: dict[str, float | None] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.exit(main())
