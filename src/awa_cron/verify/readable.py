"""Whether an event holds what an event of ours holds; logs can be written by hand. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from awa_cron.model import Event

TEXTS: Final = ("change", "cron_expr", "timezone", "missed_fire_policy", "anchored_at", "expected", "read_at")
OBJECTS: Final = ("from", "dropped")


def unreadable(event: Event) -> str | None:
    """Return what about an event cannot be read; None for a good one."""
    return next(_faults(event), None)


def _faults(event: Event) -> Iterator[str]:
    for field in ("recorded_at", "clock", "last_enqueued_at"):
        value: object = getattr(event, field)
        if not _is_instant(value) and not (value is None and field == "last_enqueued_at"):
            yield f"{field} is no instant"
    if not all(_is_instant(fire) for fire in event.fires):
        yield "fires are no instants"
    if not all(isinstance(job, int) for job in event.job_ids):
        yield "job_ids are no ids"
    details: object = event.details
    if not isinstance(details, dict):
        yield "details is no object"
        return
    for field, kind, what in (*((f, str, "text") for f in TEXTS), *((f, dict, "object") for f in OBJECTS)):
        if details.get(field) is not None and not isinstance(details[field], kind):
            yield f"details.{field} is no {what}"


def _is_instant(value: object) -> bool:
    # The driver gives infinite times as datetimes without a zone.
    return isinstance(value, datetime) and value.tzinfo is not None
