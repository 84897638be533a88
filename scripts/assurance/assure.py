"""All techniques, one after the other in two lanes, one a core; their numbers in one table and one file."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assurance import ROOT
from assurance.findings import Line, lines

ABOUT = "Run everything that assures protocol and code. Exit status: 0 all as it should be, 1 not, 2 wrong usage."

BUILD = ROOT / "build"
PLACE = BUILD / "assurance"
REPORT = BUILD / "assurance.json"
LEDGER = PLACE / "tests.jsonl"


@dataclass(frozen=True)
class Technique:
    """A command that leaves its numbers in a file, and its exit status says whether all is well."""

    name: str
    command: Sequence[str]
    numbers: Path


@dataclass(frozen=True)
class Run:
    """What came of a technique. Without numbers it did not get far enough to have any."""

    name: str
    ok: bool
    seconds: float
    numbers: list[dict[str, Any]]


def techniques(level: str) -> tuple[list[Technique], list[Technique]]:
    """Return the two lanes; about as long, the longest first."""

    def script(name: str, *arguments: str) -> Technique:
        numbers = PLACE / f"{name}.json"
        return Technique(name, [f"scripts/{name}", *arguments, "--json", str(numbers)], numbers)

    tests = Technique("tests", ["-m", "pytest", "-p", "no:cacheprovider", "tests/model"], LEDGER)
    quick = level == "quick"
    return (
        [
            script("tlc", "--jobs", "1", *(["--quick"] if quick else [])),
            script("prove"),
            script("mutants", "--jobs", "1", *(["--sample", "12"] if quick else [])),
        ],
        [tests],
    )


def carry_out(technique: Technique, level: str) -> Run:
    """Run a technique, its output in a file of its own."""
    log = PLACE / f"{technique.name}.log"
    environment = os.environ | {
        "AWA_CRON_ASSURANCE": str(LEDGER),
        "AWA_CRON_ASSURANCE_LEVEL": level,
        "HYPOTHESIS_PROFILE": "ci",
    }
    started = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        status = subprocess.call(
            [sys.executable, *technique.command], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
    seconds = time.monotonic() - started
    say(f"{technique.name}: {'done' if status == 0 else f'FAILED (status {status}), see {log}'} in {seconds:.0f} s")
    if status != 0:
        say("\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-30:]))
    return Run(technique.name, status == 0, round(seconds, 1), numbers_in(technique.numbers))


def numbers_in(path: Path) -> list[dict[str, Any]]:
    """Return what a technique has left: a JSON list, or a line of JSON each."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    found = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
    return found if isinstance(found, list) else [found]


def report(level: str, runs: Sequence[Run], found: Sequence[Line], seconds: float) -> dict[str, Any]:
    """Return what the file holds."""
    return {
        "ok": all(run.ok for run in runs) and all(line.ok for line in found),
        "level": level,
        "seconds": round(seconds, 1),
        "machine": {"system": platform.system(), "processors": os.cpu_count(), "python": platform.python_version()},
        "table": [{"technique": line.technique, "found": line.found, "ok": line.ok} for line in found],
        "techniques": {run.name: {"ok": run.ok, "seconds": run.seconds, "numbers": run.numbers} for run in runs},
    }


def say(text: str) -> None:
    """Print at once: a run takes minutes."""
    print(text, flush=True)


def main() -> int:
    """Do it."""
    parser = argparse.ArgumentParser(prog="scripts/assure", description=ABOUT)
    parser.add_argument("--full", action="store_true", help="everything, not a sample")
    level = "full" if parser.parse_args().full else "quick"
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    started = time.monotonic()
    lanes = techniques(level)
    say(f"{level}: {', '.join(t.name for lane in lanes for t in lane)}; output in {PLACE.relative_to(ROOT)}")
    with ThreadPoolExecutor(len(lanes)) as pool:
        done = list(pool.map(lambda lane: [carry_out(technique, level) for technique in lane], lanes))
    runs = [run for lane in done for run in lane]
    found = lines({run.name: run.numbers for run in runs})
    written = report(level, runs, found, time.monotonic() - started)
    REPORT.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    say("")
    width = max(len(line.technique) for line in found)
    for line in found:
        say(f"{'  ' if line.ok else '! '}{line.technique:{width}}  {line.found}")
    verdict = "as it should be" if written["ok"] else "NOT as it should be"
    say(f"\n{level}: {verdict}, in {written['seconds']:.0f} s; {REPORT.relative_to(ROOT)}")
    return 0 if written["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
