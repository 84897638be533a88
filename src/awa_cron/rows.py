"""Between rows of the database and the values of ``model``: one place that knows the columns."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from datetime import MAXYEAR, UTC, datetime
from operator import itemgetter
from typing import Any, Protocol

from awa_cron import firing
from awa_cron.model import (
    NEVER,
    DeadJob,
    Dropped,
    Event,
    Job,
    JobState,
    Schedule,
    ScheduleState,
    StoredSchedule,
    Unreadable,
)
from awa_cron.registration import MAX_NAME_LENGTH, MAX_TAGS

_encoded = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder for each row


class Row(Protocol):
    """What the driver returns: values by column name."""

    def __getitem__(self, column: str, /) -> Any: ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SyncPlan:
    """What a definition's write carries besides the definition.

    Attributes:
        row_version: The row as read, None where there is none.
        fires: Fires of the old definition that become jobs, ascending.
        dropped: Due instants of the old definition that do not.
        unreadable: Why the old definition could not be settled, if it could not.
        next_fire_at: The first fire of the new definition after the clock of the read.
    """

    row_version: str | None
    fires: tuple[datetime, ...] = ()
    dropped: Dropped | None = None
    unreadable: str | None = None
    next_fire_at: datetime | None = None


def definitions(schedules: Iterable[Schedule], plans: Mapping[str, SyncPlan] | None = None) -> str:
    """Return schedules as the JSON array that the statements unpack, with their plans if given."""
    return "[" + ",".join(_definition(each, plans) for each in schedules) + "]"


def _definition(schedule: Schedule, plans: Mapping[str, SyncPlan] | None) -> str:
    columns: dict[str, Any] = {
        "name": schedule.name,
        "cron_expr": schedule.cron_expr,
        "timezone": schedule.timezone,
        "kind": schedule.kind,
        "queue": schedule.queue,
        "priority": schedule.priority,
        "max_attempts": schedule.max_attempts,
        "tags": schedule.tags,
        "missed_fire_policy": schedule.missed_fire_policy,
        "deadline_s": schedule.deadline_s,
    }
    if plans is not None:
        plan = plans[schedule.name]
        columns["row_version"] = plan.row_version
        columns["fires"] = [fire.isoformat() for fire in plan.fires]
        columns["dropped"] = _dropped(plan)
        columns["next_fire_at"] = _instant(plan.next_fire_at)
    text = _encoded(columns)
    # args and metadata are JSON text already, and keep their numbers as they were registered.
    return f'{text[:-1]},"args":{schedule.args_json},"metadata":{schedule.metadata_json}}}'


def _instant(time: datetime | None) -> str | None:
    return None if time is None else "infinity" if time == NEVER else time.isoformat()


def _dropped(plan: SyncPlan) -> dict[str, Any] | None:
    if plan.unreadable is not None:
        return {"unreadable": plan.unreadable}
    if plan.dropped is None:
        return None
    return {
        "count": plan.dropped.count,
        "counted_all": plan.dropped.counted_all,
        "first": plan.dropped.first.isoformat(),
        "last": plan.dropped.last.isoformat(),
    }


def page(found: Iterable[Row]) -> tuple[ScheduleState, ...]:
    """Return the schedules of a page in their order; each row brings those that differ only in name and anchor."""
    placed: list[tuple[int, ScheduleState]] = []
    for row in found:
        shared = _shared(row)
        placed += [
            (place, ScheduleState(name=name, anchored_at=anchor, **shared))
            for place, name, anchor in zip(row["places"], row["names"], row["anchors"], strict=True)
            if name is not None
        ]
    placed.sort(key=itemgetter(0))
    return tuple([state for _, state in placed])


def schedule_state(row: Row) -> ScheduleState:
    """Return what evaluating a stored schedule needs."""
    return ScheduleState(name=row["name"], anchored_at=row["anchored_at"], **_shared(row))


def _shared(row: Row) -> dict[str, Any]:
    return {
        "cron_expr": row["cron_expr"],
        "timezone": row["timezone"],
        "missed_fire_policy": row["missed_fire_policy"],
        "last_enqueued_at": row["last_enqueued_at"],
        "paused_at": row["paused_at"],
        "next_fire_at": _next_fire(row),
    }


def _next_fire(row: Row) -> datetime | None:
    """Return the next fire; the driver's value for infinity has no zone."""
    stored: datetime | None = row["next_fire_at"]
    return NEVER if stored is not None and stored.year == MAXYEAR else stored


def stored_schedule(row: Row) -> StoredSchedule:
    """Return a whole stored schedule."""
    names = {field.name for field in dataclasses.fields(StoredSchedule)} - {"broken"}
    return StoredSchedule(
        **{name: zoned(row[name]) for name in names}
        | {
            "next_fire_at": _next_fire(row),
            "broken": firing.problem(schedule_state(row)) or _refused(row),
            "args": _json(row["args"]),
            "metadata": _json(row["metadata"]),
            "tags": tuple(row["tags"]),
        }
    )


def _refused(row: Row) -> str | None:
    """Return why the table of jobs will refuse this schedule's; rows can be written by hand."""
    for field, longest in (("kind", MAX_NAME_LENGTH), ("queue", MAX_NAME_LENGTH), ("tags", MAX_TAGS)):
        if len(row[field]) > longest:
            return _no_jobs(row, f"{field} has {len(row[field])} characters or entries, the limit is {longest}")
    for field, most in (("priority", 4), ("max_attempts", 1000)):
        if not 1 <= row[field] <= most:
            return _no_jobs(row, f"{field} is {row[field]}, it must be from 1 to {most}")
    return None


def _no_jobs(row: Row, reason: str) -> str:
    return f"stored schedule {row['name']!r} can have no jobs: {reason}"


def job(row: Row) -> Job:
    """Return a job."""
    return Job(
        id=row["id"],
        kind=row["kind"],
        queue=row["queue"],
        args=_json(row["args"]),
        state=JobState(row["state"]),
        priority=row["priority"],
        attempt=row["attempt"],
        max_attempts=row["max_attempts"],
        run_at=zoned(row["run_at"]),
        created_at=zoned(row["created_at"]),
        tags=tuple(row["tags"]),
        metadata=_json(row["metadata"]),
        deadline_s=row["deadline_s"],
    )


def dead_job(row: Row) -> DeadJob:
    """Return a dead job."""
    values = {field.name: zoned(row[field.name]) for field in dataclasses.fields(DeadJob)}
    return DeadJob(
        **values
        | {
            "args": _json(row["args"]),
            "metadata": _json(row["metadata"]),
            "tags": tuple(row["tags"]),
            "errors": errors(row),
        }
    )


def errors(row: Row) -> tuple[dict[str, Any], ...]:
    """Return what the failed attempts of a job have left, oldest first."""
    read = _json(row["errors"])
    return (read,) if isinstance(read, Unreadable) else tuple(read)


def event(row: Row) -> Event:
    """Return an event; instants that Python has not come without a zone, and can be told from those it has."""
    values = {field.name: row[field.name] for field in dataclasses.fields(Event)}
    return Event(
        **values
        | {
            "fires": tuple(row["fires"]),
            "job_ids": tuple(row["job_ids"]),
            "details": _json(row["details"]),
        }
    )


def _json(text: str) -> Any:
    """Return a JSON value; one that Python refuses must not hide the rest of its row, or other rows."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return Unreadable(str(error))


def zoned(value: Any) -> Any:
    """Return a value; an instant with its zone, which the driver's values for the infinities lack."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value
