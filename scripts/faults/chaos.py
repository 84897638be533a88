"""Real instances, operators and deployments, while faults strike; then the accounts.

Three instances share schedules that fire each second. A program drawn from the seed kills and freezes processes,
makes the network slow, silent or half open, ends sessions and statements, restarts the server, sets its timeouts,
while operators pause, resume, trigger and remove, and two releases with different expressions replace each other.
Two more instances on a database of their own have clocks that are stepped by an hour: every statement gets that
clock, so what each enqueues is due by its own clock, and only what is enqueued can be asked for. In the end
everything must balance: no instant lost, none twice. awa-cron verify judges the whole log of both databases, TLC a
sample of it, the busiest windows first, and some windows that are falsified, which both must reject. The same seed
gives the same program, not the same run.

The server is the one that AWA_CRON_TEST_DSN names, which is not restarted, or an embedded one. TLC is the one that
TLA2TOOLS_JAR names, or that of the extra 'spec'.
Exit status: 0 everything balances, 1 not, 2 wrong usage, or no TLC where it is required.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import assurance
from assurance.java import Runner, find_runner
from awa_cron.errors import AwaCronError
from faults import CannotRunError
from faults.run import LANES, Run
from faults.server import a_server


def _tlc() -> Runner | str:
    try:
        return find_runner()
    except assurance.CannotRunError as error:
        return str(error)


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    for name, value in report.items():
        if isinstance(value, list):
            yield f"{name}:" if value else f"{name}: none"
            yield from (f"    {each}" for each in value)
        elif isinstance(value, dict):
            yield f"{name}: " + ", ".join(f"{key} {each}" for key, each in value.items())
        else:
            yield f"{name}: {value}"


def main() -> int:
    """Read the command line, run, and report."""
    parser = argparse.ArgumentParser(
        prog="scripts/chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=0.5, help="how long faults strike (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the program (default: %(default)s)")
    kinds = [kind for lane in LANES.values() for kind in lane]
    parser.add_argument("--only", action="append", choices=kinds, help="strike with this fault only; repeatable")
    parser.add_argument("--json", action="store_true", help="print the report as JSON, and nothing else")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the instances' logs here")
    parser.add_argument("--require-tlc", action="store_true", help="fail where TLC cannot judge the run")
    options = parser.parse_args()
    if not 0 < options.minutes <= 24 * 60:
        parser.error("--minutes must be above 0 and at most a day")
    tlc = _tlc()
    if options.require_tlc and isinstance(tlc, str):
        parser.error(f"--require-tlc: {tlc}")
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)  # its pool complains of each restart

    def tell(line: str) -> None:
        if not options.json:
            print(line, flush=True)

    seconds, only = 60 * options.minutes, options.only or ()
    run = Run(options.seed, seconds, tell, only, tlc=tlc, require_tlc=options.require_tlc)
    with tempfile.TemporaryDirectory(prefix="awa_cron_chaos_", ignore_cleanup_errors=True) as name:
        directory = options.keep or Path(name)
        directory.mkdir(parents=True, exist_ok=True)
        try:
            with a_server() as server:
                report = asyncio.run(run.run(server, directory.resolve()))
        except (CannotRunError, AwaCronError) as error:
            sys.exit(f"scripts/chaos: {error}")
    print(json.dumps(report, indent=1) if options.json else "\n".join(_lines(report)))
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
