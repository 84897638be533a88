"""Turns an answer of z3 into a step that one can read, and that the Python model can take again."""

from __future__ import annotations

from typing import Any

import z3

from assurance.claims import F, G, I, S, holds_pass
from assurance.symbolic import (
    ARGUMENTS,
    COALESCES,
    FIRES_OF,
    SETTLED,
    Bool,
    Definition,
    Frozen,
    Holder,
    Instance,
    Instant,
    Maybe,
    Row,
    Schedule,
    State,
    Term,
    exists,
)

Plain = dict[str, Any]
"""What JSON can hold."""


def small(state: State, last_instant: int) -> list[Bool]:
    """Ask for a state to read: one instance, one schedule, instants from 0 up to the last one."""

    def inside(instant: Term) -> Bool:
        return z3.And(instant >= 0, instant <= last_instant)

    def inside_if(there: Bool, *instants: Term) -> Bool:
        return z3.Implies(there, z3.And([inside(instant) for instant in instants]))

    i, s = z3.Const("any_i", Instance), z3.Const("any_s", Schedule)
    d, f = z3.Const("any_d", Definition), z3.Const("any_f", Instant)
    row, frozen = state.rows(S), state.frozen(I, S)
    somewhere = z3.Or(state.jobs(S, f) != 0, state.fires(I, S, f), FIRES_OF(d, f), SETTLED(f))
    return [
        z3.ForAll([i], z3.And(i == I, i == ARGUMENTS.i)),
        z3.ForAll([s], z3.And(s == S, s == ARGUMENTS.s)),
        z3.ForAll([d, f], inside_if(somewhere, f)),
        *(inside(instant) for instant in (state.now, state.floor(S), ARGUMENTS.to, F, G)),
        inside_if(exists(row), Row.anchor(row)),
        inside_if(Maybe.is_at(Row.last(row)), Maybe.instant(Row.last(row))),
        inside_if(
            Frozen.is_frozen(frozen), Frozen.read_anchor(frozen), Frozen.first(frozen), Frozen.newest(frozen)
        ),
        inside_if(Maybe.is_at(Frozen.expected(frozen)), Maybe.instant(Frozen.expected(frozen))),
        state.triggered(S) == 0,
    ]


class Reader:
    """Reads states out of a model of z3 in plain values."""

    def __init__(self, model: z3.ModelRef, last_instant: int) -> None:
        self._model, self._instants = model, range(last_instant + 1)
        self._definitions: dict[str, str] = {}

    def value(self, term: Term) -> Term:
        """Return what the model says a term is."""
        return self._model.eval(term, model_completion=True)

    def true(self, term: Term) -> bool:
        """Tell whether the model has it so."""
        return bool(z3.is_true(self.value(term)))

    def instant(self, term: Term) -> int:
        """Return an instant."""
        return int(self.value(term).as_long())

    def maybe(self, term: Term) -> int | None:
        """Return an instant or None."""
        return self.instant(Maybe.instant(term)) if self.true(Maybe.is_at(term)) else None

    def definition(self, term: Term) -> str:
        """Return a name for a definition."""
        return self._definitions.setdefault(str(self.value(term)), f"d{len(self._definitions)}")

    def definitions(self) -> dict[str, list[int]]:
        """Return the instants of each definition that was read."""
        terms = {str(d): d for d in self._model.get_universe(Definition) or []}
        return {
            name: [f for f in self._instants if self.true(FIRES_OF(terms[key], z3.IntVal(f)))]
            for key, name in self._definitions.items()
        }

    def row(self, row: Term) -> Plain | None:
        """Return a row."""
        if not self.true(exists(row)):
            return None
        return {
            "definition": self.definition(Row.definition(row)),
            "last": self.maybe(Row.last(row)),
            "anchor": self.instant(Row.anchor(row)),
            "paused": self.true(Row.paused(row)),
        }

    def frozen(self, state: State) -> Plain | None:
        """Return what a pass has frozen for the schedule."""
        frozen = state.frozen(I, S)
        if not self.true(holds_pass(state)):
            return None
        return {
            "definition": self.definition(Frozen.read_definition(frozen)),
            "anchor": self.instant(Frozen.read_anchor(frozen)),
            "expected": self.maybe(Frozen.expected(frozen)),
            "fires": [f for f in self._instants if self.true(state.fires(I, S, z3.IntVal(f)))],
        }

    def state(self, state: State) -> Plain:
        """Return a state of one instance and one schedule."""
        counts = {f: self.instant(state.jobs(S, z3.IntVal(f))) for f in self._instants}
        return {
            "now": self.instant(state.now),
            "row": self.row(state.rows(S)),
            "jobs": {f: count for f, count in counts.items() if count},
            "floor": self.instant(state.floor(S)),
            "held": self.true(state.lock == Holder.held(I)),
            "up": self.true(state.up(I)),
            "believes": self.true(state.believes(I)),
            "reads": self.true(state.snapshot(I)),
            "frozen": self.frozen(state),
        }


def read_step(model: z3.ModelRef, last_instant: int, action: str, before: State, then: State) -> Plain:
    """Return a step of one instance and one schedule, and what the model chose for the rest."""
    reader = Reader(model, last_instant)
    return {
        "action": action,
        "definition": reader.definition(ARGUMENTS.d) if action == "sync" else None,
        "before": reader.state(before),
        "after": reader.state(then),
        "coalesces": reader.true(COALESCES(S)),
        "definitions": reader.definitions(),
        "last_instant": last_instant,
    }


def in_words(state: Plain) -> str:
    """Return a state on one line."""
    row, frozen = state["row"], state["frozen"]
    words = [f"clock {state['now']}", f"floor {state['floor']}"]
    if row is None:
        words += ["no row"]
    else:
        paused = ", paused" if row["paused"] else ""
        words += [f"row {row['definition']}, last {none_or(row['last'])}, anchor {row['anchor']}{paused}"]
    jobs = [f"{fire}" if count == 1 else f"{fire} ({count} times)" for fire, count in state["jobs"].items()]
    words += [f"jobs at {', '.join(jobs) or 'no instant'}"]
    if frozen is not None:
        fires = ", ".join(map(str, frozen["fires"]))
        read = f"{frozen['definition']}, last {none_or(frozen['expected'])}, anchor {frozen['anchor']}"
        words += [f"pass has read {read}, fires {fires}"]
    return "; ".join(words)


def none_or(instant: int | None) -> str:
    """Return an instant as a word."""
    return "none" if instant is None else str(instant)
