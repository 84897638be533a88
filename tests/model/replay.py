"""Takes Postgres along a state graph: every step from each state put in place, walks from the initial state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Self, TypeVar

from tests.model.graphs import Attempt, Unasked
from tests.model.spec_state import State, Step
from tests.model.worlds import ENVIRONMENT, Worlds

T = TypeVar("T")

BATCH = 500
"""Worlds that act side by side; each holds at most one lock, and a server has room for some thousands."""


@dataclass
class Tally:
    """What a replay has done.

    Attributes:
        edges: Labelled edges of the graph, each replayed.
        calls: Attempts that went through ``awa_cron.actions``; the environment has no function there.
        disabled: Disabled actions that were asked for, and changed nothing.
        unasked: Disabled actions that nobody can ask for, by reason.
    """

    states: int = 0
    edges: int = 0
    calls: int = 0
    disabled: int = 0
    unasked: Counter[Unasked] = field(default_factory=Counter)

    def __add__(self, other: Self) -> Tally:
        return Tally(
            states=self.states + other.states,
            edges=self.edges + other.edges,
            calls=self.calls + other.calls,
            disabled=self.disabled + other.disabled,
            unasked=self.unasked + other.unasked,
        )


def batches(things: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """Yield the things in lists of ``size``; the last may be shorter."""
    left = iter(things)
    while batch := list(islice(left, size)):
        yield batch


async def replay(worlds: Worlds, asked: Iterable[tuple[State, Sequence[Attempt | Unasked]]]) -> Tally:
    """Put each state in place and make each attempt there; the state that is read back must be the spec's."""
    tally = Tally()
    for batch in batches(asked):
        states = [state for state, _ in batch]
        attempts = [[each for each in every if isinstance(each, Attempt)] for _, every in batch]
        await worlds.put(states)
        for turn in range(max(map(len, attempts))):
            if turn > 0:
                await worlds.again()
            # Each world begins elsewhere in its list, so that a round holds a bit of everything.
            chosen = {k: each[(turn + k) % len(each)] for k, each in enumerate(attempts) if turn < len(each)}
            await make(worlds, states, chosen)
        await worlds.drop()
        tally += Tally(
            states=len(batch),
            edges=sum(len({(each.action, each.after) for each in every if each.enabled}) for every in attempts),
            calls=sum(each.action not in ENVIRONMENT for every in attempts for each in every),
            disabled=sum(not each.enabled for every in attempts for each in every),
            unasked=Counter(each for _, every in batch for each in every if isinstance(each, Unasked)),
        )
    return tally


async def make(worlds: Worlds, states: Sequence[State], chosen: dict[int, Attempt]) -> list[State]:
    """Make one attempt in each of some worlds, and compare every world with what the spec says."""
    happened = await worlds.perform((k, each.action, each.arguments) for k, each in chosen.items())
    found = await worlds.observe()
    for k, before in enumerate(states):
        attempt = chosen.get(k)
        then = before if attempt is None else attempt.after
        if found[k] != then:
            raise AssertionError(f"{_told(attempt)}\nfrom  {before}\nled to {found[k]}\nand not to {then}")
        # A lost race is a step of the spec, and no news to the caller.
        news = attempt is not None and attempt.enabled and attempt.action != "cas_fail"
        assert (k in happened) == news, f"{_told(attempt)}\nfrom {before}\nsays {k in happened}"
    return found


def _told(attempt: Attempt | None) -> str:
    if attempt is None:
        return "another world's action"
    shown = ", ".join(map(repr, attempt.arguments))
    return f"{attempt.action}({shown}), {'enabled' if attempt.enabled else 'disabled'},"


async def walk(worlds: Worlds, start: State, walks: Iterable[Sequence[Step]]) -> int:
    """Walk from the initial state, many walks side by side, every action committed; return the steps taken."""
    taken = 0
    for batch in batches(sorted(walks, key=len)):
        states = [start] * len(batch)
        await worlds.begin(len(batch))
        for turn in range(max(map(len, batch))):
            chosen = {
                k: Attempt(steps[turn].action, steps[turn].arguments, steps[turn].after, enabled=True)
                for k, steps in enumerate(batch)
                if turn < len(steps)
            }
            states = await make(worlds, states, chosen)
            taken += len(chosen)
    return taken
