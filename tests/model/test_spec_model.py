"""The Python model and the spec are the same protocol, and the model's checks can fail."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from assurance import SPEC, CannotRunError
from assurance.manifest import read_manifest
from tests.model import broken_models
from tests.model.spec_model import Model
from tests.model.spec_properties import INVARIANTS, STEP_PROPERTIES, invariants, step_checks
from tests.model.spec_state import Policy, State, Step
from tests.model.tlc_graph import NAMED_DEFINITIONS, Graph, tlc_graph

AWA_CRON = (SPEC / "AwaCron.tla").read_text(encoding="utf-8")

ONLY_TLC = {
    "StaleLeaderEventuallyStepsDown",
    "CoalescedLatestFireEventuallyEnqueued",
    "CatchUpFiresEventuallyEnqueued",
    "RefinesExactlyOnce",
}
"""Properties of whole behaviours; the model is checked step by step."""

BROKEN_SAFETY = {
    entry.name: entry.violates
    for entry in read_manifest()
    if entry.module == "MCAwaCron"
    and entry.kind == "must-fail"
    and entry.violates
    and entry.violates not in ONLY_TLC
}


def snake(name: str) -> str:
    """Return the name of an action in Python."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def small(
    schedules: tuple[str, ...] = ("digest",),
    definitions: tuple[str, ...] = ("each", "odd"),
    *,
    kind: type[Model] = Model,
    instances: int = 2,
    pass_limit: int = 2,
    max_time: int = 2,
    max_triggers: int = 0,
    clock_may_slip: bool = False,
    faulty_evaluator: bool = False,
) -> Model:
    policies: dict[str, Policy] = {s: "catch_up" if s == "poll" else "coalesce" for s in schedules}
    fires_at: Mapping[str, Callable[[int], bool]] = {d: NAMED_DEFINITIONS[d] for d in definitions}
    return kind(
        instances=tuple(f"i{n + 1}" for n in range(instances)),
        schedules=schedules,
        definitions=fires_at,
        policies=policies,
        pass_limit=pass_limit,
        max_time=max_time,
        max_triggers=max_triggers,
        clock_may_slip=clock_may_slip,
        faulty_evaluator=faulty_evaluator,
    )


def explore(model: Model) -> Iterator[tuple[State, Step]]:
    """Yield every step of every reachable state, in breadth."""
    seen = {model.init()}
    waiting = deque(seen)
    while waiting:
        before = waiting.popleft()
        for step in model.steps(before):
            yield before, step
            if step.after not in seen:
                seen.add(step.after)
                waiting.append(step.after)


def graph_of(model: Model) -> Graph:
    steps = {(before, step.action, step.after) for before, step in explore(model)}
    states = {state for before, _, then in steps for state in (before, then)}
    return Graph(frozenset({model.init()}), frozenset(states), frozenset(steps))


SAME = {
    "coalesce": small(),
    "catch_up, three instants, two a pass": small(("poll",), max_time=3, instances=1),
    "two schedules": small(("digest", "poll"), max_time=1, instances=1),
    "triggers": small(("poll",), max_time=1, max_triggers=1),
    "clock slips": small(max_time=2, instances=1, clock_may_slip=True),
    "faulty evaluator": small(("poll",), ("each",), max_time=1, faulty_evaluator=True),
}


@pytest.mark.parametrize("model", SAME.values(), ids=SAME)
def test_python_model_and_tlc_have_the_same_graph(model: Model, tmp_path: Path) -> None:
    try:
        of_tlc = tlc_graph(model, tmp_path)
    except CannotRunError as error:
        pytest.skip(f"TLC can't run here: {error}")
    of_python = graph_of(model)

    def in_python(graph: Graph) -> set[tuple[State, str, State]]:
        return {(before, snake(action), then) for before, action, then in graph.steps}

    assert of_tlc.initial == of_python.initial
    assert len(of_tlc.states) == len(of_python.states)
    assert of_tlc.states == of_python.states
    assert in_python(of_tlc) == of_python.steps


def test_every_action_of_next_is_a_function_of_the_model() -> None:
    disjuncts = re.findall(r"^ +(?:\\/ )+(?:\\E d \\in Definitions : )?([A-Z]\w+)(?:\(|$)", AWA_CRON, re.MULTILINE)
    actions = {name for name in disjuncts if re.search(rf"^{name}(\(\w+(, \w+)*\))? ==$", AWA_CRON, re.MULTILINE)}
    model = small(max_triggers=1)
    in_python = {action for action, _, _ in model.attempts(model.init())} | {"read_cron_state"}

    assert {snake(name) for name in actions - {"System"}} == in_python


def test_every_property_of_the_spec_is_checked_under_the_same_name() -> None:
    properties = AWA_CRON.partition("(* Properties.")[2].partition("(* Liveness")[0]
    promised = set(re.findall(r"^\(\* P\d.*?\*\)\n(?:\(\*.*\*\)\n)*(\w+) ==", properties, re.MULTILINE))

    assert {p.name for p in (*INVARIANTS, *STEP_PROPERTIES)} == promised | {"TypeOK"}


@pytest.mark.parametrize("model", [small(max_triggers=1, max_time=1), small(("poll",), max_time=3, instances=1)])
def test_checks_hold_in_the_whole_model(model: Model) -> None:
    invariants(model, model.init())
    for before, step in explore(model):
        step_checks(model, before, step.action, step.after)
        invariants(model, step.after)


@dataclass(frozen=True)
class Setting:
    """Where a variant shows what is wrong with it: not every small model does."""

    schedules: tuple[str, ...] = ("digest",)
    max_triggers: int = 0
    pass_limit: int = 2
    clock_may_slip: bool = False
    faulty_evaluator: bool = False


SETTINGS = {
    "NoDefinedGuard": Setting(clock_may_slip=True),
    "NoDefinedGuardCatchUp": Setting(("poll",), clock_may_slip=True),
    "NoAnchorGuard": Setting(pass_limit=1, faulty_evaluator=True),
    "NoMonotoneGuard": Setting(pass_limit=1, faulty_evaluator=True),
    "NoDueGuard": Setting(clock_may_slip=True),
    "CatchUpSkips": Setting(("poll",), pass_limit=1),
    "UnboundedPass": Setting(("poll",), pass_limit=1),
    "EditLowersAnchor": Setting(clock_may_slip=True),
    "NoFloor": Setting(clock_may_slip=True),
    "NaiveDelete": Setting(("digest", "poll")),
    "TriggerMovesLast": Setting(max_triggers=1),
    "TriggerRefusesPaused": Setting(max_triggers=1),
}


@pytest.mark.parametrize("name", BROKEN_SAFETY)
def test_a_broken_model_is_caught_by_the_property_that_the_manifest_names(name: str) -> None:
    setting = SETTINGS.get(name, Setting())
    model = small(
        setting.schedules,
        kind=getattr(broken_models, name),
        pass_limit=setting.pass_limit,
        max_triggers=setting.max_triggers,
        clock_may_slip=setting.clock_may_slip,
        faulty_evaluator=setting.faulty_evaluator,
    )
    violated = BROKEN_SAFETY[name]

    def run() -> None:
        for before, step in explore(model):
            step_checks(model, before, step.action, step.after, only=violated)
            invariants(model, step.after, only=violated)

    with pytest.raises(AssertionError, match=rf"^{violated} \(P\d"):
        run()
