"""All techniques, two at a time; their numbers in one table and one file."""

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
AT_ONCE = 2

PARTS_OF_THE_TESTS = {
    "interleavings": ["tests/model/test_interleavings.py"],
    "edges": ["tests/model/test_edges.py", "tests/model/test_paths.py"],
}
"""Files that take long, each with a run of its own; the others share one."""


@dataclass(frozen=True)
class Technique:
    """A command that leaves its numbers in a file, and its exit status says whether all is well.

    Attributes:
        section: Under which the numbers are reported.
    """

    name: str
    section: str
    command: Sequence[str]
    numbers: Path


@dataclass(frozen=True)
class Run:
    """What came of a technique. Without numbers it did not get far enough to have any."""

    name: str
    section: str
    ok: bool
    seconds: float
    numbers: list[dict[str, Any]]


def techniques(level: str) -> list[Technique]:
    """Return what there is to do, the longest first: whoever is free takes the next."""
    quick = level == "quick"
    others = [f"--ignore={file}" for files in PARTS_OF_THE_TESTS.values() for file in files]
    mutants = _script("mutants", "--jobs", "1", *(["--sample", "12"] if quick else []))
    tlc = _script("tlc", "--jobs", "1", *(["--quick"] if quick else []))
    tests = [_tests(name, *files) for name, files in PARTS_OF_THE_TESTS.items()]
    last = [_tests("model", "tests/model", *others), _script("prove")]
    return [*tests, tlc, *last, mutants] if quick else [mutants, tlc, *tests, *last]


def _script(name: str, *arguments: str) -> Technique:
    numbers = PLACE / f"{name}.json"
    return Technique(name, name, [f"scripts/{name}", *arguments, "--json", str(numbers)], numbers)


def _tests(name: str, *arguments: str) -> Technique:
    command = ["-m", "pytest", "-p", "no:cacheprovider", "--durations=10", *arguments]
    return Technique(name, "tests", command, PLACE / f"{name}.jsonl")


def carry_out(technique: Technique, level: str) -> Run:
    """Run a technique, its output in a file of its own."""
    log = PLACE / f"{technique.name}.log"
    environment = os.environ | {
        "AWA_CRON_ASSURANCE": str(technique.numbers),
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
    return Run(technique.name, technique.section, status == 0, round(seconds, 1), numbers_in(technique.numbers))


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
    asked = techniques(level)
    say(f"{level}: {', '.join(each.name for each in asked)}; output in {PLACE.relative_to(ROOT)}")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = list(pool.map(lambda technique: carry_out(technique, level), asked))
    sections: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        sections.setdefault(run.section, []).extend(run.numbers)
    found = lines(sections)
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
