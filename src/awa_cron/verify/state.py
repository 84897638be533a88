"""What the log of one schedule says about its row, event by event; unknown where the log does not reach. Pure."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

from awa_cron.errors import InvalidSchedule
from awa_cron.model import Event
from awa_cron.verify.instants import Instants, instants_of

Value = TypeVar("Value")


class Unknown(enum.Enum):
    """What an event further back would tell."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = Unknown.UNKNOWN

Definition: TypeAlias = tuple[str, str]
"""Expression and zone."""

FIELDS: Final = ("definition", "policy", "last", "anchor", "paused")
"""Of a row, those that the protocol works with."""

ACTIONS: Final = frozenset({"sync", "atomic_enqueue", "pause", "resume", "trigger", "remove"})
"""The actions whose events tell of a schedule."""


@dataclasses.dataclass(slots=True)
class State:
    """A schedule between two events.

    Attributes:
        present: Whether there is a row. The next five are the row's.
        last: Its last fire, None where it never fired.
        paused: The clock of its pause, None while not paused.
        floor: The highest last fire of its removed rows.
        floor_known: Whether every removal has been seen.
        removed_at: When the last of them was recorded.
        set_by: Per field, the event that gave it its value.
        active: The clock of the event after which a leader had something to do, or has done it.
    """

    present: bool | Unknown = UNKNOWN
    definition: Definition | Unknown = UNKNOWN
    policy: str | Unknown = UNKNOWN
    last: datetime | Unknown | None = UNKNOWN
    anchor: datetime | Unknown = UNKNOWN
    paused: datetime | Unknown | None = UNKNOWN
    floor: datetime | None = None
    floor_known: bool = False
    removed_at: datetime | None = None
    set_by: dict[str, int] = dataclasses.field(default_factory=dict)
    active: datetime | None = None

    @property
    def counts_after(self) -> datetime | Unknown:
        """The instant after which fires count."""
        if isinstance(self.last, Unknown) or isinstance(self.anchor, Unknown):
            return UNKNOWN
        return self.anchor if self.last is None else max(self.last, self.anchor)

    @property
    def instants(self) -> Instants | None:
        """The instants of the definition; None where it is unknown or cannot be evaluated."""
        if isinstance(self.definition, Unknown):
            return None
        try:
            return instants_of(*self.definition)
        except InvalidSchedule:
            return None

    def adopt(self, event: Event) -> None:
        """Take over what an event says, whether it may say it or not: one fault is one finding."""
        details = event.details
        match event.action:
            case "sync":
                self._set(event, present=True, definition=told(details, ""))
                self._set(event, policy=details.get("missed_fire_policy", UNKNOWN))
                self._set(event, anchor=instant(details.get("anchored_at", UNKNOWN)), last=event.last_enqueued_at)
                if details.get("change") == "inserted":
                    self._set(event, paused=None)
                self.active = event.clock
            case "atomic_enqueue":
                self._set(event, present=True, last=event.last_enqueued_at)
                if self.paused is not None:
                    self._set(event, paused=None)
                self.active = event.clock
            case "pause":
                self._set(event, present=True, last=event.last_enqueued_at, paused=event.clock)
            case "resume":
                self._set(event, present=True, last=event.last_enqueued_at, paused=None)
                self.active = event.clock
            case "remove":
                self.floor = later(self.floor, event.last_enqueued_at)
                self.removed_at = event.recorded_at
                self._set(event, present=False, **dict.fromkeys(FIELDS, UNKNOWN))

    def forget(self, event: Event) -> None:
        """Know nothing any more: an event that cannot be read may have done anything."""
        self._set(event, present=UNKNOWN, **dict.fromkeys(FIELDS, UNKNOWN))
        self.floor_known = False

    def _set(self, event: Event, **values: Any) -> None:
        for field, value in values.items():
            setattr(self, field, value)
            self.set_by[field] = event.id


def later(one: datetime | None, other: datetime | None) -> datetime | None:
    """Return the later of two instants, either of which may be missing."""
    return max(filter(None, (one, other)), default=None)


def instant(value: object) -> datetime | Any:
    """Return an instant out of an event's details; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return UNKNOWN  # infinity and its like: rows can be written by hand
    return UNKNOWN if found.tzinfo is None else found


def told(details: Mapping[str, Any], key: str) -> Definition | Unknown:
    """Return the definition that details hold: under a key, or their own."""
    holder = details.get(key, {}) if key else details
    if not isinstance(holder, dict) or "cron_expr" not in holder or "timezone" not in holder:
        return UNKNOWN
    return holder["cron_expr"], holder["timezone"]


def known_and_not(value: Value | Unknown, wanted: object) -> bool:
    """Tell whether a value is known to be another one."""
    return not isinstance(value, Unknown) and value != wanted
