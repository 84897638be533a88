"""What the properties of both specs have in common: a check in Python, and how they are gone through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Invariant:
    """A property of every state; ``check(model, state)`` yields what contradicts it."""

    name: str
    promise: str
    check: Callable[..., Iterator[str]]


@dataclass(frozen=True)
class StepProperty:
    """A property of every step; ``check`` is given the model and the step, and yields what contradicts it.

    Attributes:
        sound_evaluator: Holds only where the evaluator returns nothing but chosen fires.
    """

    name: str
    promise: str
    check: Callable[..., Iterator[str]]
    sound_evaluator: bool = False


def check_all(
    properties: Iterable[Invariant | StepProperty], *seen: object, only: str | None, where: str = ""
) -> None:
    """Check every property, or only the one that is named, on what was seen.

    Raises:
        AssertionError: Naming property and promise.
    """
    for each in properties:
        if only in {None, each.name}:
            for found in each.check(*seen):
                raise AssertionError(f"{each.name} ({each.promise}): {where}{found}")
