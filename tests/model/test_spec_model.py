"""The Python model and the spec are the same protocol, and the model's checks can fail."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from assurance import SPEC, CannotRunError
from assurance.manifest import read_manifest
from tests.model import broken_models, ledger
from tests.model.graphs import LARGE, SMALL, graph_of, level, small, snake, steps_of
from tests.model.spec_model import Model
from tests.model.spec_properties import INVARIANTS, STEP_PROPERTIES, invariants, step_checks
from tests.model.spec_state import State
from tests.model.tlc_graph import Graph, tlc_graph

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


FULL = level() == "full"
SAME = {**SMALL, **LARGE} if FULL else {**SMALL, "coalesce, triggers": LARGE["coalesce, triggers"]}


@pytest.mark.timeout(1800 if FULL else 180)
@pytest.mark.parametrize("name", SAME)
def test_python_model_and_tlc_have_the_same_graph(name: str, tmp_path: Path) -> None:
    model = SAME[name]
    started = time.monotonic()
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
    assert name not in LARGE or len(of_python.states) >= 10_000
    ledger.record(
        "graphs",
        configuration=name,
        states=len(of_python.states),
        edges=len(of_python.steps),
        seconds=round(time.monotonic() - started, 1),
    )


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
    for before, step in steps_of(model):
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
    "CatchUpCoalesces": Setting(("poll",)),
    "CatchUpOneByOne": Setting(("poll",)),
    "DefinedByName": Setting(("poll",), clock_may_slip=True),
    "DefinedByAnchor": Setting(clock_may_slip=True),
    "AdvancesOrStays": Setting(pass_limit=1, faulty_evaluator=True),
    "AdvancesByNewest": Setting(faulty_evaluator=True),
    "AtAnchor": Setting(pass_limit=1, faulty_evaluator=True),
    "AfterAnchorByNewest": Setting(faulty_evaluator=True),
    "DueByOldest": Setting(("poll",), clock_may_slip=True),
    "AllOrNothing": Setting(("digest", "poll")),
    "OneOfAPass": Setting(("digest", "poll")),
    "MarksOldest": Setting(("poll",)),
    "MakesNewestJob": Setting(("poll",)),
    "MarksEveryRow": Setting(("digest", "poll")),
    "JobsForLosers": Setting(("digest", "poll")),
    "PausesEverything": Setting(("digest", "poll")),
    "ResumesEverything": Setting(("digest", "poll")),
    "TriggerMakesFire": Setting(max_triggers=1),
    "TriggerWithoutRow": Setting(max_triggers=1),
    "TriggerDoesNothing": Setting(max_triggers=1),
    "InsertAtClock": Setting(clock_may_slip=True),
    "SyncForgetsFloor": Setting(clock_may_slip=True),
    "FloorOfLastRow": Setting(clock_may_slip=True),
    "RemovesEverything": Setting(("digest", "poll")),
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
        for before, step in steps_of(model):
            step_checks(model, before, step.action, step.after, only=violated)
            invariants(model, step.after, only=violated)

    with pytest.raises(AssertionError, match=rf"^{violated} \(P\d"):
        run()
