"""The protocol of ``spec/AwaCron.tla`` as z3 terms: any number of instances, schedules, definitions and instants.

Instances, schedules and definitions are sorts of which nothing is known; instants are all integers. A variable of
the spec that is a function there is a function from terms to terms here, so an action writes a new one over the old
one, ``[f EXCEPT ![x] = v]``, and what it leaves alone needs no axiom. Names are the spec's, actions in snake_case;
what an action may choose (its arguments, the new clock, what the evaluator returns) are constants without a value.

The fires of a pass are any set of instants with a first and a last one, of any length. ``Protocol.sound`` says
whether they are what the expression has; if not, they are arbitrary, as with the spec's FaultyEvaluator. The clock
always slips. ``PassLimit`` is left out: a catch-up pass takes any number of the oldest fires that are due.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import z3

from assurance import SPEC, CannotRunError

Term: TypeAlias = z3.ExprRef
Bool: TypeAlias = z3.BoolRef
Fires: TypeAlias = Callable[[Term], Bool]

Instance = z3.DeclareSort("Instance")
Schedule = z3.DeclareSort("Schedule")
Definition = z3.DeclareSort("Definition")
Instant = z3.IntSort()


def datatype(name: str, constructor: str, *fields: tuple[str, z3.SortRef]) -> z3.DatatypeSortRef:
    """Return a sort of records, and of ``none``."""
    declared = z3.Datatype(name)
    declared.declare("none")
    declared.declare(constructor, *fields)
    return declared.create()


Maybe = datatype("MaybeInstant", "at", ("instant", Instant))
Row = datatype(
    "MaybeRow", "row", ("definition", Definition), ("last", Maybe), ("anchor", Instant), ("paused", z3.BoolSort())
)
Frozen = datatype(
    "MaybeFrozen",
    "frozen",
    ("read_definition", Definition),
    ("read_anchor", Instant),
    ("expected", Maybe),
    ("first", Instant),
    ("newest", Instant),
)
Holder = datatype("MaybeInstance", "held", ("by", Instance))

FIRES_OF = z3.Function("FiresOf", Definition, Instant, z3.BoolSort())
COALESCES = z3.Function("coalesces", Schedule, z3.BoolSort())
READ_FIRES = z3.Function("read_fires", Schedule, Instant, z3.BoolSort())
"""What the evaluator returns for a pass."""
SETTLED = z3.Function("settled", Instant, z3.BoolSort())
"""What it returns for an edit."""

GUARDS = ("LastAsRead", "DefinedAsRead", "Unpaused", "Advances", "AfterAnchor", "AlreadyDue")


def exists(row: Term) -> Bool:
    """Tell whether there is a row: ``rows[s] # None``."""
    return Row.is_row(row)


def after(fire: Term, last: Term) -> Bool:
    """Tell whether a fire comes after a last one; everything comes after none."""
    return z3.Or(Maybe.is_none(last), fire > Maybe.instant(last))


def larger(a: Term, b: Term) -> Term:
    """Return the larger of two instants."""
    return z3.If(a > b, a, b)


@dataclass(frozen=True)
class State:
    """The variables of the spec; ``frozen`` and ``fires`` are what a pass holds, if ``snapshot`` says it is on."""

    now: Term
    rows: Callable[[Term], Term]
    jobs: Callable[[Term, Term], Term]
    triggered: Callable[[Term], Term]
    floor: Callable[[Term], Term]
    lock: Term
    up: Callable[[Term], Bool]
    believes: Callable[[Term], Bool]
    snapshot: Callable[[Term], Bool]
    frozen: Callable[[Term, Term], Term]
    fires: Callable[[Term, Term, Term], Bool]


def some_state() -> State:
    """Return a state of which nothing is known."""
    return State(
        now=z3.Const("now", Instant),
        rows=z3.Function("rows", Schedule, Row),
        jobs=z3.Function("jobs", Schedule, Instant, z3.IntSort()),
        triggered=z3.Function("triggered", Schedule, z3.IntSort()),
        floor=z3.Function("floor", Schedule, Instant),
        lock=z3.Const("lock", Holder),
        up=z3.Function("up", Instance, z3.BoolSort()),
        believes=z3.Function("believes", Instance, z3.BoolSort()),
        snapshot=z3.Function("snapshot", Instance, z3.BoolSort()),
        frozen=z3.Function("frozen", Instance, Schedule, Frozen),
        fires=z3.Function("fires", Instance, Schedule, Instant, z3.BoolSort()),
    )


def init() -> State:
    """Return the initial state: nothing registered, everybody up, nobody leads."""
    return State(
        now=z3.IntVal(0),
        rows=always(Row.none),
        jobs=always(z3.IntVal(0)),
        triggered=always(z3.IntVal(0)),
        floor=always(z3.IntVal(0)),
        lock=Holder.none,
        up=always(z3.BoolVal(True)),
        believes=always(z3.BoolVal(False)),
        snapshot=always(z3.BoolVal(False)),
        frozen=always(Frozen.none),
        fires=always(z3.BoolVal(False)),
    )


def always(value: Term) -> Callable[..., Term]:
    """Return the function that has this value everywhere."""
    return lambda *_arguments: value


def but(function: Callable[[Term], Term], at: Term, value: Term) -> Callable[[Term], Term]:
    """Return ``[function EXCEPT ![at] = value]``."""
    return lambda x: z3.If(x == at, value, function(x))


@dataclass(frozen=True)
class Step:
    """An action: when it is possible (of some arguments), and the state that it leads to."""

    enabled: Bool
    then: State


@dataclass(frozen=True)
class Arguments:
    """What the actions may choose; constants without a value."""

    i: Term
    s: Term
    d: Term
    to: Term


ARGUMENTS = Arguments(
    i=z3.Const("i", Instance), s=z3.Const("s", Schedule), d=z3.Const("d", Definition), to=z3.Const("to", Instant)
)


def ordered(fires: Fires, first: Term, newest: Term) -> Bool:
    """Say that a set of instants has a first and a last one, so it is not empty."""
    f = z3.Int("f")
    bounded = z3.ForAll([f], z3.Implies(fires(f), z3.And(first <= f, f <= newest)))
    return z3.And(fires(first), fires(newest), bounded)


def due(row: Term, t: Term, f: Term) -> Bool:
    """Due: an instant of the definition, after the anchor and the last fire, not after ``t``."""
    return z3.And(FIRES_OF(Row.definition(row), f), f > Row.anchor(row), after(f, Row.last(row)), f <= t)


def chosen(s: Term, row: Term, t: Term, fires: Fires) -> Bool:
    """Say that fires are what a pass takes: the latest that is due, or the oldest, any number of them."""
    f, g = z3.Ints("f g")
    taken = z3.ForAll([f], z3.Implies(fires(f), due(row, t, f)))
    latest = z3.ForAll([f, g], z3.Implies(z3.And(fires(f), due(row, t, g)), g <= f))
    oldest = z3.ForAll([f, g], z3.Implies(z3.And(fires(f), due(row, t, g), g < f), fires(g)))
    return z3.And(taken, z3.If(COALESCES(s), latest, oldest))


def within(row: Term, t: Term, fires: Fires) -> Bool:
    """Say that fires are after the anchor and the last fire and not after ``t``, whatever the expression has."""
    f = z3.Int("f")
    return z3.ForAll([f], z3.Implies(fires(f), z3.And(f > Row.anchor(row), after(f, Row.last(row)), f <= t)))


@dataclass(frozen=True)
class Protocol:
    """The actions; a variant leaves out guards, or replaces one of the small operators that the actions write."""

    sound: bool = False
    guards: frozenset[str] = frozenset(GUARDS)
    anchor_on_insert: Callable[[Term, Term], Term] = larger
    """AnchorOnInsert, of the clock and the floor."""
    anchor_on_edit: Callable[[Term, Term], Term] = larger
    """AnchorOnEdit, of the clock and the anchor."""
    floor_on_remove: Callable[[Term, Term], Term] = larger
    """FloorOnRemove, of the floor and the last fire, if there is one."""

    def passes(self, state: State, row: Term, frozen: Term) -> Bool:
        """Passes: the guards of the conditional write."""
        guards = {
            "LastAsRead": Row.last(row) == Frozen.expected(frozen),
            "DefinedAsRead": z3.And(
                Row.definition(row) == Frozen.read_definition(frozen), Row.anchor(row) == Frozen.read_anchor(frozen)
            ),
            "Unpaused": z3.Not(Row.paused(row)),
            "Advances": after(Frozen.first(frozen), Row.last(row)),
            "AfterAnchor": Frozen.first(frozen) > Row.anchor(row),
            "AlreadyDue": Frozen.newest(frozen) <= state.now,
        }
        return z3.And([condition for name, condition in guards.items() if name in self.guards])

    def wins(self, state: State, i: Term, s: Term) -> Bool:
        """Winners: tell whether the instance's write would enqueue for the schedule."""
        row, frozen = state.rows(s), state.frozen(i, s)
        return z3.And(exists(row), Frozen.is_frozen(frozen), self.passes(state, row, frozen))

    def wins_any(self, state: State, i: Term) -> Bool:
        """Tell whether the instance's write would enqueue anything."""
        s = z3.Const("any_s", Schedule)
        return z3.Exists([s], self.wins(state, i, s))

    @staticmethod
    def step_down(state: State, i: Term) -> State:
        """StepDown."""
        return replace(
            state,
            believes=but(state.believes, i, z3.BoolVal(False)),
            snapshot=but(state.snapshot, i, z3.BoolVal(False)),
        )

    # The system.

    def acquire_leader(self, state: State, a: Arguments) -> Step:
        """AcquireLeader."""
        return Step(
            z3.And(state.up(a.i), z3.Not(state.believes(a.i)), state.lock == Holder.none),
            replace(state, lock=Holder.held(a.i), believes=but(state.believes, a.i, z3.BoolVal(True))),
        )

    def ping_leader(self, state: State, a: Arguments) -> Step:
        """PingLeader."""
        stale = z3.And(state.up(a.i), state.believes(a.i), state.lock != Holder.held(a.i))
        return Step(stale, self.step_down(state, a.i))

    def evaluation(self, state: State, s: Term, frozen: Term, fires: Fires) -> Bool:
        """Evaluations: say that this is what the evaluator may make of a schedule."""
        row = state.rows(s)
        as_read = z3.And(
            Frozen.read_definition(frozen) == Row.definition(row),
            Frozen.read_anchor(frozen) == Row.anchor(row),
            Frozen.expected(frozen) == Row.last(row),
            ordered(fires, Frozen.first(frozen), Frozen.newest(frozen)),
        )
        f = z3.Int("f")
        nothing = z3.ForAll([f], z3.Not(due(row, state.now, f))) if self.sound else z3.BoolVal(True)
        some = chosen(s, row, state.now, fires) if self.sound else z3.BoolVal(True)
        skipped = z3.Or(z3.Not(exists(row)), Row.paused(row))
        return z3.If(Frozen.is_none(frozen), z3.Or(skipped, nothing), z3.And(z3.Not(skipped), as_read, some))

    def read_cron_state(self, state: State, a: Arguments) -> Step:
        """ReadCronState."""
        read = z3.Function("read", Schedule, Frozen)
        s = z3.Const("any_s", Schedule)
        sensible = z3.ForAll([s], self.evaluation(state, s, read(s), lambda f: READ_FIRES(s, f)))
        something = z3.Exists([s], Frozen.is_frozen(read(s)))
        return Step(
            z3.And(state.up(a.i), state.believes(a.i), z3.Not(state.snapshot(a.i)), sensible, something),
            replace(
                state,
                snapshot=but(state.snapshot, a.i, z3.BoolVal(True)),
                frozen=lambda i, s: z3.If(i == a.i, read(s), state.frozen(i, s)),
                fires=lambda i, s, f: z3.If(i == a.i, READ_FIRES(s, f), state.fires(i, s, f)),
            ),
        )

    def atomic_enqueue(self, state: State, a: Arguments) -> Step:
        """AtomicEnqueue."""

        def marked(s: Term) -> Term:
            row = state.rows(s)
            last = Maybe.at(Frozen.newest(state.frozen(a.i, s)))
            now_marked = Row.row(Row.definition(row), last, Row.anchor(row), Row.paused(row))
            return z3.If(self.wins(state, a.i, s), now_marked, row)

        def with_jobs(s: Term, f: Term) -> Term:
            made = z3.And(self.wins(state, a.i, s), state.fires(a.i, s, f))
            return state.jobs(s, f) + z3.If(made, 1, 0)

        return Step(
            z3.And(state.up(a.i), state.snapshot(a.i), self.wins_any(state, a.i)),
            replace(state, rows=marked, jobs=with_jobs, snapshot=but(state.snapshot, a.i, z3.BoolVal(False))),
        )

    def cas_fail(self, state: State, a: Arguments) -> Step:
        """CASFail."""
        return Step(
            z3.And(state.up(a.i), state.snapshot(a.i), z3.Not(self.wins_any(state, a.i))),
            replace(state, snapshot=but(state.snapshot, a.i, z3.BoolVal(False))),
        )

    # The environment.

    def advance_clock(self, state: State, a: Arguments) -> Step:
        """AdvanceClock: to any other instant."""
        return Step(a.to != state.now, replace(state, now=a.to))

    def lose_leader(self, state: State, a: Arguments) -> Step:
        """LoseLeader."""
        holds = z3.And(state.believes(a.i), state.lock == Holder.held(a.i))
        return Step(holds, replace(self.step_down(state, a.i), lock=Holder.none))

    def drop_session(self, state: State, a: Arguments) -> Step:
        """DropSession."""
        return Step(state.lock == Holder.held(a.i), replace(state, lock=Holder.none))

    def crash(self, state: State, a: Arguments) -> Step:
        """Crash."""
        freed = z3.If(state.lock == Holder.held(a.i), Holder.none, state.lock)
        down = replace(self.step_down(state, a.i), up=but(state.up, a.i, z3.BoolVal(False)), lock=freed)
        return Step(state.up(a.i), down)

    def recover(self, state: State, a: Arguments) -> Step:
        """Recover."""
        return Step(z3.Not(state.up(a.i)), replace(state, up=but(state.up, a.i, z3.BoolVal(True))))

    def pause(self, state: State, a: Arguments) -> Step:
        """Pause."""
        row = state.rows(a.s)
        paused = Row.row(Row.definition(row), Row.last(row), Row.anchor(row), True)
        return Step(z3.And(exists(row), z3.Not(Row.paused(row))), replace(state, rows=but(state.rows, a.s, paused)))

    def resume(self, state: State, a: Arguments) -> Step:
        """Resume."""
        row = state.rows(a.s)
        resumed = Row.row(Row.definition(row), Row.last(row), Row.anchor(row), False)
        return Step(z3.And(exists(row), Row.paused(row)), replace(state, rows=but(state.rows, a.s, resumed)))

    def trigger(self, state: State, a: Arguments) -> Step:
        """Trigger."""
        once_more = but(state.triggered, a.s, state.triggered(a.s) + 1)
        return Step(exists(state.rows(a.s)), replace(state, triggered=once_more))

    def sync(self, state: State, a: Arguments) -> Step:
        """Sync: insert the row; or settle what is due, then write the new definition."""
        row, settles = state.rows(a.s), z3.Bool("settles")
        first, newest = z3.Ints("settled_first settled_newest")
        f = z3.Int("f")
        anchor = self.anchor_on_insert(state.now, state.floor(a.s))
        inserted = Row.row(a.d, Maybe.none, anchor, False)
        last = z3.If(settles, Maybe.at(newest), Row.last(row))
        edited = Row.row(a.d, last, self.anchor_on_edit(state.now, Row.anchor(row)), Row.paused(row))
        if self.sound:
            nothing = z3.Or(Row.paused(row), z3.ForAll([f], z3.Not(due(row, state.now, f))))
            some = chosen(a.s, row, state.now, SETTLED)
        else:
            nothing, some = z3.BoolVal(True), within(row, state.now, SETTLED)
        settling = z3.If(settles, z3.And(z3.Not(Row.paused(row)), ordered(SETTLED, first, newest), some), nothing)

        def with_jobs(s: Term, f: Term) -> Term:
            made = z3.And(s == a.s, exists(row), settles, SETTLED(f))
            return state.jobs(s, f) + z3.If(made, 1, 0)

        return Step(
            z3.Implies(exists(row), z3.And(Row.definition(row) != a.d, settling)),
            replace(state, rows=but(state.rows, a.s, z3.If(exists(row), edited, inserted)), jobs=with_jobs),
        )

    def remove(self, state: State, a: Arguments) -> Step:
        """Remove."""
        row, floor = state.rows(a.s), state.floor(a.s)
        last = Row.last(row)
        left = z3.If(Maybe.is_none(last), floor, self.floor_on_remove(floor, Maybe.instant(last)))
        return Step(
            exists(row), replace(state, rows=but(state.rows, a.s, Row.none), floor=but(state.floor, a.s, left))
        )

    def take(self, action: str, state: State) -> Step:
        """Return the step that an action takes from a state, by the action's name."""
        step = getattr(self, action)(state, ARGUMENTS)
        assert isinstance(step, Step)
        return step


def snake(name: str) -> str:
    """Return the name of an action in Python."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def definition_in(spec: str, name: str) -> str:
    """Return the text of a definition of the spec, up to the next blank line."""
    found = re.search(rf"^{name} ==\n(.*?)\n\n", spec, re.MULTILINE | re.DOTALL)
    if found is None:
        raise CannotRunError(f"spec/AwaCron.tla no longer defines {name} the way that it is read here")
    return found[1]


def actions() -> list[str]:
    """Return the actions of the spec's Next, by their names here.

    Raises:
        CannotRunError: If the spec has an action or a guard that is not here.
    """
    spec = (SPEC / "AwaCron.tla").read_text(encoding="utf-8")
    both = definition_in(spec, "System") + "\n" + definition_in(spec, "Environment")
    names = [snake(name) for name in re.findall(r"\\/ (?:\\E \w+ \\in \w+ : )?([A-Z]\w*)", both)]
    guards = re.findall(r"/\\ (\w+)\(row, frozen\)", definition_in(spec, r"Passes\(row, frozen\)"))
    unknown = [name for name in names if not hasattr(Protocol, name)]
    if unknown or set(guards) != set(GUARDS) or len(names) < 2:
        raise CannotRunError(f"In spec/AwaCron.tla but not here, or the other way round: {unknown} {guards}")
    return names
