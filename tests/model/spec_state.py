"""The state of ``spec/AwaCron.tla`` in Python: immutable, hashable, variable by variable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

K = TypeVar("K")
V = TypeVar("V")

Policy = Literal["coalesce", "catch_up"]
Fires = tuple[int, ...]


class Table(Mapping[K, V], Generic[K, V]):
    """A function of the spec: a mapping that cannot change and can be hashed."""

    __slots__ = ("_entries", "_hash")

    def __init__(self, entries: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._entries = dict(entries)
        self._hash = hash(frozenset(self._entries.items()))

    def __getitem__(self, key: K) -> V:
        return self._entries[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Table):
            return self._hash == other._hash and self._entries == other._entries
        return NotImplemented

    def __repr__(self) -> str:
        return f"Table({self._entries!r})"

    def but(self, key: K, value: V) -> Table[K, V]:
        """Return this table with one entry changed: ``[table EXCEPT ![key] = value]``."""
        return Table({**self._entries, key: value})


@dataclass(frozen=True, slots=True)
class Row:
    """A schedule's row: ``last`` is the last fire that became a job, only instants after ``anchor`` are fires."""

    definition: str
    last: int | None
    anchor: int
    paused: bool


@dataclass(frozen=True, slots=True)
class Frozen:
    """What a pass froze for one schedule: definition, anchor and ``last`` as read; fires, oldest first."""

    definition: str
    anchor: int
    expected: int | None
    fires: Fires


@dataclass(frozen=True, slots=True)
class State:
    """The variables of the spec. ``jobs`` holds only instants that have a job; the others count 0."""

    now: int
    rows: Table[str, Row | None]
    jobs: Table[str, Table[int, int]]
    triggered: Table[str, int]
    floor: Table[str, int]
    lock: str | None
    up: Table[str, bool]
    believes: Table[str, bool]
    snapshot: Table[str, Table[str, Frozen | None] | None]


@dataclass(frozen=True, slots=True)
class Step:
    """A step that a state enables: the action's name, its arguments, and the state that it leads to."""

    action: str
    arguments: tuple[object, ...]
    after: State
