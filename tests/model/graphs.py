"""State graphs of small models: which there are, every step and refusal in them, and walks that cover them."""

from __future__ import annotations

import enum
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tests.model.spec_model import Model
from tests.model.spec_state import Policy, State, Step
from tests.model.tlc_graph import NAMED_DEFINITIONS, Graph

EXPRESSIONS = {"each": "* * * * *", "odd": "1-59/2 * * * *"}
"""The definitions of these models as cron expressions; an instant is a minute."""


Try = tuple[str, tuple[object, ...], State | None]
"""An action, its arguments, and what it leads to; None where it is not enabled."""


Level = Literal["quick", "full"]


def level() -> Level:
    """Return how much is asked of this run: ``quick``, for each change, or ``full``.

    The environment's ``AWA_CRON_ASSURANCE_LEVEL`` says which.
    """
    asked = os.environ.get("AWA_CRON_ASSURANCE_LEVEL", "quick")
    assert asked in {"quick", "full"}, f"AWA_CRON_ASSURANCE_LEVEL is {asked!r}: use quick or full"
    return "full" if asked == "full" else "quick"


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
    """Return a model of MCAwaCron's schedules, small enough to be explored."""
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


SMALL = {
    "coalesce": small(),
    "catch_up, three instants, two a pass": small(("poll",), max_time=3, instances=1),
    "two schedules": small(("digest", "poll"), max_time=1, instances=1),
    "triggers": small(("poll",), max_time=1, max_triggers=1),
    "clock slips": small(max_time=2, instances=1, clock_may_slip=True),
    "faulty evaluator": small(("poll",), ("each",), max_time=1, faulty_evaluator=True),
}

LARGE = {
    "coalesce, triggers": small(max_triggers=1),
    "catch_up, triggers": small(("poll",), max_triggers=1),
    "clock slips, catch_up": small(("poll",), clock_may_slip=True),
    "two schedules, two instances": small(("digest", "poll"), max_time=1),
}
"""More than 10,000 states each."""


def explore(model: Model) -> Iterator[tuple[State, list[Try]]]:
    """Yield every reachable state with all that can be tried there, in breadth."""
    seen = {model.init()}
    waiting = deque(seen)
    while waiting:
        before = waiting.popleft()
        tries = list(model.attempts(before))
        yield before, tries
        for _, _, after in tries:
            if after is not None and after not in seen:
                seen.add(after)
                waiting.append(after)


def steps_of(model: Model) -> Iterator[tuple[State, Step]]:
    """Yield every step of every reachable state, in the same order."""
    for before, tries in explore(model):
        for action, arguments, after in tries:
            if after is not None:
                yield before, Step(action, arguments, after)


def graph_of(model: Model) -> Graph:
    """Return the model's graph in the form of TLC's."""
    states: set[State] = set()
    steps: set[tuple[State, str, State]] = set()
    for before, tries in explore(model):
        states.add(before)
        steps.update((before, action, after) for action, _, after in tries if after is not None)
    return Graph(frozenset({model.init()}), frozenset(states), frozenset(steps))


class Unasked(enum.StrEnum):
    """Why a disabled action cannot be asked for."""

    ENVIRONMENT = "nobody's function: the clock, ended sessions, processes"
    ABSENT = "its instance is down"
    BUSY = "its instance believes already, or has a pass in its hands"
    IDLE = "its instance does not believe, or has nothing in its hands"
    OTHER_NAME = "atomic_enqueue and cas_fail are one call, and its other name is enabled"
    BOUND = "only the bound of the model forbids it"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An action that somebody asks for; ``after`` is the state itself where the spec does not enable it."""

    action: str
    arguments: tuple[object, ...]
    after: State
    enabled: bool


def attempts(model: Model, state: State, tries: Iterable[Try]) -> Iterator[Attempt | Unasked]:
    """Yield all that can be tried in a state: as an attempt, or as the reason why nobody can ask for it."""
    for action, arguments, after in tries:
        if after is not None:
            yield Attempt(action, arguments, after, enabled=True)
        elif action != "read_cron_state":  # Comes below, once an instance: who asks does not say what it finds.
            yield _unasked(state, action, arguments) or Attempt(action, arguments, state, enabled=False)
    due = any(True for _ in model.readings(state))
    for i in model.instances:
        if not state.up[i]:
            yield Unasked.ABSENT
        elif not state.believes[i]:
            yield Unasked.IDLE
        elif state.snapshot[i] is not None:
            yield Unasked.BUSY
        elif not due:
            yield Attempt("read_cron_state", (i,), state, enabled=False)


def _unasked(state: State, action: str, arguments: tuple[object, ...]) -> Unasked | None:
    """Return why nobody can ask for a disabled action; None where somebody can."""
    if action in {"pause", "resume", "remove", "sync"}:
        return None
    if action in {"advance_clock", "drop_session", "crash", "recover"}:
        return Unasked.ENVIRONMENT
    name = str(arguments[0])
    if action == "trigger":
        return None if state.rows[name] is None else Unasked.BOUND
    if not state.up[name]:
        return Unasked.ABSENT
    reasons = {
        "acquire_leader": Unasked.BUSY if state.believes[name] else None,
        "ping_leader": None if state.believes[name] else Unasked.IDLE,
        "atomic_enqueue": Unasked.IDLE if state.snapshot[name] is None else Unasked.OTHER_NAME,
        "cas_fail": Unasked.IDLE if state.snapshot[name] is None else Unasked.OTHER_NAME,
        "lose_leader": None,
    }
    return reasons[action]


def walks(model: Model, longest: int = 200) -> list[list[Step]]:
    """Return walks from the initial state that take every step of every reachable state at least once.

    A walk takes a step that is still to be taken, or goes on to the nearest state that has one. Where none is near,
    it ends, and another begins on the shortest way to the first state that has some left. (Much cannot be gone back
    on: a job, a floor, an old read; so walks are many and short.)
    """
    steps: dict[State, list[Step]] = {}
    way: dict[State, tuple[State, Step]] = {}
    for before, tries in explore(model):
        steps[before] = [Step(action, arguments, after) for action, arguments, after in tries if after is not None]
        for step in steps[before]:
            way.setdefault(step.after, (before, step))
    left = {state: list(reversed(out)) for state, out in steps.items()}
    found = []
    for first in steps:
        while left[first]:
            walk = _way_to(first, model.init(), way)
            here = first
            while len(walk) < longest and (ahead := _nearest(here, steps, left)) is not None:
                here = ahead[-1].after if ahead else here
                walk += [*ahead, step := left[here].pop()]
                here = step.after
            found.append(walk)
    return found


def _way_to(state: State, start: State, way: Mapping[State, tuple[State, Step]]) -> list[Step]:
    steps = []
    while state != start:
        state, step = way[state]
        steps.append(step)
    return steps[::-1]


NEAR = 60
"""How many states are looked at for one with steps left."""


def _nearest(
    state: State, steps: Mapping[State, list[Step]], left: Mapping[State, list[Step]]
) -> list[Step] | None:
    """Return the way to the nearest state that has steps left; None where there is none near."""
    way: dict[State, tuple[State, Step]] = {}
    waiting = deque([state])
    looked_at = 0
    while waiting and looked_at < NEAR:
        here = waiting.popleft()
        looked_at += 1
        if left[here]:
            return _way_to(here, state, way)
        for step in steps[here]:
            if step.after not in way and step.after != state:
                way[step.after] = here, step
                waiting.append(step.after)
    return None
