"""What the techniques' numbers say, a line each. A technique without numbers is a line that is not all right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Numbers = Sequence[Mapping[str, Any]]

KINDS = {
    "safety": "explored without an error",
    "liveness": "liveness runs without an error",
    "must-fail": "broken variants, each caught by its property",
    "witness": "situations reached",
    "equivalent": "changes that change nothing",
}


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        technique: What was done.
        found: What came of it, with its numbers.
        ok: Whether there are numbers, and they are as they should be.
    """

    technique: str
    found: str
    ok: bool


def lines(numbers: Mapping[str, Numbers]) -> list[Line]:
    """Return the table.

    Args:
        numbers: By technique: what ``scripts/tlc``, ``scripts/prove`` and ``scripts/mutants`` wrote, and the lines
            of the tests' ledger.
    """
    tests = numbers.get("tests", [])

    def of(section: str) -> Numbers:
        return [each for each in tests if each["section"] == section]

    return [
        *_of_each_module(numbers.get("tlc", [])),
        _line("for any size, in z3", numbers.get("prove", []), _proved),
        _line("one graph, Python's and TLC's", of("graphs"), _graphs),
        _line("every edge, on Postgres", of("edges"), _edges),
        _line("paths from the start, on Postgres", of("paths"), _paths),
        _line("interleavings, on Postgres", of("interleavings"), _interleavings),
        _line("random walks, on Postgres", of("walks"), _walks),
        _line("logs of real runs, as traces", of("traces"), _traces),
        _line("falsified logs", of("falsified traces"), _falsified),
        _line("mutants of the implementation", numbers.get("mutants", []), _mutants),
    ]


def _line(technique: str, numbers: Numbers, read: Callable[[Numbers], tuple[str, bool]]) -> Line:
    if not numbers:
        return Line(technique, "nothing was measured", ok=False)
    return Line(technique, *read(numbers))


def _of_each_module(runs: Numbers) -> list[Line]:
    modules = list(dict.fromkeys(run["module"] for run in runs))
    if not modules:
        return [Line("TLC", "nothing was measured", ok=False)]
    return [_module(module, [run for run in runs if run["module"] == module]) for module in modules]


def _module(module: str, runs: Numbers) -> Line:
    wrong = [run["name"] for run in runs if not run["ok"]]
    count = Counter(run["kind"] for run in runs)
    parts = [f"{count[kind]} {meaning}" for kind, meaning in KINDS.items() if count[kind]]
    states, steps = (sum(run[key] or 0 for run in runs) for key in ("distinct_states", "generated_states"))
    parts.append(f"{states:,} states, {steps:,} steps")
    if len(runs) < runs[0]["of_module"]:
        parts.append(f"as a sample: {len(runs)} of {runs[0]['of_module']} configurations")
    return Line(f"TLC, {module}", "; ".join(parts) + _unless_empty("; not as expected: ", wrong), not wrong)


def _proved(answers: Numbers) -> tuple[str, bool]:
    wrong = [answer["name"] for answer in answers if answer["verdict"] != answer["wanted"]]
    proved = sum(answer["wanted"] == answer["verdict"] == "unsat" for answer in answers)
    found = sum(answer["wanted"] == answer["verdict"] == "sat" for answer in answers)
    told = f"{proved} claims proved; {found} queries answered with an example, where there must be one"
    return told + _unless_empty("; not as expected: ", wrong), proved > 0 and found > 0 and not wrong


def _graphs(graphs: Numbers) -> tuple[str, bool]:
    largest = max(graphs, key=lambda each: each["states"])
    told = f"{len(graphs)} configurations, the largest of {largest['states']:,} states, {largest['edges']:,} edges"
    return told, largest["states"] > 0


def _edges(replays: Numbers) -> tuple[str, bool]:
    total = Counter[str]()
    for each in replays:
        total.update({key: each[key] for key in ("states", "edges", "disabled", "unasked", "seconds")})
    sampled = sum(each["every"] > 1 for each in replays)
    told = (
        f"{total['edges']:,} edges of {total['states']:,} states, {total['disabled']:,} refusals that change "
        f"nothing ({total['unasked']:,} that nobody can ask for); "
        f"{total['edges'] / total['seconds']:,.0f} edges a second"
    )
    told += f"; {sampled} of {len(replays)} configurations as a sample" if sampled else "; all of them"
    return told, total["edges"] > 0


def _paths(walks: Numbers) -> tuple[str, bool]:
    steps, edges, states = (sum(each[key] for each in walks) for key in ("steps", "edges", "states"))
    return f"{steps:,} steps take every edge, {edges:,} of {states:,} states", edges > 0


def _interleavings(runs: Numbers) -> tuple[str, bool]:
    total = Counter[str]()
    for each in runs:
        total.update({key: value for key, value in each.items() if key != "section"})
    told = (
        f"{total['runs']:,} schedules of two and three transactions at three isolation levels, each as in some "
        f"order; {total['blocked']:,} waited, {total['serialization_failures']:,} serialization failures, "
        f"{total['deadlocks']:,} deadlocks"
    )
    return told, total["runs"] > 0 and total["deadlocks"] == 0


def _walks(walks: Numbers) -> tuple[str, bool]:
    last = walks[-1]
    told = f"{last['calls']:,} calls in lock-step; {last['edges']:,} of {last['reachable']:,} edges, abstracted"
    return told, last["calls"] > 0


def _traces(found: Numbers) -> tuple[str, bool]:
    logs, events, windows = (sum(each[key] for each in found) for key in ("logs", "events", "windows"))
    return f"{logs} logs of {events:,} events, {windows:,} windows: behaviours of the spec, says TLC", windows > 0


def _falsified(found: Numbers) -> tuple[str, bool]:
    last = found[-1]
    told = f"{last['kinds']} kinds, {last['rejected']:,} of {last['asked']:,} rejected; TLC and the verifier agree"
    return told, last["kinds"] >= 20 and last["rejected"] > 0


def _mutants(found: Numbers) -> tuple[str, bool]:
    counts = found[0]
    wrong = [each["name"] for each in counts["mutants"] if not each["ok"]]
    told = f"{counts['killed']} of {counts['total']} killed, {counts['equivalent']} equivalent"
    untried = [each["name"] for each in counts["mutants"] if each["result"] == "not tried"]
    told += _unless_empty("; not tried, for what they need is not here: ", untried)
    return told + _unless_empty("; wrong: ", wrong), counts["killed"] > 0 and not wrong


def _unless_empty(before: str, names: Sequence[str]) -> str:
    return before + ", ".join(names) if names else ""
