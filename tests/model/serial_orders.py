"""The criterion for concurrent transactions: what they did equals some order of actions that the spec allows.

A run is accepted if all of this holds.

SerialOrder
    There is an order of the committed transactions in which the actions of the Python model, each at its party's
    clock, tell every party what it was told and end in the state that was observed: rows, jobs, triggered jobs,
    floors. Who committed before another took its snapshot comes before it; at READ COMMITTED the snapshot is that
    of the statement that acts, for a sync that of its write. A transaction's actions keep their order; a removal
    and a sync in one transaction are still two actions, as in the spec. What was rolled back has no place in the
    order, so it must have left nothing.
LostForAReason
    An enqueue brings what it would in its place in that order, except for schedules whose rows another transaction
    held as its statement ran. A sync loses a definition only if the row was held then, or changed between its read
    and its write. A serialization failure needs, at REPEATABLE READ, another transaction that changed one of the
    rows and committed after this one had taken its snapshot; at SERIALIZABLE Postgres may see a conflict in any
    transaction that committed meanwhile; at READ COMMITTED there is none. It aborts its transaction, which then has
    no place in the order; a single statement outside of a transaction has no such excuse.
NobodyWaitsForARow
    Enqueue and trigger never wait, a sync waits for the sync lock alone.
NoDeadlock
    There is none.
NoDuplicateFire
    No instant has two jobs.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tests.model.spec_model import Model
from tests.model.spec_state import Frozen, State, Table

Level = Literal["read_committed", "repeatable_read", "serializable"]
Reading = Mapping[str, Frozen]
Names = frozenset[str]
NOBODY: Names = frozenset()

SERIALIZATION_FAILURE = "40001"
DEADLOCK = "40P01"
MAY_WAIT = ("pause", "resume", "remove", "lock")
BEFORE = -1
"""The moment of a stale sync's read: since then the schedules' rows have been written."""


@dataclass(frozen=True, kw_only=True)
class Deed:
    """An action, and what its party was told.

    Attributes:
        name: The schedule; empty for an enqueue, which brings its reading.
        told: Per schedule the number of jobs, for an enqueue; the change and the number of jobs, or None, for a
            sync; otherwise True, False or None as the action returns it.
        held: The schedules whose rows another transaction held as the statement ran.
    """

    action: str
    clock: int
    told: object
    name: str = ""
    definition: str = ""
    reading: Reading = field(default_factory=dict)
    held: Names = NOBODY

    @property
    def wrote(self) -> Names:
        """The schedules whose rows it has changed."""
        if self.action == "trigger" or not self.told:
            return NOBODY
        return frozenset(self.told) if isinstance(self.told, dict) else frozenset((self.name,))


@dataclass(frozen=True, kw_only=True)
class Transaction:
    """Deeds that were committed together; ``began`` and ``ended`` are steps of the run."""

    deeds: tuple[Deed, ...]
    began: int
    ended: int

    @property
    def wrote(self) -> Names:
        return NOBODY.union(*(deed.wrote for deed in self.deeds))


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A lost race: the reason, the schedules it was about, and the steps of read and of write."""

    reason: str
    names: Names
    since: int
    until: int
    held: Names = NOBODY


@dataclass(kw_only=True)
class Account:
    """What one party has done, lost and waited for."""

    transactions: list[Transaction] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One order of the steps, and what came of it."""

    steps: tuple[tuple[int, str], ...]
    accounts: tuple[Account, ...]
    observed: State


def perform(model: Model, deed: Deed, state: State) -> State | None:
    """Perform a deed in the model; None where its party would have been told something else."""
    state = replace(state, now=deed.clock)
    told: object
    match deed.action:
        case "enqueue":
            return _enqueue(model, deed, state)
        case "pause" | "resume":
            then = getattr(model, deed.action)(state, deed.name)
            told = None if state.rows[deed.name] is None else then is not None
        case "sync":
            row = state.rows[deed.name]
            then = model.sync(state, deed.name, deed.definition)
            if then is None:
                told = None
            elif row is None:
                told = ("inserted", 0)
            else:
                told = ("redefined", len(model.settled_fires(deed.name, row, state.now)))
        case _:
            then = getattr(model, deed.action)(state, deed.name)
            told = then is not None
    if told != deed.told:
        return None
    return state if then is None else then


def _enqueue(model: Model, deed: Deed, state: State) -> State | None:
    """Perform an enqueue: of the schedules that it could have, it leaves only those that somebody held."""
    assert isinstance(deed.told, dict)
    i = model.instances[0]
    could = model.winners(
        replace(state, snapshot=state.snapshot.but(i, Table[str, Frozen | None](deed.reading))), i
    )
    for name, fires in could.items():
        if deed.told.get(name) != len(fires) and (name in deed.told or name not in deed.held):
            return None
    if not deed.told.keys() <= could.keys():
        return None
    had = Table[str, Frozen | None]((name, frozen) for name, frozen in deed.reading.items() if name in deed.told)
    holding = replace(state, snapshot=state.snapshot.but(i, had))
    then = model.atomic_enqueue(holding, i) if deed.told else model.cas_fail(holding, i)
    return then and replace(then, snapshot=state.snapshot)


def seen(state: State) -> tuple[object, ...]:
    """Return the part of a state that transactions write."""
    return state.rows, state.jobs, state.triggered, state.floor


def serial_orders(
    model: Model, state: State, transactions: Sequence[Transaction], observed: State
) -> Iterator[list[Deed]]:
    """Yield every order of the deeds that explains what was told and observed."""
    if not transactions and seen(state) == seen(observed):
        yield []
    for each in transactions:
        others = [other for other in transactions if other is not each]
        if any(other.ended < each.began for other in others):
            continue
        first, *later = each.deeds
        then = perform(model, first, state)
        if then is not None:
            left = [*others, replace(each, deeds=tuple(later))] if later else others
            for rest in serial_orders(model, then, left, observed):
                yield [first, *rest]


def judge(model: Model, start: State, run: Run, level: Level, may_wait: Container[str] = MAY_WAIT) -> None:
    """Raise AssertionError with the name of the criterion that a run from ``start`` does not meet."""
    doubled = [(s, f) for s, jobs in run.observed.jobs.items() for f, count in jobs.items() if count > 1]
    assert not doubled, f"NoDuplicateFire: {doubled}"
    for party, account in enumerate(run.accounts):
        waited = [step for step in account.waits if step not in may_wait]
        assert not waited, f"NobodyWaitsForARow: party {party} waited at {waited}"
        theirs = [each for other in run.accounts if other is not account for each in other.transactions]
        for loss in account.losses:
            assert loss.reason != DEADLOCK, f"NoDeadlock: party {party}: {loss}"
            assert _has_a_reason(loss, theirs, level), f"LostForAReason: party {party}: {loss}"
    transactions = [each for account in run.accounts for each in account.transactions]
    order = next(serial_orders(model, start, transactions, run.observed), None)
    assert order is not None, f"SerialOrder: none explains {transactions} and {seen(run.observed)}"


def _has_a_reason(loss: Loss, theirs: Sequence[Transaction], level: Level) -> bool:
    meanwhile = [each for each in theirs if loss.since < each.ended <= loss.until]
    changed = any(not loss.names.isdisjoint(each.wrote) for each in meanwhile)
    if loss.reason == SERIALIZATION_FAILURE:
        return changed if level == "repeatable_read" else level == "serializable" and bool(meanwhile)
    return loss.since == BEFORE or changed or not loss.names.isdisjoint(loss.held)
