"""The programs of scripts/chaos: decided by the seed, and by nothing else."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from faults.bad_rows import Lateness, percentile
from faults.program import LASTS_S, LEADER, Step, program
from faults.run import INSTANCES, LANES, OPERATED


def drawn(seed: int, seconds: float = 120) -> list[Step]:
    return program(seed, seconds, instances=INSTANCES, faults=LANES, schedules=OPERATED)


def test_a_seed_gives_the_same_program_and_another_seed_another() -> None:
    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_leaving_a_fault_out_changes_its_own_lane_only() -> None:
    shorter = LANES | {"server": LANES["server"][:-1]}
    other = program(1, 120, instances=INSTANCES, faults=shorter, schedules=OPERATED)
    assert [s for s in drawn(1) if s.lane != "server"] == [s for s in other if s.lane != "server"]


@pytest.mark.parametrize("seed", range(20))
def test_a_program_keeps_its_bounds(seed: int) -> None:
    steps = drawn(seed)
    assert sorted(steps, key=lambda step: step.at_s) == steps
    for step in steps:
        assert 0 < step.at_s
        assert step.at_s + step.seconds <= 120
        if step.lane in LANES:
            least, most = LASTS_S[step.what]
            assert least <= step.seconds <= most
            assert step.target in {LEADER, *map(str, range(INSTANCES))}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("lane", LANES)
def test_every_fault_strikes_before_one_strikes_again(seed: int, lane: str) -> None:
    struck = [step.what for step in drawn(seed) if step.lane == lane]
    kinds = len(LANES[lane])
    for first in range(0, len(struck), kinds):
        assert {1} == set(Counter(struck[first : first + kinds]).values())
    assert set(LANES[lane]) == set(struck), "two minutes have room for all"


def test_faults_of_a_lane_follow_each_other() -> None:
    for lane in LANES:
        steps = [step for step in drawn(7) if step.lane == lane]
        for earlier, later in pairwise(steps):
            assert earlier.at_s + earlier.seconds < later.at_s


def test_every_fault_has_its_lane() -> None:
    assert set(LASTS_S) == {kind for lane in LANES.values() for kind in lane}


@pytest.mark.parametrize(
    ("percent", "expected"), [(50, 2.0), (51, 3.0), (75, 3.0), (76, 4.0), (99, 4.0), (100, 4.0), (1, 1.0)]
)
def test_percentiles_are_values_that_occurred(percent: int, expected: float) -> None:
    assert expected == percentile([1.0, 2.0, 3.0, 4.0], percent)


def test_lateness_of_nothing_is_no_error() -> None:
    assert Lateness(0, 0.0, 0.0, 0.0) == Lateness.of([])
