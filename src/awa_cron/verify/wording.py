"""How findings are worded, and the window of the log that each of them shows."""

from __future__ import annotations

from datetime import datetime

from awa_cron.model import Event
from awa_cron.verify.state import State, Unknown
from awa_cron.verify.verdict import Finding


def finding(state: State, rule: str, event: Event, message: str, *fields: str) -> Finding:
    """Return a finding about an event.

    Args:
        state: Before the event.
        rule: What the spec calls it.
        event: The event that does not fit.
        message: What it does, after its name.
        fields: Of the state, those that it does not fit; the events that set them belong to the window.
    """
    origins = {state.set_by[field] for field in fields if field in state.set_by}
    return Finding(
        rule=rule,
        schedule=event.name or "",
        message=f"event {event.id}, {event.action}, {message}",
        events=(*sorted(origins - {event.id}), event.id),
        jobs=event.job_ids,
    )


def moment(value: datetime) -> str:
    """Return an instant as ISO 8601 with a ``Z``."""
    return value.isoformat().replace("+00:00", "Z")


def shown(value: object) -> str:
    """Return a field's value."""
    match value:
        case None:
            return "none"
        case datetime():
            return moment(value)
        case (str(), str()):
            return f"{value[0]!r} in {value[1]}"
        case Unknown():
            return "unknown"
        case _:
            return str(value)


def listed(fires: tuple[datetime, ...]) -> str:
    """Return instants, the first three of many."""
    if not fires:
        return "no fire"
    first = ", ".join(map(moment, fires[:3]))
    return first if len(fires) <= 3 else f"{first} and {len(fires) - 3} more"
