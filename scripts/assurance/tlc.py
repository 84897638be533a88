"""Runs TLC on one configuration and reads what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from assurance import SPEC
from assurance.java import Runner
from assurance.manifest import Expectation, listed_properties

TIMEOUT_S = 900
COMPLETED = "Model checking completed. No error has been found."
TEMPORAL_CHECKED = "Finished checking temporal properties"
TEMPORAL_VIOLATED = re.compile(r"Temporal propert(?:y|ies) .*violated")
# A property of another module, which TLC tells by its place.
REFINEMENT_VIOLATED = re.compile(r"Action property line .* is violated")

# TLC unpacks its standard modules into the temporary directory, where two runs at once delete each other's:
# the temporary directory is the run's own.
JVM_FLAGS = ["-Xms64m", "-Xmx1g", "-XX:+UseParallelGC", "-Djava.io.tmpdir=."]
# A run that visits few states is over before the optimising compiler pays for itself.
SHORT_RUN_FLAGS = ["-XX:TieredStopAtLevel=1"]
SHORT_RUN_STATES = 12_000
# One worker: the order of exploration, and with it depth and counterexample, is the same each time.
TLC_FLAGS = ["-deadlock", "-workers", "1", "-metadir", "states", "-config", "model.cfg"]


@dataclass(frozen=True)
class Outcome:
    """What one run of TLC said; states only if it visited all of them, generated ones count once per step."""

    result: str
    distinct_states: int | None
    generated_states: int | None
    depth: int | None
    seconds: float
    output: str


def start(
    runner: Runner, work: Path, module: str, cfg: str, *, short: bool, options: Iterable[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run TLC on the module under the text of a cfg, in ``work``, which must not be shared with another run.

    Raises:
        subprocess.TimeoutExpired: After ``TIMEOUT_S``.
    """
    for path in SPEC.glob("*.tla"):
        shutil.copy(path, work)
    (work / "model.cfg").write_text(cfg, encoding="utf-8")
    jvm_flags = JVM_FLAGS + (SHORT_RUN_FLAGS if short else [])
    return subprocess.run(
        [*runner.arguments(work, jvm_flags), *TLC_FLAGS, *options, f"{module}.tla"],
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )


def check(runner: Runner, expectation: Expectation, *, coverage: bool = False) -> Outcome:
    """Run TLC once on a configuration of the manifest."""
    cfg = expectation.cfg
    short = expectation.violates is not None or (expectation.distinct_states or 0) < SHORT_RUN_STATES
    options = ["-coverage", "60"] if coverage else []
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tlc-") as work:
        try:
            finished = start(runner, Path(work), expectation.module, cfg, short=short, options=options)
        except subprocess.TimeoutExpired:
            return Outcome(f"stopped after {TIMEOUT_S} s", None, None, None, float(TIMEOUT_S), "")
    outcome = read_outcome(
        finished.stdout,
        round(time.monotonic() - started, 1),
        temporal=expectation.kind == "liveness",
        properties=listed_properties(cfg)[1],
    )
    if finished.returncode != 0 and outcome.result == "no error":
        return replace(outcome, result=f"TLC ended with status {finished.returncode}")
    return outcome


def named_violation(output: str, properties: list[str]) -> str | None:
    """Return what TLC says was violated; temporal properties and refinements have no name there: one in a cfg."""
    named = re.search(r"(?:Invariant|Action property) (\w+) is violated", output)
    if named:
        return named[1]
    if TEMPORAL_VIOLATED.search(output) or REFINEMENT_VIOLATED.search(output):
        return properties[0] if len(properties) == 1 else "one of several properties"
    return None


def read_outcome(output: str, seconds: float, *, temporal: bool, properties: list[str]) -> Outcome:
    """Turn TLC's output into an outcome; success needs TLC's own words for it, not just no error."""
    if violated := named_violation(output, properties):
        length = len(re.findall(r"^State \d+: ", output, re.MULTILINE))
        depth = None if TEMPORAL_VIOLATED.search(output) else length
        return Outcome(f"{violated} violated", None, None, depth, seconds, output)
    finished = COMPLETED in output and (not temporal or TEMPORAL_CHECKED in output)
    everything = r"(\d+) states generated, (\d+) distinct states found, 0 states left on queue"
    states = re.findall(everything, output)
    depth_line = re.search(r"depth of the complete state graph search is (\d+)", output)
    return Outcome(
        "no error" if finished else "TLC did not finish",
        int(states[-1][1]) if states else None,
        int(states[-1][0]) if states else None,
        int(depth_line[1]) if depth_line else None,
        seconds,
        output,
    )


def differences(expectation: Expectation, outcome: Outcome) -> list[str]:
    """Say where the outcome is not what the manifest expects."""
    if outcome.result != expectation.wanted:
        return [f"expected {expectation.wanted}, got {outcome.result}"]
    found = []
    if expectation.distinct_states != outcome.distinct_states:
        found.append(f"expected {expectation.distinct_states} states, got {outcome.distinct_states}")
    if expectation.depth != outcome.depth:
        found.append(f"expected depth {expectation.depth}, got {outcome.depth}")
    return found


def reached(module: str, outputs: Iterable[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return how often the actions and the places of a module were reached, from TLC's coverage."""
    actions: dict[str, int] = {}
    places: dict[str, int] = {}
    for output in outputs:
        last_report = output.rpartition("The coverage statistics")[2]
        taken = rf"^<(\w+) line .* of module {module}>: \d+:(\d+)"
        evaluated = rf"^\s*\|*(line .*) of module {module}: (\d+)"
        for counts, pattern in ((actions, taken), (places, evaluated)):
            for name, count in re.findall(pattern, last_report, re.MULTILINE):
                counts[name] = counts.get(name, 0) + int(count)
    return actions, places
