"""The invariant of ``spec/AwaCronInductive.tla`` and the step properties of ``spec/AwaCron.tla``, as z3 terms.

Each speaks of one instance, one schedule, one or two instants: of constants of which nothing is known, so what
holds of them holds of all. Names are the spec's, where FrozenIsOrdered is in the types. The last two parts of the
invariant say more of a pass, and are for fires that are what the expression has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import z3

from assurance.symbolic import (
    COALESCES,
    FIRES_OF,
    Bool,
    Frozen,
    Holder,
    Instance,
    Instant,
    Maybe,
    Protocol,
    Row,
    Schedule,
    State,
    Term,
    after,
    exists,
    larger,
)

I, S = z3.Const("the_i", Instance), z3.Const("the_s", Schedule)  # noqa: E741 - the spec's i and s
F, G = z3.Const("the_f", Instant), z3.Const("the_g", Instant)


# The invariant.


@dataclass(frozen=True)
class Part:
    """A part of the invariant: ``holds`` of these constants, whatever they are."""

    name: str
    of: tuple[Term, ...]
    holds: Callable[[State], Bool]

    def everywhere(self, state: State) -> Bool:
        """Say that it holds of everything."""
        return z3.ForAll(list(self.of), self.holds(state))


def no_duplicate_fire(state: State) -> Bool:
    """NoDuplicateFire (P07, P10, P12)."""
    return z3.And(state.jobs(S, F) >= 0, state.jobs(S, F) <= 1)


def fired_is_past(state: State) -> Bool:
    """FiredIsPast: what has a job is at most the floor, or at most the row's last fire."""
    row = state.rows(S)
    in_this_row = z3.And(exists(row), Maybe.is_at(Row.last(row)), Maybe.instant(Row.last(row)) >= F)
    return z3.Implies(state.jobs(S, F) > 0, z3.Or(state.floor(S) >= F, in_this_row))


def anchor_above_floor(state: State) -> Bool:
    """AnchorAboveFloor: a row's anchor is at or above the floor."""
    row = state.rows(S)
    return z3.Implies(exists(row), state.floor(S) <= Row.anchor(row))


def marked_has_job(state: State) -> Bool:
    """MarkedHasJob: a last fire has its job; so NoLostFire (P09)."""
    row = state.rows(S)
    marked = z3.And(exists(row), Maybe.is_at(Row.last(row)))
    return z3.Implies(marked, state.jobs(S, Maybe.instant(Row.last(row))) > 0)


def leader_alive(state: State) -> Bool:
    """LeaderAlive (P05): who holds the lock is up and knows, who believes is up, and only who believes reads."""
    return z3.And(
        z3.Implies(state.lock == Holder.held(I), z3.And(state.up(I), state.believes(I))),
        z3.Implies(state.believes(I), state.up(I)),
        z3.Implies(state.snapshot(I), state.believes(I)),
    )


def holds_pass(state: State) -> Bool:
    """Tell whether the instance has frozen fires of the schedule."""
    return z3.And(state.snapshot(I), Frozen.is_frozen(state.frozen(I, S)))


def frozen_is_ordered(state: State) -> Bool:
    """FrozenIsOrdered (of TypeOK): a pass has fires, a first and a last one."""
    frozen = state.frozen(I, S)
    first, newest = Frozen.first(frozen), Frozen.newest(frozen)
    inside = z3.Implies(state.fires(I, S, F), z3.And(first <= F, newest >= F))
    return z3.Implies(holds_pass(state), z3.And(state.fires(I, S, first), state.fires(I, S, newest), inside))


def as_if_due(frozen: Term, fire: Term) -> Bool:
    """Tell whether the row, as it was read, has this fire."""
    fits = FIRES_OF(Frozen.read_definition(frozen), fire)
    return z3.And(fits, fire > Frozen.read_anchor(frozen), after(fire, Frozen.expected(frozen)))


def frozen_is_chosen(state: State) -> Bool:
    """FrozenIsChosen: a pass has the latest fire of the row as it was read, or its oldest ones without a gap."""
    frozen = state.frozen(I, S)
    latest = Frozen.first(frozen) == Frozen.newest(frozen)
    no_gap = z3.Implies(z3.And(state.fires(I, S, F), as_if_due(frozen, G), G < F), state.fires(I, S, G))
    due = z3.Implies(state.fires(I, S, F), as_if_due(frozen, F))
    return z3.Implies(holds_pass(state), z3.And(due, z3.If(COALESCES(S), latest, no_gap)))


def expected_is_past(state: State) -> Bool:
    """ExpectedIsPast: the last fire that a pass has read is at most the floor, or at most the row's."""
    row, expected = state.rows(S), Frozen.expected(state.frozen(I, S))
    fire = Maybe.instant(expected)
    in_this_row = z3.And(exists(row), Maybe.is_at(Row.last(row)), fire <= Maybe.instant(Row.last(row)))
    read = z3.And(holds_pass(state), Maybe.is_at(expected))
    return z3.Implies(read, z3.Or(fire <= state.floor(S), in_this_row))


IND_INV = (
    Part("NoDuplicateFire", (S, F), no_duplicate_fire),
    Part("FiredIsPast", (S, F), fired_is_past),
    Part("AnchorAboveFloor", (S,), anchor_above_floor),
    Part("MarkedHasJob", (S,), marked_has_job),
    Part("LeaderAlive", (I,), leader_alive),
    Part("FrozenIsOrdered", (I, S, F), frozen_is_ordered),
)
SOUND_INV = (
    *IND_INV,
    Part("FrozenIsChosen", (I, S, F, G), frozen_is_chosen),
    Part("ExpectedIsPast", (I, S), expected_is_past),
)


def invariant_of(protocol: Protocol) -> tuple[Part, ...]:
    """Return the invariant; with a sound evaluator there is more to it."""
    return SOUND_INV if protocol.sound else IND_INV


# The step properties, of the same constants.


@dataclass(frozen=True)
class Property:
    """A step property of the spec; ``sound`` ones need a sound evaluator."""

    name: str
    holds: Callable[[State, State], Bool]
    sound: bool = False


def new(before: State, then: State, fire: Term) -> Bool:
    """NewFires: tell whether the step made a job for this instant."""
    return before.jobs(S, fire) != then.jobs(S, fire)


def kept(before: State, then: State) -> Bool:
    """Kept: the row is there before and after."""
    return z3.And(exists(before.rows(S)), exists(then.rows(S)))


def edited(before: State, then: State) -> Bool:
    """Edited: the row is kept and has another definition."""
    return z3.And(kept(before, then), Row.definition(before.rows(S)) != Row.definition(then.rows(S)))


def missed(state: State, fire: Term) -> Bool:
    """Missed: tell whether the schedule owes this instant, sooner or later."""
    row = state.rows(S)
    owed = z3.And(FIRES_OF(Row.definition(row), fire), Row.anchor(row) < fire, fire <= state.now)
    return z3.And(exists(row), owed, after(fire, Row.last(row)))


def mark_iff_job(before: State, then: State) -> Bool:
    """MarkIffJob: jobs appear exactly when ``last`` moves, and it moves to the newest of them."""
    last, marked = Row.last(before.rows(S)), Row.last(then.rows(S))
    moved = z3.And(kept(before, then), last != marked)
    newest = Maybe.instant(marked)
    to_newest = z3.And(Maybe.is_at(marked), new(before, then, newest))
    return z3.And(
        z3.Implies(new(before, then, F), z3.And(moved, to_newest, newest >= F)), z3.Implies(moved, to_newest)
    )


def fires_advance(before: State, then: State) -> Bool:
    """FiresAdvance: a new job is for an instant after all that ever had one."""
    return z3.Implies(z3.And(new(before, then, F), before.jobs(S, G) > 0), G < F)


def paused_blocks_enqueue(before: State, then: State) -> Bool:
    """PausedBlocksEnqueue: a paused row gets no jobs."""
    row = before.rows(S)
    return z3.Implies(z3.And(exists(row), Row.paused(row)), z3.Not(new(before, then, F)))


def no_early_fire(before: State, then: State) -> Bool:
    """NoEarlyFire: a new job is for an instant that the clock has reached."""
    return z3.Implies(new(before, then, F), before.now >= F)


def no_retroactive_fire(before: State, then: State) -> Bool:
    """NoRetroactiveFire: a new job is for an instant after the anchor, which only registering and editing move."""
    row, written = before.rows(S), then.rows(S)
    registered = z3.And(z3.Not(exists(row)), exists(written))
    to_clock, to_floor = larger(before.now, Row.anchor(row)), larger(before.now, before.floor(S))
    return z3.And(
        z3.Implies(new(before, then, F), z3.And(exists(row), Row.anchor(row) < F)),
        z3.Implies(registered, Row.anchor(written) == to_floor),
        z3.Implies(
            kept(before, then),
            Row.anchor(written) == z3.If(edited(before, then), to_clock, Row.anchor(row)),
        ),
    )


def remove_leaves_jobs(before: State, then: State) -> Bool:
    """RemoveLeavesJobs: no step takes a job back, and a removal makes none."""
    removed = z3.And(exists(before.rows(S)), z3.Not(exists(then.rows(S))))
    return z3.And(
        then.jobs(S, F) >= before.jobs(S, F),
        then.triggered(S) >= before.triggered(S),
        z3.Implies(removed, z3.Not(new(before, then, F))),
    )


def election_takes_lock(before: State, then: State) -> Bool:
    """ElectionTakesLock: who begins to believe is given a lock that was free; its holder's end frees it."""
    begins = z3.And(then.believes(I), z3.Not(before.believes(I)))
    given = z3.And(before.lock == Holder.none, then.lock == Holder.held(I))
    same = z3.And(then.up(I) == before.up(I), then.believes(I) == before.believes(I))
    freed = z3.And(then.lock == Holder.none, z3.Or(before.lock == Holder.held(I), same))
    return z3.And(
        z3.Implies(begins, given),
        z3.Implies(given, begins),
        z3.Implies(z3.And(before.lock != Holder.none, before.lock != then.lock), freed),
    )


def pass_enqueues_each_schedule(before: State, then: State) -> Bool:
    """PassEnqueuesEachSchedule: fires become jobs wherever the row is as read and they are in order."""
    row, frozen = before.rows(S), before.frozen(I, S)
    over = z3.And(holds_pass(before), z3.Not(then.snapshot(I)), then.believes(I))
    as_read = Row.row(Frozen.read_definition(frozen), Frozen.expected(frozen), Frozen.read_anchor(frozen), False)
    first, newest = Frozen.first(frozen), Frozen.newest(frozen)
    in_order = z3.And(
        Frozen.read_anchor(frozen) < first, after(first, Frozen.expected(frozen)), newest <= before.now
    )
    owes = z3.And(over, row == as_read, in_order)
    return z3.Implies(owes, new(before, then, F) == before.fires(I, S, F))


def fires_fit_definition(before: State, then: State) -> Bool:
    """FiresFitDefinition: what becomes a job is an instant of the definition that the row has."""
    row = before.rows(S)
    return z3.Implies(new(before, then, F), z3.And(exists(row), FIRES_OF(Row.definition(row), F)))


def catch_up_contiguous(before: State, then: State) -> Bool:
    """CatchUpContiguous: nothing that is missed is older than a new job and stays without one."""
    older = z3.And(new(before, then, F), missed(before, G), G < F)
    return z3.Implies(z3.And(z3.Not(COALESCES(S)), older), new(before, then, G))


def coalesce_only_latest(before: State, then: State) -> Bool:
    """CoalesceOnlyLatest: a step makes one job, and a pass freezes one fire: the latest that is missed."""
    one = z3.Implies(z3.And(new(before, then, F), new(before, then, G)), F == G)
    freezes = z3.And(z3.Not(before.snapshot(I)), holds_pass(then), then.fires(I, S, F))
    latest = z3.And(missed(before, F), z3.Implies(missed(before, G), G <= F))
    return z3.Implies(COALESCES(S), z3.And(one, z3.Implies(freezes, latest)))


PROPERTIES = (
    Property("MarkIffJob", mark_iff_job),
    Property("FiresAdvance", fires_advance),
    Property("PausedBlocksEnqueue", paused_blocks_enqueue),
    Property("NoEarlyFire", no_early_fire),
    Property("NoRetroactiveFire", no_retroactive_fire),
    Property("RemoveLeavesJobs", remove_leaves_jobs),
    Property("ElectionTakesLock", election_takes_lock),
    Property("PassEnqueuesEachSchedule", pass_enqueues_each_schedule),
    Property("FiresFitDefinition", fires_fit_definition, sound=True),
    Property("CatchUpContiguous", catch_up_contiguous, sound=True),
    Property("CoalesceOnlyLatest", coalesce_only_latest, sound=True),
)


def holds_after(name: str, parts: tuple[Part, ...], before: State, then: State) -> Bool:
    """Say that after a step there holds a step property, a part of the invariant, or IndInv: all parts."""
    by_name = {each.name: each.holds for each in PROPERTIES}
    if name in by_name:
        return by_name[name](before, then)
    wanted = [part for part in parts if name in {part.name, "IndInv"}]
    assert wanted, f"there is no {name}"
    return z3.And([part.holds(then) for part in wanted])
