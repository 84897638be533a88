"""The values that travel between the layers: schedules, their stored state, fires and jobs.

Every datetime here is aware and in UTC. JSON values are kept as text, so that a schedule keeps what it was
registered with whatever the caller does to its dict afterwards.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic

from awa_cron.errors import InvalidArgument
from awa_cron.outcomes import Cancellation

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # of the type checker's own; nothing is imported when it runs

    Args = TypeVar("Args", default=Any)
else:
    from typing import TypeVar

    Args = TypeVar("Args")


NEVER = datetime.max.replace(tzinfo=UTC)
"""The next fire of a schedule that has none left; the driver's value for ``infinity``."""


class Kind(enum.StrEnum):
    """Which schedules a pass reads. Spec: ``Kinds`` of ``AwaCronNext``."""

    DUE = "due"
    """Those whose next fire is due."""
    UNKNOWN = "unknown"
    """Those whose next fire nobody has worked out yet."""
    ALL = "all"


class MissedFirePolicy(enum.StrEnum):
    """What becomes of fires that fell due while nobody evaluated. Source: ADR-007, "Missed-fire policy"."""

    COALESCE = "coalesce"
    """One job, for the latest of them."""
    CATCH_UP = "catch_up"
    """A job for each, oldest first, a bounded number per pass."""


class JobState(enum.StrEnum):
    """States of a row of ``jobs``, as the full Awa names them."""

    SCHEDULED = "scheduled"
    AVAILABLE = "available"
    RUNNING = "running"
    RETRYABLE = "retryable"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule as code registers it, already validated. Built by ``Client.periodic``."""

    name: str
    cron_expr: str
    timezone: str
    kind: str
    queue: str
    args_json: str
    priority: int
    max_attempts: int
    tags: tuple[str, ...]
    metadata_json: str
    missed_fire_policy: MissedFirePolicy
    deadline_s: float | None = None

    @property
    def args(self) -> dict[str, Any]:
        """A fresh copy of the arguments that each job gets."""
        return json.loads(self.args_json)  # type: ignore[no-any-return]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """What evaluating a stored schedule needs. It may be unreadable: rows can be written by hand.

    Attributes:
        next_fire_at: No fire that counts comes before it; ``NEVER`` if none is left, None where it is unknown.
    """

    name: str
    cron_expr: str
    timezone: str
    missed_fire_policy: str
    last_enqueued_at: datetime | None
    anchored_at: datetime
    paused_at: datetime | None
    next_fire_at: datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchedule(ScheduleState):
    """A whole row of ``cron_jobs``, for operators.

    Attributes:
        queue_paused: Whether the queue hands out jobs; a schedule's fires go on.
        broken: Why the row cannot be evaluated, or its jobs are refused; None for a good one.
    """

    broken: str | None
    paused_by: str | None
    kind: str
    queue: str
    queue_paused: bool
    args: Any
    priority: int
    max_attempts: int
    tags: tuple[str, ...]
    metadata: Any
    deadline_s: float | None
    created_at: datetime
    updated_at: datetime


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FrozenFires:
    """The fires one pass chose for one schedule, and the row they were chosen from.

    Attributes:
        read: The row exactly as read; the conditional write compares with it.
        fires: Ascending, at least one, whole seconds.
        read_at: The clock of the read, which the event tells; None where nobody knows it.
        next_fire_at: The fire that follows the last of ``fires``; ``NEVER`` or None as in ``ScheduleState``.

    Raises:
        InvalidArgument: It is not so, or a datetime has no zone.
    """

    read: ScheduleState
    fires: tuple[datetime, ...]
    read_at: datetime | None = None
    next_fire_at: datetime | None = None

    def __post_init__(self) -> None:
        read = self.read
        try:
            aware(read.anchored_at, "anchored_at")
            _check_fires(self.fires, read.last_enqueued_at, self.read_at, self.next_fire_at)
        except InvalidArgument as error:
            raise InvalidArgument(f"fires of {self.name!r}: {error}") from None

    @property
    def name(self) -> str:
        """The schedule."""
        return self.read.name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NotedNext:
    """The next fire of a schedule that has nothing due, and the row from which it was worked out."""

    read: ScheduleState
    next_fire_at: datetime


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Due instants that an edit gave up, because of the pass limit or a pause.

    Attributes:
        count: How many, counted up to a bound.
        counted_all: False where ``count`` reached the bound and there are more.
        first: The oldest instant dropped.
        last: The newest instant dropped.
    """

    count: int
    counted_all: bool
    first: datetime
    last: datetime


class Unreadable(dict[str, str]):
    """Stands for stored JSON that Python cannot read, as rows written by hand can hold, and says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(unreadable=reason)

    @property
    def reason(self) -> str:
        """Why it cannot be read."""
        return self["unreadable"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[Args]):
    """A job as its handler sees it.

    Attributes:
        args: The job's own copy of its arguments: JSON values, or the type that the handler was registered with.
        attempt: 1 for the first run.
        run_at: When it may run, at the earliest.
        deadline_s: Seconds that this attempt may take; None for no limit.
        cancellation: Set when the handler is to stop.
    """

    id: int
    kind: str
    queue: str
    args: Args
    state: JobState
    priority: int
    attempt: int
    max_attempts: int
    run_at: datetime
    created_at: datetime
    tags: tuple[str, ...]
    metadata: dict[str, Any]
    deadline_s: float | None = None
    cancellation: Cancellation = dataclasses.field(default_factory=Cancellation, compare=False, repr=False)

    @property
    def cron_name(self) -> str | None:
        """The schedule that made the job, on its own or by a trigger."""
        return self.metadata.get("cron_name")

    @property
    def fire_time(self) -> datetime | None:
        """The scheduled instant that the job is for."""
        text = self.metadata.get("cron_fire_time")
        return datetime.fromisoformat(text) if text is not None else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeadJob:
    """A job that has used up its attempts: a row of ``jobs_dead``.

    Attributes:
        errors: What each failed attempt left, oldest first.
    """

    id: int
    kind: str
    queue: str
    args: Any
    priority: int
    attempt: int
    max_attempts: int
    tags: tuple[str, ...]
    metadata: dict[str, Any]
    created_at: datetime
    died_at: datetime | None
    errors: tuple[dict[str, Any], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue, as far as schedules, jobs or a pause name it.

    Attributes:
        waiting: Jobs that have not begun or wait for their next attempt.
    """

    name: str
    paused_at: datetime | None
    paused_by: str | None
    schedules: int
    waiting: int
    running: int
    dead: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """What a cancellation found.

    Attributes:
        waiting: Jobs that had not begun; they never will.
        signalled: Jobs that ran; their workers are told to stop, and nothing that they still say counts.
        running: Jobs that ran and go on.
    """

    waiting: int
    signalled: int
    running: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a schedule's history: an action that happened, written by the statement that did it.

    Attributes:
        clock: The database time that the action worked with.
        fires: The instants that became jobs, ascending, beside ``job_ids``.
        last_enqueued_at: The schedule's value after the action; for ``remove``, the value it took along.
    """

    id: int
    recorded_at: datetime
    clock: datetime
    action: str
    name: str | None
    actor: str | None
    fires: tuple[datetime, ...]
    job_ids: tuple[int, ...]
    last_enqueued_at: datetime | None
    details: dict[str, Any]


@lru_cache(maxsize=1_024)  # many schedules of a pass have theirs in common
def _check_fires(
    fires: tuple[datetime, ...],
    last_enqueued_at: datetime | None,
    read_at: datetime | None,
    next_fire_at: datetime | None,
) -> None:
    for what, known in (
        ("last_enqueued_at", last_enqueued_at),
        ("read_at", read_at),
        ("next_fire_at", next_fire_at),
    ):
        if known is not None:
            aware(known, what)
    for fire in fires:
        aware(fire, "fire")
    if not fires or any(fire.microsecond for fire in fires):
        raise InvalidArgument(f"they are {fires!r}: at least one, of whole seconds")
    if any(later <= earlier for earlier, later in pairwise(fires)):
        raise InvalidArgument(f"they are {fires!r}: they must be ascending")


def aware(value: datetime, what: str) -> datetime:
    """Return ``value`` in UTC.

    Raises:
        InvalidArgument: It is not a datetime, or has no zone.
    """
    if isinstance(value, datetime) and value.tzinfo is UTC:
        return value  # the usual case: what the driver returns
    if not isinstance(value, datetime):
        raise InvalidArgument(f"{what} must be a datetime, not {type(value).__name__}")
    if value.utcoffset() is None:
        raise InvalidArgument(
            f"{what} is {value!r}, which has no time zone: pass an aware datetime, such as "
            "datetime.now(UTC) or value.replace(tzinfo=UTC)"
        )
    return value.astimezone(UTC)
