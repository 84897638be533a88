"""Schedules whose jobs the database refuses: few are tried again in each pass, so that they hold up no others.

Finding one costs as many statements as halving its batch does. That is spent once; from then on a refused schedule
takes its turn with the others. When all that were tried are accepted, as after the repair of what refused them,
twice as many are tried next time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from awa_cron.model import FrozenFires

AT_ONCE = 20
"""Refused schedules that a pass tries again."""


class Admitted(NamedTuple):
    """What a pass enqueues of a batch, and what it leaves.

    Attributes:
        fresh: Not refused before, as far as is known.
        retried: Refused before, and tried again.
        left: Refused before, and not tried now: by name, why they were.
    """

    fresh: list[FrozenFires]
    retried: list[FrozenFires]
    left: dict[str, str]


class Quarantine:
    """The refused schedules of one kind of pass."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}  # the one that was tried longest ago first
        self._turn: set[str] = set()
        self._room = AT_ONCE
        self._accepted = self._refused = False  # any of those whose turn it was

    def begin_pass(self) -> None:
        """Choose whose turn it is; one that did not come in its turn is removed, paused or repaired: forget it."""
        for name in self._turn:
            self._reasons.pop(name, None)
        self._room = 2 * self._room if self._accepted and not self._refused else AT_ONCE
        self._accepted = self._refused = False
        self._turn = set(islice(self._reasons, self._room))

    def admit(self, batch: Iterable[FrozenFires]) -> Admitted:
        """Say what of a batch is enqueued now."""
        admitted = Admitted([], [], {})
        for each in batch:
            if each.name not in self._reasons:
                admitted.fresh.append(each)
            elif each.name in self._turn:
                admitted.retried.append(each)
            else:
                admitted.left[each.name] = self._reasons[each.name]
        return admitted

    def learn(self, tried: Sequence[FrozenFires], refused: Mapping[str, str]) -> None:
        """Take note of what became of those that were tried."""
        for name in (each.name for each in tried):
            known = self._reasons.pop(name, None) is not None
            self._turn.discard(name)
            if name in refused:
                self._reasons[name] = refused[name]
            self._refused |= known and name in refused
            self._accepted |= known and name not in refused
