"""How much of the spec a random walk has seen: its steps, abstracted so that finitely many remain.

A walk has no last instant, so its steps cannot be counted against a finite graph directly. What a step looks like
to one schedule and one instance can: is there a row, is it paused, has it fired, how much is missed; does the
instance lead, or only believe so; does its frozen pass still pass, and if not, what stands in the way. `seen` turns
a step into such edges; `reachable` explores two small models and returns all that there are.
"""

from __future__ import annotations

import functools
from collections import Counter, deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from tests.model.spec_model import Model
from tests.model.spec_properties import missed
from tests.model.spec_state import Policy, Row, State

POLICIES: tuple[Policy, ...] = ("coalesce", "catch_up")


@dataclass(frozen=True, slots=True)
class Edge:
    """A step as one schedule and one instance have it.

    Attributes:
        policy: The schedule's.
        action: What is done.
        row: Before the step: ``absent``, ``paused`` or ``active``, and whether it has fired.
        owed: Before the step: ``nothing``, ``one``, or ``more`` that is missed.
        instance: Before the step: ``down``, ``up``, ``leads``, or is ``stale``: believes, and has no lock.
        frozen: Before the step: ``nothing``, ``passes``, or what stands in the way of what was read.
    """

    policy: str
    action: str
    row: str
    owed: str
    instance: str
    frozen: str


def seen(model: Model, before: State, action: str, arguments: tuple[object, ...]) -> Iterator[Edge]:
    """Yield the edges that a step is to those that it concerns: the schedule or the instance that it names."""
    named = arguments[0] if arguments else None
    for s in model.schedules:
        for i in model.instances:
            if named in {s, i}:
                row = before.rows[s]
                yield Edge(
                    policy=model.policies[s],
                    action=action,
                    row=_row(row),
                    owed=("nothing", "one", "more")[min(len(missed(model, before, s)), 2)],
                    instance=_instance(before, i),
                    frozen=_frozen(model, before, row, s, i),
                )


def _row(row: Row | None) -> str:
    if row is None:
        return "absent"
    return ("paused" if row.paused else "active") + ("" if row.last is None else ", fired")


def _instance(state: State, i: str) -> str:
    if state.believes[i]:
        return "leads" if state.lock == i else "stale"
    return "up" if state.up[i] else "down"


def _frozen(model: Model, state: State, row: Row | None, s: str, i: str) -> str:
    read = state.snapshot[i]
    frozen = None if read is None else read[s]
    if frozen is None:
        return "nothing"
    if row is None:
        return "removed"
    if not model.last_as_read(row, frozen):
        return "last moved"
    if not model.defined_as_read(row, frozen):
        return "redefined"
    if not model.unpaused(row):
        return "paused"
    return "passes" if model.passes(row, frozen, state.now) else "not due"


@functools.cache
def reachable() -> frozenset[Edge]:
    """Return every edge of two small models, one for each policy."""
    edges: set[Edge] = set()
    for policy in POLICIES:
        model = Model(
            instances=("a", "b"),
            schedules=("s",),
            definitions={"each": lambda _: True, "odd": lambda t: t % 2 == 1},
            policies={"s": policy},
            pass_limit=1,
            max_time=2,
            clock_may_slip=True,
        )
        for before, action, arguments in _steps(model):
            edges.update(seen(model, before, action, arguments))
    return frozenset(edges)


def _steps(model: Model) -> Iterator[tuple[State, str, tuple[object, ...]]]:
    start = model.init()
    found = {_essence(start)}
    waiting = deque([start])
    while waiting:
        before = waiting.popleft()
        for step in model.steps(before):
            yield before, step.action, step.arguments
            essence = _essence(step.after)
            if essence not in found:
                found.add(essence)
                waiting.append(step.after)


def _essence(state: State) -> Hashable:
    """Return what tells states apart here: not what instances are called, nor jobs, which no action asks for."""
    instances = Counter((state.lock == i, up, state.believes[i], state.snapshot[i]) for i, up in state.up.items())
    return state.now, state.rows, state.floor, frozenset(instances.items())
