"""The queue's Python model and ``spec/AwaQueue.tla`` are the same protocol: same actions, states and steps."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from assurance import SPEC, CannotRunError
from assurance.java import find_runner
from assurance.tlc import COMPLETED, start
from tests.model import ledger
from tests.model.graphs import snake
from tests.model.queue_model import Claim, Job, Offer, QueueModel, Row, State
from tests.model.queue_properties import INVARIANTS, STEP_PROPERTIES, invariants, step_checks
from tests.model.spec_state import Table
from tests.model.tlc_graph import EDGE, NODE, read_text

AWA_QUEUE = (SPEC / "AwaQueue.tla").read_text(encoding="utf-8")

CFG = """\
SPECIFICATION Spec
CONSTANTS
    Workers = {{{workers}}}
    Schedules = {{"digest"}}
    Queues = {{{queues}}}
    Offers <- {offers}
    Capacity = {model.capacity}
    MaxJobs = {model.max_jobs}
    AttemptLimit = {model.attempt_limit}
    FreshAttempts = {model.fresh_attempts}
    None = None
"""

OFFERS = {
    "MCOffersOne": (Offer("email", 1),),
    "MCOffersEdited": (Offer("email", 1), Offer("reports", 2)),
}


def small(offers: str, *, workers: int = 1, max_jobs: int = 1, attempt_limit: int = 2) -> tuple[str, QueueModel]:
    queues = tuple(sorted({offer.queue for offer in OFFERS[offers]}))
    model = QueueModel(
        workers=tuple(f"w{n + 1}" for n in range(workers)),
        schedules=("digest",),
        queues=queues,
        offers={"digest": OFFERS[offers]},
        capacity=1,
        max_jobs=max_jobs,
        attempt_limit=attempt_limit,
        fresh_attempts=1,
    )
    return offers, model


MODELS = {
    "edits": small("MCOffersEdited"),
    "two jobs": small("MCOffersOne", max_jobs=2, attempt_limit=1),
    "two workers": small("MCOffersOne", workers=2),
}

Steps = set[tuple[State, str, State]]


def graph_of(model: QueueModel) -> tuple[set[State], Steps]:
    """Explore the Python model, and check every property on the way."""
    initial = model.init()
    found, waiting = {initial}, [initial]
    steps: Steps = set()
    while waiting:
        before = waiting.pop()
        invariants(model, before)
        for action, arguments, then in model.steps(before):
            step_checks(model, before, action, arguments, then)
            steps.add((before, action, then))
            if then not in found:
                found.add(then)
                waiting.append(then)
    return found, steps


def tlc_graph(offers: str, model: QueueModel, work: Path) -> tuple[set[State], Steps]:
    """Let TLC explore the spec, and read what it dumped."""
    cfg = CFG.format(
        workers=", ".join(model.workers),
        queues=", ".join(f'"{queue}"' for queue in model.queues),
        offers=offers,
        model=model,
    )
    dump = ["-dump", "dot,actionlabels", "graph.dot"]
    finished = start(find_runner(), work, "MCAwaQueue", cfg, short=True, options=dump)
    assert COMPLETED in finished.stdout, finished.stdout
    text = (work / "graph.dot").read_text(encoding="utf-8")
    states = {
        node: to_state(label.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\"))
        for node, label, _ in NODE.findall(text)
    }
    return set(states.values()), {
        (states[source], snake(action), states[target]) for source, target, action in EDGE.findall(text)
    }


def to_state(label: str) -> State:
    variables: dict[str, Any] = {}
    for conjunct in re.split(r"^/\\ ", label, flags=re.MULTILINE)[1:]:
        name, _, value = conjunct.partition(" = ")
        variables[name] = read_text(value)
    return State(
        rows=Table((s, row and Row(**row)) for s, row in variables["rows"].items()),
        queue_paused=Table(variables["queue_paused"]),
        jobs=tuple(Job(**job) for job in variables["jobs"]),
        worker=Table(variables["worker"]),
        holds=Table((w, frozenset(Claim(**claim) for claim in held)) for w, held in variables["holds"].items()),
    )


@pytest.mark.parametrize("name", MODELS)
def test_the_queues_python_model_and_tlc_have_the_same_graph(name: str, tmp_path: Path) -> None:
    offers, model = MODELS[name]
    started = time.monotonic()
    try:
        states, steps = tlc_graph(offers, model, tmp_path)
    except CannotRunError as error:
        pytest.skip(f"TLC can't run here: {error}")
    assert (states, steps) == graph_of(model)
    ledger.record(
        "queue graphs",
        configuration=name,
        states=len(states),
        edges=len(steps),
        seconds=round(time.monotonic() - started, 1),
    )


def test_every_action_of_the_queue_is_a_function_of_the_model() -> None:
    _, steps = graph_of(small("MCOffersOne")[1])
    part = AWA_QUEUE[AWA_QUEUE.index("\nSystem ==") :]
    disjuncts = re.findall(r"^ +\\/ (?:\\E .*? : )?([A-Z]\w+)\(", part[: part.index("\nNext ==")], re.MULTILINE)
    assert {snake(name) for name in disjuncts} == {action for _, action, _ in steps}


def test_every_property_of_the_queue_but_liveness_is_checked() -> None:
    part = AWA_QUEUE[AWA_QUEUE.index("(* P27.  A job that has not ended") : AWA_QUEUE.index("(* Liveness")]
    named = set(re.findall(r"^([A-Z]\w+) ==$", part, re.MULTILINE)) | {"TypeOK"}
    assert named == {each.name for each in (*INVARIANTS, *STEP_PROPERTIES)}
