"""Validation of everything that code hands over when it registers a schedule.

A definition that passes here can be stored, evaluated and turned into jobs: nothing is left to fail at fire
time. Source: ADR-007, "Eager validation".
"""

from __future__ import annotations

import dataclasses
import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Any

from awa_cron import cronexpr
from awa_cron.errors import InvalidArgument, InvalidCronExpression, InvalidSchedule
from awa_cron.model import MissedFirePolicy, Schedule, aware
from awa_cron.outcomes import MAX_DELAY_S

MAX_NAME_LENGTH = 200
MAX_TAGS = 20
MAX_JSON_DEPTH = 100
MAX_JSON_BYTES = 1_000_000
MAX_INTEGER_DIGITS = 1_000
BIDI_CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
RESERVED_METADATA = ("cron_name", "cron_fire_time", "cron_triggered_at")


def schedule(
    name: str,
    cron_expr: str,
    *,
    kind: str,
    args: object = None,
    timezone: str = "UTC",
    queue: str = "default",
    priority: int = 2,
    max_attempts: int = 25,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    missed_fire_policy: str = MissedFirePolicy.COALESCE,
    deadline_s: float | None = None,
) -> Schedule:
    """Validate a definition. The parameters are those of ``Client.periodic``.

    Raises:
        InvalidSchedule: A field is unusable; the message names the schedule, the field, the value and the
            remedy. ``InvalidCronExpression`` and ``UnknownTimezone`` are kinds of it.
    """
    checked_name = label(name, "name")
    try:
        expression = cronexpr.parse(cron_expr)
        if not cronexpr.next_fires(expression, timezone, after=datetime.now(UTC), count=1):
            # Such as `* 2 * 3 SUN#2` in New York: every minute that it names is skipped by the clock.
            raise InvalidCronExpression(
                f"cron expression {expression.text!r} never fires in {timezone}; name another hour"
            )
        return Schedule(
            name=checked_name,
            cron_expr=expression.text,
            timezone=timezone,
            kind=label(kind, "kind"),
            queue=label(queue, "queue"),
            args_json=_json_object(plain_args(args), "args"),
            priority=_priority(priority),
            max_attempts=_integer(max_attempts, "max_attempts", 1, 1000),
            tags=_tags(tags),
            metadata_json=_metadata({} if metadata is None else metadata),
            missed_fire_policy=_policy(missed_fire_policy),
            deadline_s=deadline(deadline_s),
        )
    except InvalidSchedule as error:
        raise type(error)(f"schedule {checked_name!r}: {error}") from None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be made by hand, validated."""

    kind: str
    queue: str
    args_json: str
    priority: int
    max_attempts: int
    tags: tuple[str, ...]
    metadata_json: str
    run_at: datetime | None
    deadline_s: float | None


def job(
    kind: str,
    args: object = None,
    *,
    queue: str = "default",
    priority: int = 2,
    max_attempts: int = 25,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    run_at: datetime | None = None,
    deadline_s: float | None = None,
) -> NewJob:
    """Validate a job made by hand. The parameters are those of ``Client.enqueue``.

    Raises:
        InvalidArgument: A field is unusable; the message names it.
    """
    try:
        return NewJob(
            kind=label(kind, "kind"),
            queue=label(queue, "queue"),
            args_json=_json_object(plain_args(args), "args"),
            priority=_priority(priority),
            max_attempts=_integer(max_attempts, "max_attempts", 1, 1000),
            tags=_tags(tags),
            metadata_json=_metadata({} if metadata is None else metadata),
            run_at=None if run_at is None else _run_at(run_at),
            deadline_s=deadline(deadline_s),
        )
    except InvalidSchedule as error:
        raise InvalidArgument(f"job: {error}") from None


def label(value: object, field: str) -> str:
    """Validate a name, kind, queue, tag or operator label: what people read in tables and logs.

    Raises:
        InvalidSchedule: Empty, padded with blanks, too long, or holding characters that cannot be stored.
    """
    if not isinstance(value, str):
        raise InvalidSchedule(f"{field} must be a string, not {type(value).__name__}")
    shown = _shown(value)
    if not value.strip():
        raise InvalidSchedule(f"{field} is {shown}: it must not be empty or blank")
    if value != value.strip():
        raise InvalidSchedule(f"{field} is {shown}: remove the blanks at its ends")
    if len(value) > MAX_NAME_LENGTH:
        raise InvalidSchedule(f"{field} is {shown}, {len(value)} characters: the limit is {MAX_NAME_LENGTH}")
    for character in value:
        if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} or character in BIDI_CONTROLS:
            raise InvalidSchedule(
                f"{field} is {shown}: it holds U+{ord(character):04X}, which cannot be read in a table or log"
            )
    return value


def plain_args(args: object) -> object:
    """Return arguments as a dict: of None an empty one, of a dataclass or pydantic model its fields."""
    if args is None:
        return {}
    if dataclasses.is_dataclass(args) and not isinstance(args, type):
        return dataclasses.asdict(args)
    dump = None if isinstance(args, type) else getattr(args, "model_dump", None)
    return args if dump is None else dump(mode="json")


def deadline(value: object) -> float | None:
    """Validate the seconds that an attempt may take; None for no limit.

    Raises:
        InvalidSchedule: It is no number above 0.
    """
    if value is None:
        return None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 < value <= MAX_DELAY_S:  # type: ignore[operator]
        raise InvalidSchedule(
            f"deadline_s is {_shown(value)}: it must be a number of seconds above 0, at most a year, or None"
        )
    return float(value)  # type: ignore[arg-type]


def _run_at(value: datetime) -> datetime:
    # Postgres has more years than Python, and the driver takes Python's first and last instants for infinities.
    if isinstance(value, datetime) and not MINYEAR + 1 <= value.year <= MAXYEAR - 1:
        raise InvalidArgument(
            f"run_at is {value!r}: it must be in the years {MINYEAR + 1} to {MAXYEAR - 1}, or None for now"
        )
    return aware(value, "run_at")


def _priority(value: object) -> int:
    return _integer(value, "priority", 1, 4)


def _integer(value: object, field: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidSchedule(f"{field} is {_shown(value)}: it must be an integer from {low} to {high}")
    return value


def _tags(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidSchedule(f"tags is {_shown(value)}: it must be a list of strings")
    if len(value) > MAX_TAGS:
        raise InvalidSchedule(f"tags has {len(value)} entries: the limit is {MAX_TAGS}")
    return tuple(label(tag, f"tags[{i}]") for i, tag in enumerate(value))


def _policy(value: object) -> MissedFirePolicy:
    try:
        return MissedFirePolicy(value)  # type: ignore[arg-type]
    except ValueError:
        known = " or ".join(repr(str(policy)) for policy in MissedFirePolicy)
        raise InvalidSchedule(f"missed_fire_policy is {_shown(value)}: it must be {known}") from None


def _metadata(value: object) -> str:
    text = _json_object(value, "metadata")
    for key in RESERVED_METADATA:
        if isinstance(value, Mapping) and key in value:
            raise InvalidSchedule(f"metadata has the key {key!r}: that label is set on each job by awa_cron")
    return text


def _json_object(value: object, field: str) -> str:
    if not isinstance(value, Mapping):
        raise InvalidSchedule(f"{field} must be a dict of JSON values, not {type(value).__name__}")
    text = json.dumps(_plain(value, field, 1), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    size = len(text.encode())
    if size > MAX_JSON_BYTES:
        raise InvalidSchedule(f"{field} is {size} bytes of JSON: the limit is {MAX_JSON_BYTES}")
    return text


def _plain(value: object, where: str, depth: int) -> object:
    """Copy a value into plain JSON types, or say where in it the trouble is."""
    if depth > MAX_JSON_DEPTH:
        raise InvalidSchedule(f"{where} is nested deeper than {MAX_JSON_DEPTH} levels")
    match value:
        case None | bool():
            return value
        case str():
            return _text(value, where)
        case int():
            if abs(value) >= 10**MAX_INTEGER_DIGITS:
                raise InvalidSchedule(f"{where} is an integer of more than {MAX_INTEGER_DIGITS} digits")
            return int(value)
        case float():
            if not math.isfinite(value):
                raise InvalidSchedule(f"{where} is {value!r}, which JSON has no number for")
            return float(value)
        case Mapping():
            return {_key(key, where): _plain(inner, _inside(where, key), depth + 1) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner, _inside(where, i), depth + 1) for i, inner in enumerate(value)]
        case _:
            raise InvalidSchedule(
                f"{where} is a {type(value).__name__}, which is not JSON: use None, bool, int, float, str, "
                "list or dict"
            )


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise InvalidSchedule(f"{where} has the key {_shown(key)}: JSON keys are strings")
    return _text(key, f"a key of {where}")


def _text(value: str, where: str) -> str:
    for character in value:
        if character == "\0" or "\ud800" <= character <= "\udfff":
            raise InvalidSchedule(f"{where} holds U+{ord(character):04X}, which Postgres cannot store in JSON")
    return str.__str__(value)  # an enumeration's own str is its name, not its value


def _inside(where: str, key: object) -> str:
    """Return where a value lies, at a length that fits in a message."""
    return f"{where if len(where) <= 200 else '…' + where[-200:]}[{_shown(key)}]"


def _shown(value: object) -> str:
    """Return a value as a message shows it; some integers are too long even for repr."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001
        return f"of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:80]}…"
