"""The properties of ``spec/AwaCron.tla``, checked on single states and single steps of a run.

``invariants`` and ``step_checks`` raise AssertionError with the property's name, the number of the promise that it
keeps, and what was seen. They look only at the states before and after and at the action's name, so the states may
as well have been read from a real database.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.model.properties import Invariant, StepProperty, check_all
from tests.model.spec_model import Model
from tests.model.spec_state import Row, State


def new_fires(before: State, then: State, s: str) -> list[int]:
    """Return the instants whose number of jobs the step changed, oldest first."""
    old, new = before.jobs[s], then.jobs[s]
    return [] if old == new else sorted(f for f in {*old, *new} if old.get(f, 0) != new.get(f, 0))


def missed(model: Model, state: State, s: str) -> list[int]:
    """Return the instants that are due and have not become jobs, oldest first."""
    row = state.rows[s]
    if row is None:
        return []
    fires_at = model.definitions[row.definition]
    instants = range(row.anchor + 1, state.now + 1)
    return [f for f in instants if fires_at(f) and (row.last is None or row.last < f)]


def owed(model: Model, state: State, s: str) -> list[int]:
    """Return what a pass over the schedule has to enqueue at this moment."""
    due = missed(model, state, s)
    return due[-1:] if model.policies[s] == "coalesce" else due[: model.pass_limit]


def kept(before: State, then: State) -> Iterator[tuple[str, Row, Row]]:
    """Yield the schedules that have a row before and after."""
    for s, old in before.rows.items():
        new = then.rows[s]
        if old is not None and new is not None:
            yield s, old, new


def type_ok(model: Model, state: State) -> Iterator[str]:
    end = model.max_time
    instants = [state.now, *state.floor.values()]
    for row in state.rows.values():
        if row is not None:
            instants += [row.anchor] if row.last is None else [row.anchor, row.last]
            if row.definition not in model.definitions:
                yield f"unknown definition {row.definition}"
    for read in state.snapshot.values():
        for frozen in (read or {}).values():
            if frozen is not None:
                instants += frozen.fires
                if not frozen.fires or list(frozen.fires) != sorted(set(frozen.fires)):
                    yield f"fires {frozen.fires} do not ascend"
                if len(frozen.fires) > model.pass_limit:
                    yield f"more than {model.pass_limit} fires frozen: {frozen.fires}"
    if any(instant < 0 or (end is not None and instant > end) for instant in instants):
        yield f"an instant out of bounds in {state}"


def leader_alive(_: Model, state: State) -> Iterator[str]:
    if state.lock is not None and not (state.up[state.lock] and state.believes[state.lock]):
        yield f"{state.lock} holds the lock and does not run or does not know"
    for i, believes in state.believes.items():
        if believes and not state.up[i]:
            yield f"{i} is down and believes"
        if state.snapshot[i] is not None and not believes:
            yield f"{i} has read without believing"


def election_takes_lock(_: Model, before: State, __: str, then: State) -> Iterator[str]:
    for i, believes in then.believes.items():
        if believes and not before.believes[i] and not (before.lock is None and then.lock == i):
            yield f"{i} began to believe; the lock went from {before.lock} to {then.lock}"
    if then.lock == before.lock:
        return
    if before.lock is not None:
        ended = [i for i in then.up if (before.up[i], before.believes[i]) != (then.up[i], then.believes[i])]
        if then.lock is not None or set(ended) - {before.lock}:
            yield f"the lock of {before.lock} went to {then.lock}; {ended} ended"
    elif then.lock is not None and (before.believes[then.lock] or not then.believes[then.lock]):
        yield f"{then.lock} was given the lock, and its belief did not change"


def no_duplicate_fire(_: Model, state: State) -> Iterator[str]:
    for s, count in state.jobs.items():
        for f, number in count.items():
            if number > 1:
                yield f"{s} has {number} jobs for {f}"


def no_lost_fire(_: Model, state: State) -> Iterator[str]:
    for s, row in state.rows.items():
        if row is None or row.last is None or state.jobs[s].get(row.last, 0) > 0:
            continue
        in_hand = [read[s] for read in state.snapshot.values() if read is not None]
        if not any(frozen is not None and row.last in frozen.fires for frozen in in_hand):
            yield f"{s} is marked at {row.last}, which has no job"


def trigger_ignores_pause(model: Model, state: State) -> Iterator[str]:
    for s, row in state.rows.items():
        if row is not None and model.may_trigger(state, s):
            then = model.trigger(state, s)
            if then is None or then.triggered[s] == state.triggered[s]:
                yield f"{s} can't be triggered"


def operators_are_heard(model: Model, state: State) -> Iterator[str]:
    for s, row in state.rows.items():
        if row is not None:
            flip = model.resume if row.paused else model.pause
            flipped = (flip(state, s) or state).rows[s]
            if flipped is None or flipped.paused == row.paused:
                yield f"{s} can't be {'resumed' if row.paused else 'paused'}"
            if (model.remove(state, s) or state).rows[s] is not None:
                yield f"{s} can't be removed"
        for d in model.definitions:
            stored = (model.sync(state, s, d) or state).rows[s]
            if stored is None or stored.definition != d:
                yield f"{s} can't be defined as {d}"


def unchanged_sync_writes_nothing(model: Model, state: State) -> Iterator[str]:
    for s, row in state.rows.items():
        if row is not None and model.sync(state, s, row.definition) not in {None, state}:
            yield f"{s} is {row.definition}, and a sync of that writes"


def mark_iff_job(_: Model, before: State, __: str, then: State) -> Iterator[str]:
    moved = {s: new.last for s, old, new in kept(before, then) if old.last != new.last}
    for s in before.rows:
        made = new_fires(before, then, s)
        if bool(made) != (s in moved) or (made and moved[s] != made[-1]):
            yield f"{s}: jobs for {made}, last moved to {moved.get(s)}"


def fires_advance(_: Model, before: State, __: str, then: State) -> Iterator[str]:
    for s in before.rows:
        made = new_fires(before, then, s)
        if made and before.jobs[s] and made[0] <= max(before.jobs[s]):
            yield f"{s}: a job for {made[0]} after one for {max(before.jobs[s])}"


def paused_blocks_enqueue(_: Model, before: State, __: str, then: State) -> Iterator[str]:
    for s, row in before.rows.items():
        made = new_fires(before, then, s)
        if row is not None and row.paused and made:
            yield f"{s} is paused, yet {made} became jobs"


def pause_touches_only_pause(_: Model, before: State, __: str, then: State) -> Iterator[str]:
    for s, old, new in kept(before, then):
        if old.paused != new.paused:
            flipped = replace(before, rows=before.rows.but(s, replace(old, paused=new.paused)))
            if then != flipped:
                yield f"{s}: the pause changed, and so did something else: {old} to {new}"


def coalesce_only_latest(model: Model, before: State, _: str, then: State) -> Iterator[str]:
    for s in (s for s, policy in model.policies.items() if policy == "coalesce"):
        made = new_fires(before, then, s)
        if len(made) > 1:
            yield f"{s} enqueued {made} at once"
        for i, read in then.snapshot.items():
            frozen = read[s] if read is not None and before.snapshot[i] is None else None
            if frozen is not None and list(frozen.fires) != owed(model, before, s):
                yield f"{s}: {i} froze {frozen.fires}, owed is {owed(model, before, s)}"


def catch_up_contiguous(model: Model, before: State, _: str, then: State) -> Iterator[str]:
    for s in (s for s, policy in model.policies.items() if policy == "catch_up"):
        made = new_fires(before, then, s)
        skipped = [f for f in missed(model, before, s) if made and f < made[-1] and f not in made]
        if skipped:
            yield f"{s} enqueued {made} and skipped {skipped}"


def pass_bounded(model: Model, before: State, _: str, then: State) -> Iterator[str]:
    for s in before.rows:
        made = new_fires(before, then, s)
        if len(made) > model.pass_limit:
            yield f"{s} enqueued {len(made)} fires, the limit is {model.pass_limit}"


def pass_enqueues_each_schedule(_: Model, before: State, __: str, then: State) -> Iterator[str]:
    for i, read in before.snapshot.items():
        if read is None or then.snapshot[i] is not None or not then.believes[i]:
            continue
        for s, frozen in read.items():
            row = before.rows[s]
            if frozen is None or row != Row(frozen.definition, frozen.expected, frozen.anchor, paused=False):
                continue
            since = max(frozen.anchor, -1 if frozen.expected is None else frozen.expected)
            made = new_fires(before, then, s)
            if since < frozen.fires[0] and frozen.fires[-1] <= before.now and made != list(frozen.fires):
                yield f"{s} is as {i} read it; the pass enqueued {made} instead of {frozen.fires}"


def no_early_fire(_: Model, before: State, __: str, then: State) -> Iterator[str]:
    for s in before.rows:
        made = new_fires(before, then, s)
        if made and made[-1] > before.now:
            yield f"{s} enqueued {made[-1]} at {before.now}"


def no_retroactive_fire(_: Model, before: State, __: str, then: State) -> Iterator[str]:
    for s, new in then.rows.items():
        old = before.rows[s]
        made = new_fires(before, then, s)
        if made and (old is None or made[0] <= old.anchor):
            yield f"{s} enqueued {made[0]}, its row was {old}"
        if new is None:
            continue
        if old is None:
            right = max(before.now, before.floor[s])
        elif old.definition != new.definition:
            right = max(before.now, old.anchor)
        else:
            right = old.anchor
        if new.anchor != right:
            yield f"{s} is anchored at {new.anchor} instead of {right}"


def fires_fit_definition(model: Model, before: State, _: str, then: State) -> Iterator[str]:
    for s, row in before.rows.items():
        made = new_fires(before, then, s)
        strange = [f for f in made if row is None or not model.definitions[row.definition](f)]
        if strange:
            yield f"{s} enqueued {strange}, which {row} does not have"


def edit_settles(model: Model, before: State, _: str, then: State) -> Iterator[str]:
    for s, old, new in kept(before, then):
        if old.definition != new.definition:
            right = [] if old.paused else owed(model, before, s)
            made = new_fires(before, then, s)
            if made != right:
                yield f"{s} was edited and settled {made} instead of {right}"


def sync_never_deletes(_: Model, before: State, action: str, then: State) -> Iterator[str]:
    changed = [s for s in before.rows if before.rows[s] != then.rows[s]]
    gone = [s for s in changed if then.rows[s] is None]
    if gone and (action != "remove" or len(changed) > 1):
        yield f"{action} deleted {gone}"
    if action == "sync" and len(changed) > 1:
        yield f"a sync of one schedule changed {changed}"


def sync_preserves_pause_and_last(_: Model, before: State, action: str, then: State) -> Iterator[str]:
    if action != "sync":
        return
    for s, old, new in kept(before, then):
        made = new_fires(before, then, s)
        if new.paused != old.paused or new.last != (made[-1] if made else old.last):
            yield f"{s} was synced with jobs for {made}: {old} to {new}"


def register_starts_fresh(_: Model, before: State, __: str, then: State) -> Iterator[str]:
    for s, new in then.rows.items():
        if before.rows[s] is None and new is not None and (new.paused or new.last is not None):
            yield f"{s} was registered as {new}"


def trigger_leaves_schedule(_: Model, before: State, __: str, then: State) -> Iterator[str]:
    if then.triggered == before.triggered:
        return
    changed = [s for s in before.triggered if then.triggered[s] != before.triggered[s]]
    if any(before.rows[s] is None for s in changed):
        yield f"a trigger of {changed}, which are not all stored"
    once = before.triggered.but(changed[0], before.triggered[changed[0]] + 1)
    if then != replace(before, triggered=once):
        yield f"a trigger of {changed} changed something else: {before} to {then}"


def remove_leaves_jobs(_: Model, before: State, action: str, then: State) -> Iterator[str]:
    for s, old in before.jobs.items():
        fewer = [f for f, number in old.items() if then.jobs[s].get(f, 0) < number]
        if fewer or then.triggered[s] < before.triggered[s]:
            yield f"{s} lost jobs: {fewer}"
        if action == "remove" and new_fires(before, then, s):
            yield f"removing made jobs of {s}"


INVARIANTS = (
    Invariant("TypeOK", "spec", type_ok),
    Invariant("LeaderAlive", "P05", leader_alive),
    Invariant("NoDuplicateFire", "P07, P10, P12", no_duplicate_fire),
    Invariant("NoLostFire", "P09", no_lost_fire),
    Invariant("UnchangedSyncWritesNothing", "P04", unchanged_sync_writes_nothing),
    Invariant("TriggerIgnoresPause", "P21", trigger_ignores_pause),
    Invariant("OperatorsAreHeard", "P13, P15, P22", operators_are_heard),
)

STEP_PROPERTIES = (
    StepProperty("ElectionTakesLock", "P05", election_takes_lock),
    StepProperty("MarkIffJob", "P09", mark_iff_job),
    StepProperty("FiresAdvance", "P11", fires_advance),
    StepProperty("PausedBlocksEnqueue", "P13", paused_blocks_enqueue),
    StepProperty("PauseTouchesOnlyPause", "P15", pause_touches_only_pause),
    StepProperty("CoalesceOnlyLatest", "P16", coalesce_only_latest, sound_evaluator=True),
    StepProperty("CatchUpContiguous", "P17", catch_up_contiguous, sound_evaluator=True),
    StepProperty("PassBounded", "P17", pass_bounded),
    StepProperty("PassEnqueuesEachSchedule", "P08, P36", pass_enqueues_each_schedule),
    StepProperty("NoEarlyFire", "P19", no_early_fire),
    StepProperty("NoRetroactiveFire", "P20", no_retroactive_fire),
    StepProperty("FiresFitDefinition", "P20", fires_fit_definition, sound_evaluator=True),
    StepProperty("EditSettles", "P20b", edit_settles),
    StepProperty("SyncNeverDeletes", "P02", sync_never_deletes),
    StepProperty("SyncPreservesPauseAndLast", "P03", sync_preserves_pause_and_last),
    StepProperty("RegisterStartsFresh", "P22", register_starts_fresh),
    StepProperty("TriggerLeavesSchedule", "P21", trigger_leaves_schedule),
    StepProperty("RemoveLeavesJobs", "P22", remove_leaves_jobs),
)


def applies(model: Model, step_property: StepProperty) -> bool:
    """Tell whether the property is promised in this model."""
    return not (step_property.sound_evaluator and model.faulty_evaluator)


def invariants(model: Model, state: State, only: str | None = None) -> None:
    """Check every invariant, or only the one that is named.

    Raises:
        AssertionError: Naming property and promise.
    """
    check_all(INVARIANTS, model, state, only=only)


def step_checks(model: Model, before: State, action: str, then: State, only: str | None = None) -> None:
    """Check every property of steps that is promised in this model, or only the one that is named.

    Args:
        action: The action's name in snake_case.

    Raises:
        AssertionError: Naming property and promise.
    """
    promised = [each for each in STEP_PROPERTIES if applies(model, each)]
    check_all(promised, model, before, action, then, only=only, where=f"{action}: ")
