"""The model, broken on purpose: the safety variants of ``spec/cfg``, by the same names, for the same properties.

Each shows that the checks of ``spec_properties.py`` can fail.
"""

# ruff: noqa: ARG002 -- what is broken often ignores what it should look at

from __future__ import annotations

from collections.abc import Callable, Iterable
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


def with_row(state: State, s: str, row: Row) -> State:
    """Return the state with another row."""
    return replace(state, rows=state.rows.but(s, row))


def with_job(state: State, s: str, fires: Iterable[int]) -> State:
    """Return the state with a job more for each fire."""
    return replace(state, jobs=state.jobs.but(s, with_jobs(state.jobs[s], tuple(fires))))


def each_row(then: State | None, change: Callable[[str, Row], Row]) -> State | None:
    """Change every row of the state that a step leads to, if there is one."""
    rows = () if then is None else then.rows.items()
    return then and replace(then, rows=Table((s, row and change(s, row)) for s, row in rows))


def one_row(then: State | None, one: str, change: Callable[[Row], Row]) -> State | None:
    """Change one row of it."""
    return each_row(then, lambda s, row: change(row) if s == one else row)


# The evaluator.


class DueAgain(Model):
    def due(self, row: Row, t: int) -> Fires:
        return super().due(replace(row, last=None), t)


class DueLate(Model):
    def due(self, row: Row, t: int) -> Fires:
        return super().due(row, t - 1)


class DueAtAnchor(Model):
    def due(self, row: Row, t: int) -> Fires:
        return super().due(replace(row, anchor=row.anchor - 1), t)


class CatchUpCoalesces(Model):
    def chosen(self, s: str, row: Row, t: int) -> Fires:
        return self.coalesced(self.due(row, t))


class CoalesceCatchesUp(Model):
    def chosen(self, s: str, row: Row, t: int) -> Fires:
        return self.caught_up(self.due(row, t))


class CatchUpOneByOne(Model):
    def caught_up(self, due: Fires) -> Fires:
        return due[:1]


# The guards.


class NullsNeverEqual(Model):
    def last_as_read(self, row: Row, frozen: Frozen) -> bool:
        return row.last is not None and row.last == frozen.expected


class DefinedByName(Model):
    def defined_as_read(self, row: Row, frozen: Frozen) -> bool:
        return row.definition == frozen.definition


class DefinedByAnchor(Model):
    def defined_as_read(self, row: Row, frozen: Frozen) -> bool:
        return row.anchor == frozen.anchor


class AdvancesOrStays(Model):
    def advances(self, row: Row, frozen: Frozen) -> bool:
        return row.last is None or frozen.fires[0] >= row.last


class AdvancesByNewest(Model):
    def advances(self, row: Row, frozen: Frozen) -> bool:
        return row.last is None or frozen.fires[-1] > row.last


class AtAnchor(Model):
    def after_anchor(self, row: Row, frozen: Frozen) -> bool:
        return frozen.fires[0] >= row.anchor


class AfterAnchorByNewest(Model):
    def after_anchor(self, row: Row, frozen: Frozen) -> bool:
        return frozen.fires[-1] > row.anchor


class DueByOldest(Model):
    def already_due(self, frozen: Frozen, now: int) -> bool:
        return frozen.fires[0] <= now


class DueForAWhile(Model):
    def already_due(self, frozen: Frozen, now: int) -> bool:
        return frozen.fires[-1] < now


class AllOrNothing(Model):
    def winners(self, state: State, i: str) -> dict[str, Fires]:
        won = super().winners(state, i)
        read = [s for s, frozen in (state.snapshot[i] or {}).items() if frozen is not None]
        return won if len(won) == len(read) else {}


class OneOfAPass(Model):
    def winners(self, state: State, i: str) -> dict[str, Fires]:
        return dict(list(super().winners(state, i).items())[:1])


# What is marked and inserted.


class MarksOldest(Model):
    def atomic_enqueue(self, state: State, i: str) -> State | None:
        then, won = super().atomic_enqueue(state, i), self.winners(state, i)
        return each_row(then, lambda s, row: replace(row, last=won[s][0]) if s in won else row)


class MarksClock(Model):
    def atomic_enqueue(self, state: State, i: str) -> State | None:
        then, won = super().atomic_enqueue(state, i), self.winners(state, i)
        return each_row(then, lambda s, row: replace(row, last=state.now) if s in won else row)


class MarkMovesAnchor(Model):
    def atomic_enqueue(self, state: State, i: str) -> State | None:
        then, won = super().atomic_enqueue(state, i), self.winners(state, i)
        return each_row(then, lambda s, row: replace(row, anchor=won[s][-1]) if s in won else row)


class MakesTwoJobs(Model):
    def atomic_enqueue(self, state: State, i: str) -> State | None:
        then = super().atomic_enqueue(state, i)
        for s, fires in self.winners(state, i).items():
            then = then and with_job(then, s, fires)
        return then


class MakesNewestJob(Model):
    def atomic_enqueue(self, state: State, i: str) -> State | None:
        then = super().atomic_enqueue(state, i)
        for s, fires in self.winners(state, i).items():
            then = then and with_job(replace(then, jobs=state.jobs), s, fires[-1:])
        return then


class MarksEveryRow(Model):
    def atomic_enqueue(self, state: State, i: str) -> State | None:
        then, won = super().atomic_enqueue(state, i), self.winners(state, i)
        fires = next(iter(won.values()), ())
        return each_row(then, lambda _, row: marked(row, fires))


class JobsForLosers(Model):
    def atomic_enqueue(self, state: State, i: str) -> State | None:
        then = super().atomic_enqueue(state, i)
        won = self.winners(state, i)
        for s, frozen in (state.snapshot[i] or {}).items():
            if then is not None and frozen is not None and s not in won:
                then = with_job(then, s, frozen.fires)
        return then


class LostRaceMarks(Model):
    def cas_fail(self, state: State, i: str) -> State | None:
        read: dict[str, Frozen | None] = dict(state.snapshot[i] or {})

        def change(s: str, row: Row) -> Row:
            frozen = read.get(s)
            return marked(row, frozen.fires) if frozen is not None else row

        return each_row(super().cas_fail(state, i), change)


class LostRaceStepsDown(Model):
    def cas_fail(self, state: State, i: str) -> State | None:
        then = super().cas_fail(state, i)
        return then and self.step_down(then, i)


class GivesUpPass(Model):
    def cas_fail(self, state: State, i: str) -> State | None:
        return replace(state, snapshot=state.snapshot.but(i, None)) if state.snapshot[i] is not None else None


# Leadership and reading.


class StealsLock(Model):
    def acquire_leader(self, state: State, i: str) -> State | None:
        return super().acquire_leader(replace(state, lock=None), i)


class RetakesLock(Model):
    def acquire_leader(self, state: State, i: str) -> State | None:
        return super().acquire_leader(replace(state, believes=state.believes.but(i, False)), i)


class LocksWhileDown(Model):
    def acquire_leader(self, state: State, i: str) -> State | None:
        then = super().acquire_leader(replace(state, up=state.up.but(i, True)), i)
        return then and replace(then, up=state.up)


class LocksUnnoticed(Model):
    def acquire_leader(self, state: State, i: str) -> State | None:
        then = super().acquire_leader(state, i)
        return then and replace(then, believes=state.believes)


class PingStepsDownAnyway(Model):
    def ping_leader(self, state: State, i: str) -> State | None:
        return self.step_down(state, i) if state.up[i] and state.believes[i] else None


class PingFreesLock(Model):
    def ping_leader(self, state: State, i: str) -> State | None:
        then = super().ping_leader(state, i)
        return then and replace(then, lock=None)


class StepDownKeepsBelief(Model):
    def step_down(self, state: State, i: str) -> State:
        return replace(super().step_down(state, i), believes=state.believes)


class StepDownKeepsSnapshot(Model):
    def step_down(self, state: State, i: str) -> State:
        return replace(super().step_down(state, i), snapshot=state.snapshot)


class ReadsWithoutBelief(Model):
    def read_cron_state(self, state: State, i: str, read: Table[str, Frozen | None] | None = None) -> State | None:
        then = super().read_cron_state(replace(state, believes=state.believes.but(i, True)), i, read)
        return then and replace(then, believes=state.believes)


class LoseKeepsLock(Model):
    def lose_leader(self, state: State, i: str) -> State | None:
        then = super().lose_leader(state, i)
        return then and replace(then, lock=state.lock)


class LoseAnothersLock(Model):
    def lose_leader(self, state: State, i: str) -> State | None:
        return super().lose_leader(replace(state, lock=i), i)


class CrashFreesAnyLock(Model):
    def crash(self, state: State, i: str) -> State | None:
        then = super().crash(state, i)
        return then and replace(then, lock=None)


class RecoverBelieving(Model):
    def recover(self, state: State, i: str) -> State | None:
        then = super().recover(state, i)
        return then and replace(then, believes=state.believes.but(i, True))


# Operators and deployments.


class PauseDoesNothing(Model):
    def paused_row(self, row: Row) -> Row:
        return row


class PauseMovesAnchor(Model):
    def pause(self, state: State, s: str) -> State | None:
        return one_row(super().pause(state, s), s, lambda row: replace(row, anchor=state.now))


class PausesEverything(Model):
    def pause(self, state: State, s: str) -> State | None:
        return each_row(super().pause(state, s), lambda _, row: self.paused_row(row))


class ResumeDoesNothing(Model):
    def resume(self, state: State, s: str) -> State | None:
        return super().resume(state, s) and state


class ResumeClearsLast(Model):
    def resume(self, state: State, s: str) -> State | None:
        return one_row(super().resume(state, s), s, lambda row: replace(row, last=None))


class ResumeMovesAnchor(Model):
    def resume(self, state: State, s: str) -> State | None:
        return one_row(super().resume(state, s), s, lambda row: replace(row, anchor=state.now))


class ResumesEverything(Model):
    def resume(self, state: State, s: str) -> State | None:
        return each_row(super().resume(state, s), lambda _, row: replace(row, paused=False))


class ResumeEnqueues(Model):
    def resume(self, state: State, s: str) -> State | None:
        then, row = super().resume(state, s), state.rows[s]
        if then is None or row is None:
            return None
        fires = self.chosen(s, row, state.now)
        return with_job(with_row(then, s, replace(marked(row, fires), paused=False)), s, fires)


class TriggerMakesFire(Model):
    def trigger(self, state: State, s: str) -> State | None:
        then = super().trigger(state, s)
        return then and with_job(then, s, [state.now])


class TriggerWithoutRow(Model):
    def trigger(self, state: State, s: str) -> State | None:
        if not self.may_trigger(state, s):
            return None
        return replace(state, triggered=state.triggered.but(s, state.triggered[s] + 1))


class TriggerDoesNothing(Model):
    def trigger(self, state: State, s: str) -> State | None:
        return super().trigger(state, s) and state


class InsertAtFloor(Model):
    def anchor_on_insert(self, state: State, s: str) -> int:
        return state.floor[s]


class InsertAtClock(Model):
    def anchor_on_insert(self, state: State, s: str) -> int:
        return state.now


class InsertMarked(Model):
    def inserted_row(self, state: State, s: str, d: str) -> Row:
        return replace(super().inserted_row(state, s, d), last=state.now)


class InsertAnotherDefinition(Model):
    def inserted_row(self, state: State, s: str, d: str) -> Row:
        return super().inserted_row(state, s, next(other for other in self.definitions if other != d))


class EditKeepsDefinition(Model):
    def edited_row(self, s: str, row: Row, d: str, now: int) -> Row:
        return super().edited_row(s, row, row.definition, now)


class EditDoesNotMark(Model):
    def edited_row(self, s: str, row: Row, d: str, now: int) -> Row:
        return replace(super().edited_row(s, row, d, now), last=row.last)


class EditMarksOnly(Model):
    def sync(self, state: State, s: str, d: str) -> State | None:
        then = super().sync(state, s, d)
        return then and replace(then, jobs=state.jobs)


class EditSettlesNew(Model):
    def sync(self, state: State, s: str, d: str) -> State | None:
        row = state.rows[s]
        then = super().sync(state, s, d)
        if then is None or row is None:
            return then
        new = replace(row, definition=d)
        then = with_row(then, s, self.edited_row(s, new, d, state.now))
        return with_job(replace(then, jobs=state.jobs), s, self.settled_fires(s, new, state.now))


class UnchangedSyncWrites(Model):
    def sync(self, state: State, s: str, d: str) -> State | None:
        row = state.rows[s]
        if row is None or row.definition != d:
            return super().sync(state, s, d)
        then = with_row(state, s, self.edited_row(s, row, d, state.now))
        return with_job(then, s, self.settled_fires(s, row, state.now))


class UnchangedSyncResumes(Model):
    def sync(self, state: State, s: str, d: str) -> State | None:
        row = state.rows[s]
        if row is None or row.definition != d:
            return super().sync(state, s, d)
        return with_row(state, s, replace(row, paused=False))


class SyncForgetsFloor(Model):
    def sync(self, state: State, s: str, d: str) -> State | None:
        then = super().sync(state, s, d)
        if then is None or state.rows[s] is not None:
            return then
        return replace(then, floor=state.floor.but(s, 0))


class FloorOfLastRow(Model):
    def floor_on_remove(self, state: State, s: str) -> int:
        row = state.rows[s]
        return 0 if row is None or row.last is None else row.last


class RemovesEverything(Model):
    def remove(self, state: State, s: str) -> State | None:
        then = super().remove(state, s)
        return then and replace(then, rows=Table(dict.fromkeys(state.rows)))


class RemoveDoesNothing(Model):
    def remove(self, state: State, s: str) -> State | None:
        then = super().remove(state, s)
        return then and replace(then, rows=state.rows)


class RemoveSettles(Model):
    def remove(self, state: State, s: str) -> State | None:
        then, row = super().remove(state, s), state.rows[s]
        if then is None or row is None:
            return None
        return with_job(then, s, self.settled_fires(s, row, state.now))
