"""All orders of the steps of several parties, depth first; those that differ by steps that commute, once.

What a party can do next is known only when everything before is done, so an order is a walk: ``choose`` is asked at
each step, and ``advance`` turns to the next walk. Steps that have been tried and commute with what was done since
are left out (sleep sets): another walk has had them, and everything else as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Step = tuple[int, str]
"""A party's number, and what it does."""
Choose = Callable[[Sequence[Step]], Step]
STRAYS = 5


@dataclass
class _Fork:
    step: Step
    others: list[Step]
    asleep: set[Step]
    tried: list[Step] = field(default_factory=list)


class Orders:
    """The walks.

    Args:
        commute: Whether two steps of different parties, next to each other, can change places unnoticed.

    Attributes:
        repeated: Whether the walk that was just made is one that has been made before but for steps that commute.
        strayed: Whether the same steps led elsewhere this time, so that the walk could not be the one that was
            meant. A database aborts whom it likes, at a moment of its own choosing; the walk is tried again.

    Raises:
        AssertionError: From ``advance``: a walk strays each time.
    """

    def __init__(self, commute: Callable[[Step, Step], bool]) -> None:
        self._commute = commute
        self._path: list[_Fork] = []
        self._depth = 0
        self._strays = 0
        self.repeated = False
        self.strayed = False

    def choose(self, options: Sequence[Step]) -> Step:
        """Return the next step of this walk, one of the options."""
        if self.strayed:
            return options[0]
        if self._depth == len(self._path):
            self._fork(options)
        step = self._path[self._depth].step
        self.strayed = step not in options
        self._depth += 1
        return options[0] if self.strayed else step

    def advance(self) -> bool:
        """Turn to the next walk; False if there is none."""
        self._depth, self.repeated = 0, False
        if self.strayed:
            self._strays += 1
            assert self._strays < STRAYS, f"the same steps lead elsewhere each time: {[f.step for f in self._path]}"
            self.strayed = False
            return True
        self._strays = 0
        while self._path:
            fork = self._path[-1]
            if fork.others:
                fork.tried.append(fork.step)
                fork.step = fork.others.pop(0)
                return True
            self._path.pop()
        return False

    def _fork(self, options: Sequence[Step]) -> None:
        asleep: set[Step] = set()
        if self._path:
            before = self._path[-1]
            asleep = {step for step in before.asleep.union(before.tried) if self._commute(step, before.step)}
        awake = [step for step in options if step not in asleep]
        self.repeated = self.repeated or not awake
        if self.repeated:
            awake = [options[0]]
        self._path.append(_Fork(step=awake[0], others=awake[1:], asleep=asleep))


def until(*wanted: Step) -> Choose:
    """Go on with a party until it has taken the step that is wanted first, and so on; then with whoever can."""
    left = list(wanted)

    def choose(options: Sequence[Step]) -> Step:
        if not left:
            return options[0]
        step = next(step for step in options if step[0] == left[0][0])
        if step == left[0]:
            left.pop(0)
        return step

    return choose
