"""The model, broken on purpose: the safety variants of ``spec/cfg``, by the same names, for the same properties.

Each shows that the checks of ``spec_properties.py`` can fail.
"""

# ruff: noqa: ARG002 -- what is broken often ignores what it should look at

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from tests.model.spec_model import Model, marked, with_jobs
from tests.model.spec_state import Fires, Frozen, Row, State, Table


class NoPauseGuard(Model):
    def unpaused(self, row: Row) -> bool:
        return True


class NoCAS(Model):
    def last_as_read(self, row: Row, frozen: Frozen) -> bool:
        return True

    def advances(self, row: Row, frozen: Frozen) -> bool:
        return True


class NoDefinedGuard(Model):
    def defined_as_read(self, row: Row, frozen: Frozen) -> bool:
        return True


class NoDefinedGuardCatchUp(NoDefinedGuard):
    pass


class NoAnchorGuard(Model):
    def after_anchor(self, row: Row, frozen: Frozen) -> bool:
        return True


class RecreateABA(NoDefinedGuard, NoAnchorGuard):
    pass


class NoAnchor(NoAnchorGuard):
    def due(self, row: Row, t: int) -> Fires:
        return super().due(replace(row, anchor=0), t)


class NoMonotoneGuard(Model):
    def advances(self, row: Row, frozen: Frozen) -> bool:
        return True


class NoDueGuard(Model):
    def already_due(self, frozen: Frozen, now: int) -> bool:
        return True


class EarlyFire(NoDueGuard):
    def due(self, row: Row, t: int) -> Fires:
        assert self.max_time is not None
        return super().due(row, min(t + 1, self.max_time))


@dataclass(frozen=True, slots=True)
class HalfDone(Frozen):
    """A frozen entry whose first statement is through."""


class SplitMarkInsert(Model):
    mark_first = True

    def in_flight(self, state: State, i: str) -> dict[str, Fires]:
        read = (state.snapshot[i] or {}).items()
        return {s: frozen.fires for s, frozen in read if isinstance(frozen, HalfDone)}

    def winners(self, state: State, i: str) -> dict[str, Fires]:
        return self.in_flight(state, i) or super().winners(state, i)

    def atomic_enqueue(self, state: State, i: str) -> State | None:
        read = state.snapshot[i]
        won = self.winners(state, i)
        if read is None or not won:
            return None
        first = not self.in_flight(state, i)
        half = {s: HalfDone(**asdict(f)) if f and s in won else None for s, f in read.items()}
        then = replace(state, snapshot=state.snapshot.but(i, Table(half) if first else None))
        for s, fires in won.items():
            row, frozen = then.rows[s], read[s]
            if first != self.mark_first:
                then = replace(then, jobs=then.jobs.but(s, with_jobs(then.jobs[s], fires)))
            elif row is not None and frozen is not None and self.last_as_read(row, frozen):
                then = replace(then, rows=then.rows.but(s, marked(row, fires)))
        return then


class SplitMarkInsertLost(SplitMarkInsert):
    pass


class SplitInsertMark(SplitMarkInsert):
    mark_first = False


class CoalesceEarliest(Model):
    def coalesced(self, due: Fires) -> Fires:
        return due[:1]


class CatchUpSkips(Model):
    def caught_up(self, due: Fires) -> Fires:
        return due[-self.pass_limit :]


class UnboundedPass(Model):
    def caught_up(self, due: Fires) -> Fires:
        return due


class EditDropsDue(Model):
    def settled_fires(self, s: str, row: Row, now: int) -> Fires:
        return ()


class EditSettlesPaused(Model):
    def settled_fires(self, s: str, row: Row, now: int) -> Fires:
        return self.chosen(s, row, now)


class EditKeepsAnchor(Model):
    def anchor_on_edit(self, row: Row, now: int) -> int:
        return row.anchor


class EditLowersAnchor(Model):
    def anchor_on_edit(self, row: Row, now: int) -> int:
        return now


class InsertAtZero(Model):
    def anchor_on_insert(self, state: State, s: str) -> int:
        return 0


class NoFloor(Model):
    def floor_on_remove(self, state: State, s: str) -> int:
        return state.floor[s]


class UpsertClearsPause(Model):
    def edited_row(self, s: str, row: Row, d: str, now: int) -> Row:
        return replace(super().edited_row(s, row, d, now), paused=False)


class UpsertClearsLast(Model):
    def edited_row(self, s: str, row: Row, d: str, now: int) -> Row:
        return replace(super().edited_row(s, row, d, now), last=None)


class RegisterPaused(Model):
    def inserted_row(self, state: State, s: str, d: str) -> Row:
        return replace(super().inserted_row(state, s, d), paused=True)


class NaiveDelete(Model):
    def upserted(self, state: State, s: str, row: Row) -> Table[str, Row | None]:
        return Table({**dict.fromkeys(state.rows), s: row})


class PauseMovesLast(Model):
    def pause(self, state: State, s: str) -> State | None:
        then = super().pause(state, s)
        row = state.rows[s]
        if then is None or row is None:
            return None
        return replace(then, rows=then.rows.but(s, replace(row, paused=True, last=state.now)))


class TriggerMovesLast(Model):
    def trigger(self, state: State, s: str) -> State | None:
        then = super().trigger(state, s)
        row = state.rows[s]
        if then is None or row is None:
            return None
        return replace(then, rows=then.rows.but(s, replace(row, last=state.now)))


class TriggerRefusesPaused(Model):
    def trigger(self, state: State, s: str) -> State | None:
        row = state.rows[s]
        return None if row is not None and row.paused else super().trigger(state, s)


class RemoveTakesJobs(Model):
    def remove(self, state: State, s: str) -> State | None:
        then = super().remove(state, s)
        return then and replace(then, jobs=then.jobs.but(s, Table()))


class BelievesWithoutLock(Model):
    def acquire_leader(self, state: State, i: str) -> State | None:
        then = super().acquire_leader(state, i)
        return then and replace(then, lock=None)


class LockOutlivesCrash(Model):
    def crash(self, state: State, i: str) -> State | None:
        then = super().crash(state, i)
        return then and replace(then, lock=state.lock)
