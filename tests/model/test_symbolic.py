"""The protocol as z3 has it takes the steps of the Python model, and no others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from tests.model.ledger import record
from tests.model.spec_model import Model
from tests.model.spec_state import Frozen, Row, State
from tests.model.tlc_graph import NAMED_DEFINITIONS

z3 = pytest.importorskip("z3", reason="the proofs need the extra 'spec'")

from assurance import symbolic  # noqa: E402 - needs z3
from assurance.symbolic import ARGUMENTS, Bool, Term  # noqa: E402 - needs z3

Choice = tuple[str, tuple[object, ...]]
LAST_INSTANT = 2
PAIRS = 400
PATH = """
    sync acquire_leader advance_clock read_cron_state pause cas_fail resume advance_clock read_cron_state
    atomic_enqueue sync advance_clock read_cron_state drop_session sync trigger remove ping_leader sync crash
    recover acquire_leader
"""


def model_of(*schedules: str, instances: int, faulty_evaluator: bool = False) -> Model:
    return Model(
        instances=tuple(f"i{n + 1}" for n in range(instances)),
        schedules=schedules,
        definitions=NAMED_DEFINITIONS,
        policies={s: "catch_up" if s == "poll" else "coalesce" for s in schedules},
        pass_limit=LAST_INSTANT + 1,
        max_time=LAST_INSTANT,
        max_triggers=1,
        clock_may_slip=True,
        faulty_evaluator=faulty_evaluator,
    )


class Named:
    """The model's names as constants of z3, and its states as states of z3."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.i = {i: z3.Const(i, symbolic.Instance) for i in model.instances}
        self.s = {s: z3.Const(s, symbolic.Schedule) for s in model.schedules}
        self.d = {d: z3.Const(d, symbolic.Definition) for d in model.definitions}

    def world(self) -> Iterable[Bool]:
        """Say what there is: nothing but what has a name, instants up to the last."""
        for names in (self.i, self.s, self.d):
            constants = list(names.values())
            x = z3.Const("x", constants[0].sort())
            yield z3.Distinct(constants)
            yield z3.ForAll([x], z3.Or([x == c for c in constants]))
        f = z3.Int("x_f")
        for name, d in self.d.items():
            fires = [f == instant for instant in range(LAST_INSTANT + 1) if self.model.definitions[name](instant)]
            yield z3.ForAll([f], symbolic.FIRES_OF(d, f) == z3.Or(fires))
        for name, s in self.s.items():
            yield symbolic.COALESCES(s) == (self.model.policies[name] == "coalesce")
        yield z3.And(ARGUMENTS.to >= 0, ARGUMENTS.to <= LAST_INSTANT)
        s, read_fires = z3.Const("x_s", symbolic.Schedule), symbolic.READ_FIRES
        yield z3.ForAll([s, f], z3.Implies(read_fires(s, f), z3.And(f >= 0, f <= LAST_INSTANT)))

    def maybe(self, instant: int | None) -> Term:
        return symbolic.Maybe.none if instant is None else symbolic.Maybe.at(instant)

    def row(self, row: Row | None) -> Term:
        if row is None:
            return symbolic.Row.none
        return symbolic.Row.row(self.d[row.definition], self.maybe(row.last), row.anchor, row.paused)

    def frozen(self, frozen: Frozen | None) -> Term:
        if frozen is None:
            return symbolic.Frozen.none
        return symbolic.Frozen.frozen(
            self.d[frozen.definition],
            frozen.anchor,
            self.maybe(frozen.expected),
            frozen.fires[0],
            frozen.fires[-1],
        )

    def state(self, state: State) -> symbolic.State:
        """Return the same state."""

        def by(names: dict[str, Term], value: Callable[[str], Term]) -> Callable[[Term], Term]:
            def function(x: Term) -> Term:
                result = value(next(iter(names)))
                for name, constant in names.items():
                    result = z3.If(x == constant, value(name), result)
                return result

            return function

        def read(i: str, s: str) -> Frozen | None:
            seen = state.snapshot[i]
            return None if seen is None else seen[s]

        def count(s: str, f: Term) -> Term:
            total = z3.IntVal(0)
            for fire, jobs in state.jobs[s].items():
                total = z3.If(f == fire, jobs, total)
            return total

        def in_pass(i: str, s: str, f: Term) -> Bool:
            frozen = read(i, s)
            return z3.Or([f == fire for fire in frozen.fires] if frozen else [])

        return symbolic.State(
            now=z3.IntVal(state.now),
            rows=by(self.s, lambda s: self.row(state.rows[s])),
            jobs=lambda s, f: by(self.s, lambda name: count(name, f))(s),
            triggered=by(self.s, lambda s: z3.IntVal(state.triggered[s])),
            floor=by(self.s, lambda s: z3.IntVal(state.floor[s])),
            lock=symbolic.Holder.none if state.lock is None else symbolic.Holder.held(self.i[state.lock]),
            up=by(self.i, lambda i: z3.BoolVal(state.up[i])),
            believes=by(self.i, lambda i: z3.BoolVal(state.believes[i])),
            snapshot=by(self.i, lambda i: z3.BoolVal(state.snapshot[i] is not None)),
            frozen=lambda i, s: by(self.i, lambda a: by(self.s, lambda b: self.frozen(read(a, b)))(s))(i),
            fires=lambda i, s, f: by(self.i, lambda a: by(self.s, lambda b: in_pass(a, b, f))(s))(i),
        )

    def same(self, one: symbolic.State, other: symbolic.State) -> Bool:
        """Say that two states are the same; what a pass holds counts only while it is on."""
        instants = [z3.IntVal(f) for f in range(-1, LAST_INSTANT + 2)]
        equal = [one.now == other.now, one.lock == other.lock]
        for s in self.s.values():
            equal += [one.rows(s) == other.rows(s), one.floor(s) == other.floor(s)]
            equal += [one.triggered(s) == other.triggered(s)]
            equal += [one.jobs(s, f) == other.jobs(s, f) for f in instants]
        for i in self.i.values():
            equal += [one.up(i) == other.up(i), one.believes(i) == other.believes(i)]
            equal += [one.snapshot(i) == other.snapshot(i)]
            for s in self.s.values():
                held = symbolic.Frozen.is_frozen(one.frozen(i, s))
                fires = [one.fires(i, s, f) == other.fires(i, s, f) for f in instants]
                same = z3.And(one.frozen(i, s) == other.frozen(i, s), z3.Implies(held, z3.And(fires)))
                equal += [z3.Implies(one.snapshot(i), same)]
        return z3.And(equal)

    def chooses(self, action: str, arguments: tuple[object, ...], then: State | None) -> list[Bool]:
        """Say which arguments an action has; an action chooses the clock and the reading itself."""
        if action == "advance_clock":
            to = arguments[0] if arguments else then.now if then else LAST_INSTANT + 1
            return [ARGUMENTS.to == to]
        first = str(arguments[0])
        chosen = [ARGUMENTS.i == self.i[first] if first in self.i else ARGUMENTS.s == self.s[first]]
        return chosen + ([ARGUMENTS.d == self.d[str(arguments[1])]] if action == "sync" else [])


def walked(model: Model) -> list[State]:
    """Return the states of a walk along ``PATH``, with any arguments, but the same ones each time."""
    rng, state = random.Random(2), model.init()
    found = {state: None}
    for action in PATH.split():
        possible = [step.after for step in model.steps(state) if step.action == action]
        state = rng.choice(possible) if possible else state
        found[state] = None
    return list(found)


def steps(model: Model, state: State) -> dict[Choice, set[State]]:
    """Return where each action with each argument may lead under any limit, of which z3 has none."""
    found: dict[Choice, set[State]] = {("read_cron_state", (i,)): set() for i in model.instances}
    for pass_limit in range(1, LAST_INSTANT + 2):
        for action, arguments, then in replace(model, pass_limit=pass_limit).attempts(state):
            if action != "trigger" or not state.triggered[str(arguments[0])]:
                choice = arguments[:1] if action == "read_cron_state" else arguments
                found.setdefault((action, choice), set()).update([then] if then else [])
    return found


@pytest.mark.parametrize(
    "model",
    [
        model_of("digest", instances=2),
        model_of("digest", "poll", instances=1),
        model_of("poll", instances=1, faulty_evaluator=True),
    ],
    ids=["two instances", "two schedules", "faulty evaluator"],
)
def test_z3_takes_the_steps_of_the_python_model_and_no_others(model: Model) -> None:
    named, protocol = Named(model), symbolic.Protocol(sound=not model.faulty_evaluator)
    solver = z3.Solver()
    solver.add(*named.world())
    taken: Counter[str] = Counter()

    def possible(*query: Bool) -> bool:
        solver.push()
        solver.add(*query)
        verdict = str(solver.check())
        solver.pop()
        assert verdict in {"sat", "unsat"}
        return verdict == "sat"

    for state in walked(model):
        before = named.state(state)
        for (action, choice), thens in steps(model, state).items():
            step = protocol.take(action, before)
            chosen = named.chooses(action, choice, next(iter(thens), None))
            targets = [named.same(step.then, named.state(then)) for then in thens]
            for target in targets:
                assert possible(*chosen, step.enabled, target), (state, action, choice)
                taken[action] += 1
            others = z3.Not(z3.Or(targets)) if action != "sync" or protocol.sound else z3.BoolVal(not thens)
            assert not possible(*chosen, step.enabled, others), (state, action, choice)

    record("symbolic", steps=taken.total())
    assert set(taken) == set(symbolic.actions())


def disagreements(guards: frozenset[str]) -> int:
    """Return how often these guards and the model's differ, of rows and passes that need not be reachable."""
    model, rng = model_of("poll", instances=1), random.Random(1)
    named, protocol = Named(model), symbolic.Protocol(guards=guards)
    apart = z3.Solver()
    apart.add(z3.Distinct(list(named.d.values())))
    count = 0
    for _ in range(PAIRS):
        # Mostly as read: a guard is noticed where no other one refuses.
        fires = tuple(sorted(rng.sample([0, 1, 2], rng.randint(1, 2))))
        frozen = Frozen(rng.choice(["each", "odd"]), rng.choice([0, 1]), rng.choice([None, 0, 1]), fires)
        row = Row(frozen.definition, frozen.expected, frozen.anchor, paused=rng.random() < 1 / 4)
        if rng.random() < 1 / 4:
            row = replace(row, definition=rng.choice(["each", "odd"]))
        if rng.random() < 1 / 4:
            row = replace(row, last=rng.choice([None, 0, 1]))
        now = rng.choice([1, 2])
        passes = protocol.passes(replace(symbolic.init(), now=z3.IntVal(now)), named.row(row), named.frozen(frozen))
        count += (apart.check(passes) == z3.sat) != model.passes(row, frozen, now)
    return count


def test_the_guards_of_z3_are_those_of_the_python_model() -> None:
    assert disagreements(frozenset(symbolic.GUARDS)) == 0


@pytest.mark.parametrize("guard", symbolic.GUARDS)
def test_a_guard_that_z3_lacks_is_noticed(guard: str) -> None:
    assert disagreements(frozenset(symbolic.GUARDS) - {guard}) > 0
