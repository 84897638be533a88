"""Proves the spec's safety for any number of instances, schedules and instants, by induction, with z3.

The invariant is that of ``spec/AwaCronInductive.tla``; TLC checks it in small configurations, z3 in all. There are
three kinds of obligation: the invariant holds at the start; every action keeps it; and with it every action has the
step properties. A query asks for a state that satisfies the invariant and in which an action breaks a claim:
``unsat`` means that there is none, so the claim is proved. ``unknown`` is a failure, whatever is wanted.

There are two proofs. The first assumes nothing of the evaluator: a pass may bring any instants, and the settling of
an edit any that its statement lets through, which are after the anchor and the last fire and not after the clock.
The second assumes that fires are what the expression has, and shows more: jobs fit the definition and leave no gap.

A proof that cannot fail proves nothing, so there are queries that must find something: every action is possible in
a state that satisfies the invariant; and wherever a guard, another small operator, or a part of the invariant is
left out that a claim needs, a step breaks the claim. It is read out, with few instants and one schedule.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import z3

from assurance.claims import IND_INV, PROPERTIES, SOUND_INV, F, G, Part, holds_after, invariant_of, new
from assurance.counterexample import Plain, in_words, read_step, small
from assurance.symbolic import ARGUMENTS, GUARDS, Bool, Protocol, actions, exists, init, some_state

TIMEOUT_MS = 60_000

SMALL = range(5)
"""The last instants with which a step is looked for that must be there, in this order."""


@dataclass(frozen=True)
class Obligation:
    """A query that must have one answer.

    Attributes:
        section: Which proof, or which check of the proofs.
        row: What it counts under in the table.
        name: What is claimed.
        wanted: ``unsat`` for what is proved, ``sat`` for what must be possible.
        query: What is asked for.
        read: Reads the step out of a model in which instants end somewhere.
    """

    section: str
    row: str
    name: str
    wanted: str
    query: tuple[Bool, ...] = field(repr=False)
    read: Callable[[z3.ModelRef, int], Plain] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Answer:
    """What z3 said."""

    obligation: Obligation
    verdict: str
    seconds: float
    step: Plain | None = None

    @property
    def holds(self) -> bool:
        """Tell whether this is what is wanted."""
        return self.verdict == self.obligation.wanted


def ask(obligation: Obligation) -> Answer:
    """Ask z3: for what must be possible, with one instance, one schedule and few instants."""
    started = time.monotonic()
    verdict, step = "unknown", None
    if obligation.wanted == "unsat":
        verdict = str(solver(obligation.query).check())
    else:
        for last_instant in SMALL:
            asked = solver((*obligation.query, *small(some_state(), last_instant)))
            verdict = str(asked.check())
            if verdict == "sat":
                step = obligation.read(asked.model(), last_instant) if obligation.read else None
                break
    return Answer(obligation, verdict, round(time.monotonic() - started, 3), step)


def solver(query: Iterable[Bool]) -> z3.Solver:
    """Return a solver that gives up rather than hang."""
    patient = z3.Solver()
    patient.set("timeout", TIMEOUT_MS)
    patient.add(*query)
    return patient


def breaking(
    claim: str, action: str, protocol: Protocol, parts: tuple[Part, ...]
) -> tuple[tuple[Bool, ...], Callable[[z3.ModelRef, int], Plain]]:
    """Ask for a step of the action that breaks the claim, from a state with these parts of the invariant."""
    before = some_state()
    step = protocol.take(action, before)
    invariant = [part.everywhere(before) for part in parts]
    broken = z3.Not(holds_after(claim, parts, before, step.then))

    def read(model: z3.ModelRef, last_instant: int) -> Plain:
        return read_step(model, last_instant, action, before, step.then)

    return (*invariant, step.enabled, broken), read


# The proofs.


def proof(section: str, protocol: Protocol) -> Iterator[Obligation]:
    """Yield what makes a proof: initiation, consecution, and the step properties that follow."""
    parts = invariant_of(protocol)
    for part in parts:
        at_start = (z3.Not(part.holds(init())),)
        yield Obligation(section, "Init implies IndInv", f"Init implies {part.name}", "unsat", at_start)
    for action in actions():
        keeps = f"{action} keeps IndInv"
        yield Obligation(section, keeps, keeps, "unsat", breaking("IndInv", action, protocol, parts)[0])
    for claim in (each.name for each in PROPERTIES if protocol.sound or not each.sound):
        for action in actions():
            query, _ = breaking(claim, action, protocol, parts)
            yield Obligation(section, f"IndInv implies {claim}", f"{action} has {claim}", "unsat", query)


# What must be possible.


def possible(section: str, protocol: Protocol) -> Iterator[Obligation]:
    """Every action can happen in a state that satisfies the invariant, and the two that make jobs can make two."""
    parts, before = invariant_of(protocol), some_state()
    invariant = [part.everywhere(before) for part in parts]
    for action in actions():
        step = protocol.take(action, before)
        happens = f"{action} can happen"
        yield Obligation(section, happens, happens, "sat", (*invariant, step.enabled))
        if action in {"atomic_enqueue", "sync"}:
            two = z3.And(F < G, new(before, step.then, F), new(before, step.then, G))
            makes = f"{action} can make two jobs"
            yield Obligation(section, makes, makes, "sat", (*invariant, step.enabled, two))
        if action == "sync":
            inserts = "sync can insert"
            row = exists(before.rows(ARGUMENTS.s))
            yield Obligation(section, inserts, inserts, "sat", (*invariant, step.enabled, z3.Not(row)))


@dataclass(frozen=True)
class Need:
    """The guards that a claim needs: one of each group, in any combination, and no group can be missed."""

    claim: str
    groups: tuple[tuple[str, ...], ...]


FOLLOWS_LAST = ("LastAsRead", "Advances")
FOLLOWS_ANCHOR = ("DefinedAsRead", "AfterAnchor")

NEEDS = {
    False: (
        Need("IndInv", (("Advances",), ("AfterAnchor",))),
        Need("MarkIffJob", (("Advances",),)),
        Need("FiresAdvance", (("Advances",), ("AfterAnchor",))),
        Need("PausedBlocksEnqueue", (("Unpaused",),)),
        Need("NoEarlyFire", (("AlreadyDue",),)),
        Need("NoRetroactiveFire", (("AfterAnchor",),)),
    ),
    True: (
        Need("IndInv", (FOLLOWS_LAST, FOLLOWS_ANCHOR)),
        Need("MarkIffJob", (FOLLOWS_LAST,)),
        Need("FiresAdvance", (FOLLOWS_LAST, FOLLOWS_ANCHOR)),
        Need("PausedBlocksEnqueue", (("Unpaused",),)),
        Need("NoEarlyFire", (("AlreadyDue",),)),
        Need("NoRetroactiveFire", (FOLLOWS_ANCHOR,)),
        Need("FiresFitDefinition", (("DefinedAsRead",),)),
        Need("CatchUpContiguous", (("DefinedAsRead",),)),
    ),
}
"""Per claim of atomic_enqueue, without and with a sound evaluator. The other claims need no guard."""


def needed_guards(section: str, *, sound: bool) -> Iterator[Obligation]:
    """Any guard of each group is enough for the claim; without a group there is a step that breaks it."""
    parts = invariant_of(Protocol(sound=sound))
    for need in NEEDS[sound]:
        groups = [f"({' or '.join(group)})" if len(group) > 1 else group[0] for group in need.groups]
        row = f"{need.claim} needs {' and '.join(groups)}"
        for guards in itertools.product(*need.groups):
            enough = Protocol(sound=sound, guards=frozenset(guards))
            query, _ = breaking(need.claim, "atomic_enqueue", enough, parts)
            yield Obligation(section, row, f"{need.claim} with {', '.join(guards)} alone", "unsat", query)
        for group in need.groups:
            query, read = breaking(need.claim, "atomic_enqueue", without(*group, sound=sound), parts)
            yield Obligation(section, row, f"{need.claim} without {', '.join(group)}", "sat", query, read)


@dataclass(frozen=True)
class Broken:
    """A variant, named as in ``spec/cfg``, and a claim that one of its actions breaks."""

    name: str
    action: str
    claim: str
    protocol: Protocol
    parts: tuple[Part, ...] = IND_INV


def without(*guards: str, sound: bool) -> Protocol:
    """Return the protocol without some guards."""
    return Protocol(sound=sound, guards=frozenset(GUARDS) - {*guards})


def all_but(name: str) -> tuple[Part, ...]:
    """Return the invariant without one part."""
    return tuple(part for part in IND_INV if part.name != name)


def enqueue(name: str, claim: str, *guards: str, sound: bool) -> Broken:
    """Return the variant of the conditional write that lacks these guards."""
    return Broken(name, "atomic_enqueue", claim, without(*guards, sound=sound), SOUND_INV if sound else IND_INV)


BROKEN = (
    enqueue("NoPauseGuard", "PausedBlocksEnqueue", "Unpaused", sound=True),
    enqueue("NoCAS", "NoDuplicateFire", "LastAsRead", "Advances", sound=True),
    enqueue("RecreateABA", "NoDuplicateFire", "AfterAnchor", "DefinedAsRead", sound=True),
    enqueue("NoDueGuard", "NoEarlyFire", "AlreadyDue", sound=True),
    enqueue("NoDefinedGuard", "FiresFitDefinition", "DefinedAsRead", sound=True),
    enqueue("NoDefinedGuardCatchUp", "CatchUpContiguous", "DefinedAsRead", sound=True),
    enqueue("NoMonotoneGuard", "FiresAdvance", "Advances", sound=False),
    enqueue("NoMonotoneGuard", "NoDuplicateFire", "Advances", sound=False),
    enqueue("NoAnchorGuard", "NoRetroactiveFire", "AfterAnchor", sound=False),
    enqueue("NoAnchorGuard", "NoDuplicateFire", "AfterAnchor", sound=False),
    Broken("NoFloor", "remove", "FiredIsPast", Protocol(floor_on_remove=lambda floor, _last: floor)),
    Broken("EditLowersAnchor", "sync", "AnchorAboveFloor", Protocol(anchor_on_edit=lambda now, _anchor: now)),
    Broken("EditKeepsAnchor", "sync", "NoRetroactiveFire", Protocol(anchor_on_edit=lambda _now, anchor: anchor)),
    Broken(
        "InsertAtZero", "sync", "AnchorAboveFloor", Protocol(anchor_on_insert=lambda _now, _floor: z3.IntVal(0))
    ),
)

WEAK = (
    Broken("WithoutFiredIsPast", "atomic_enqueue", "NoDuplicateFire", Protocol(), all_but("FiredIsPast")),
    Broken("WithoutAnchorAboveFloor", "atomic_enqueue", "NoDuplicateFire", Protocol(), all_but("AnchorAboveFloor")),
    Broken("WithoutFrozenIsOrdered", "atomic_enqueue", "NoDuplicateFire", Protocol(), all_but("FrozenIsOrdered")),
)
"""The invariant with a part missing: its other parts are not enough."""


def broken_claims(section: str, variants: Iterable[Broken]) -> Iterator[Obligation]:
    """Each variant has a step, from a state that satisfies the invariant, that breaks its claim."""
    for broken in variants:
        query, read = breaking(broken.claim, broken.action, broken.protocol, broken.parts)
        name = f"{broken.name}: {broken.action} breaks {broken.claim}"
        yield Obligation(section, name, name, "sat", query, read)


def obligations() -> Iterator[Obligation]:
    """Yield everything that has to be asked.

    Raises:
        CannotRunError: If the spec has an action or a guard that is unknown here.
    """
    anything, sound = Protocol(), Protocol(sound=True)
    yield from proof("Proved, whatever the evaluator returns", anything)
    yield from proof("Proved, if fires are what the expression has", sound)
    yield from possible("Possible, whatever the evaluator returns", anything)
    yield from possible("Possible, if fires are what the expression has", sound)
    yield from needed_guards("Guards of atomic_enqueue, whatever the evaluator returns", sound=False)
    yield from needed_guards("Guards of atomic_enqueue, if fires are what the expression has", sound=True)
    yield from broken_claims("Invariants that are too weak", WEAK)
    yield from broken_claims("Broken on purpose", BROKEN)


# The table.


def table(answers: Iterable[Answer], *, steps: bool = True) -> Iterator[str]:
    """Yield the lines of a table: what was asked, how often, what came out, seconds; the steps that were found."""
    for section, in_section in itertools.groupby(answers, key=lambda answer: answer.obligation.section):
        yield f"\n{section}"
        for row, grouped in itertools.groupby(in_section, key=lambda answer: answer.obligation.row):
            queries = list(grouped)
            count = f"{len(queries)} queries" if len(queries) > 1 else ""
            seconds = sum(answer.seconds for answer in queries)
            yield f"  {row:82} {count:>10}  {summary(queries):12} {seconds:6.2f} s"
            for answer in queries:
                if not answer.holds:
                    yield f"      {answer.obligation.name}: {answer.verdict}, wanted {answer.obligation.wanted}"
                if steps and answer.step and len(queries) == 1:
                    yield f"      before: {in_words(answer.step['before'])}"
                    yield f"      after:  {in_words(answer.step['after'])}"


def summary(answers: list[Answer]) -> str:
    """Return what came out, in a word or two."""
    if not all(answer.holds for answer in answers):
        return "FAILED"
    wanted = {answer.obligation.wanted for answer in answers}
    return {"unsat": "proved", "sat": "found"}[wanted.pop()] if len(wanted) == 1 else "as it says"


def plain(answer: Answer) -> Plain:
    """Return an answer as JSON can hold it."""
    asked = answer.obligation
    return {
        "section": asked.section,
        "name": asked.name,
        "wanted": asked.wanted,
        "verdict": answer.verdict,
        "seconds": answer.seconds,
        "step": answer.step,
    }
