"""The table of ``scripts/assure``: what was not measured, or is not as it should be, can't look right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from assurance.findings import Line, lines

RUN = {
    "name": "Safety",
    "module": "MCAwaCron",
    "of_module": 1,
    "kind": "safety",
    "ok": True,
    "distinct_states": 10,
    "generated_states": 30,
}
REPLAY = {
    "section": "edges",
    "configuration": "coalesce",
    "every": 1,
    "states": 10,
    "edges": 100,
    "disabled": 50,
    "unasked": 5,
    "seconds": 0.1,
}
GOOD: dict[str, list[dict[str, Any]]] = {
    "tlc": [RUN],
    "prove": [
        {"name": "a", "wanted": "unsat", "verdict": "unsat"},
        {"name": "b", "wanted": "sat", "verdict": "sat"},
    ],
    "tests": [
        {"section": "graphs", "states": 10, "edges": 100},
        REPLAY,
        {"section": "paths", "steps": 200, "states": 10, "edges": 100},
        {"section": "interleavings", "runs": 9, "blocked": 3, "serialization_failures": 1, "deadlocks": 0},
        {"section": "traces", "logs": 2, "events": 30, "windows": 9},
        {"section": "falsified traces", "kinds": 20, "asked": 60, "rejected": 58},
        {"section": "walks", "calls": 50, "edges": 5, "reachable": 10},
    ],
    "mutants": [
        {"killed": 2, "total": 2, "equivalent": 0, "mutants": [{"name": "m", "result": "killed", "ok": True}]}
    ],
}


def wrong(numbers: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Line]:
    return [line for line in lines(numbers) if not line.ok]


def test_all_is_right() -> None:
    assert [] == wrong(GOOD)


@pytest.mark.parametrize("technique", GOOD)
def test_a_technique_that_left_no_numbers_is_not_all_right(technique: str) -> None:
    found = wrong(GOOD | {technique: []})
    assert found
    assert {"nothing was measured"} == {line.found for line in found}


@pytest.mark.parametrize("section", [each["section"] for each in GOOD["tests"]])
def test_a_section_of_the_tests_that_left_no_numbers_is_not_all_right(section: str) -> None:
    assert 1 == len(wrong(GOOD | {"tests": [each for each in GOOD["tests"] if each["section"] != section]}))


@pytest.mark.parametrize(
    ("technique", "entry", "told"),
    [
        ("tlc", RUN | {"ok": False}, "not as expected: Safety"),
        ("prove", {"name": "c", "wanted": "unsat", "verdict": "sat"}, "not as expected: c"),
        ("prove", {"name": "c", "wanted": "sat", "verdict": "unknown"}, "not as expected: c"),
        ("tests", {"section": "interleavings", "runs": 1, "deadlocks": 1}, "1 deadlocks"),
        (
            "mutants",
            GOOD["mutants"][0] | {"mutants": [{"name": "m", "result": "survived", "ok": False}]},
            "wrong: m",
        ),
    ],
)
def test_what_is_not_as_it_should_be_is_told(technique: str, entry: dict[str, Any], told: str) -> None:
    [line] = wrong(GOOD | {technique: [entry, *GOOD[technique]]})
    assert told in line.found


def test_a_sample_is_called_a_sample() -> None:
    tests = [*GOOD["tests"], REPLAY | {"every": 10}]
    assert any("1 of 2 configurations as a sample" in line.found for line in lines(GOOD | {"tests": tests}))


def test_a_module_of_which_not_all_ran_is_called_a_sample() -> None:
    [line, *_] = lines(GOOD | {"tlc": [RUN | {"of_module": 7}]})
    assert "as a sample: 1 of 7 configurations" in line.found
    assert "as a sample" not in lines(GOOD)[0].found
