"""One measurement in a process of its own: python -m benchmarks.measure SUBJECT.CASE DSN ARGUMENTS-AS-JSON."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from functools import partial

from benchmarks import CannotMeasureError

PLACES = {
    "ours.herd": "benchmarks.herd:ours",
    "floor.herd": "benchmarks.herd:bare",
    "ours.idle": "benchmarks.idle:ours",
    "ours.outage": "benchmarks.outage:ours",
    "ours.steady": "benchmarks.steady:ours",
    "ours.sync": "benchmarks.syncing:ours",
    "ours.jobs": "benchmarks.jobs:ours",
    "awa-pg.herd": "benchmarks.peers.awa:herd",
    "awa-pg.jobs": "benchmarks.peers.awa:jobs",
    "procrastinate.herd": "benchmarks.peers.procrastinating:herd",
    "procrastinate.jobs": "benchmarks.peers.procrastinating:jobs",
    "pgqueuer.herd": "benchmarks.peers.pgqueuing:herd",
    "pgqueuer.jobs": "benchmarks.peers.pgqueuing:jobs",
    "apscheduler.herd": "benchmarks.peers.apscheduling:herd",
}


def main() -> None:
    place, dsn, arguments = sys.argv[1:]
    sys.modules["opentelemetry"] = None  # type: ignore[assignment]  # metrics are an extra that the peers have not
    module, _, function = PLACES[place].partition(":")
    try:
        run = partial(getattr(importlib.import_module(module), function), dsn, **json.loads(arguments))
    except ImportError as error:
        sys.exit(f"not installed: {error}")
    try:
        found = asyncio.run(run())
    except CannotMeasureError as error:
        sys.exit(str(error))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
