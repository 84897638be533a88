"""What OpenTelemetry is told, if the application has it installed; if not, nothing is wrapped and nothing counted.

Instruments, by the meter ``awa_cron``:

    awa_cron.fires                 {fire}     fires that became jobs; awa_cron.policy
    awa_cron.fires.coalesced       {fire}     due fires that a later one stands for: at least so many, as no more
                                              than 100 of a schedule and for half a second of a batch are counted
    awa_cron.fire.lateness         s          from a fire's instant to the commit of its job
    awa_cron.races.lost            {schedule} schedules of a pass whose rows had changed since it read them
    awa_cron.evaluation.duration   s          a pass: read, choose, enqueue; awa_cron.pass, error.type if it failed
    awa_cron.leader.changes        {change}   this instance took the lead or lost it; awa_cron.change
    awa_cron.queue.jobs            {job}      unfinished jobs, told by the leader; awa_cron.queue, awa_cron.state
    awa_cron.job.duration          s          a handler's run; awa_cron.queue, awa_cron.kind, awa_cron.outcome
    awa_cron.jobs                  {job}      attempts whose outcome was written; awa_cron.queue, .kind, .state

Spans, by the tracer of that name: ``atomic_enqueue`` for each statement that enqueues, and ``job KIND`` around each
handler, within which the handler's own spans lie. Schedules are in spans, not in metrics: there may be 100,000.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from awa_cron import cronexpr
from awa_cron.errors import AwaCronError
from awa_cron.model import FrozenFires, Job, JobState, MissedFirePolicy

try:
    from opentelemetry import metrics, trace
except ModuleNotFoundError:
    ENABLED = False
else:
    ENABLED = True

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

P = ParamSpec("P")
Answer = TypeVar("Answer")
Enqueued = TypeVar("Enqueued", bound=Mapping[str, Any])

COALESCED_COUNTED: Final = 100
COUNTING_S: Final = 0.5
"""The longest that counting what a batch coalesces may take: after an outage there may be much."""
TURN_S: Final = 0.005
"""How long counting goes on before it lets the event loop do something else."""
SCHEDULES_NAMED: Final = 20
"""The most schedules that a span names."""
SHORT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
LONG: Final = (0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400)

_read_at: ContextVar[float | None] = ContextVar("awa_cron_read_at", default=None)
_depths: dict[tuple[str, str], int] = {}

if ENABLED:
    _meter = metrics.get_meter("awa_cron")
    _tracer = trace.get_tracer("awa_cron")
    _fires = _meter.create_counter("awa_cron.fires", "{fire}", "Fires that became jobs")
    _coalesced = _meter.create_counter(
        "awa_cron.fires.coalesced", "{fire}", "Due fires that a later one stands for"
    )
    _lateness = _meter.create_histogram(
        "awa_cron.fire.lateness",
        "s",
        "From a fire's instant to the commit of its job",
        explicit_bucket_boundaries_advisory=LONG,
    )
    _races = _meter.create_counter(
        "awa_cron.races.lost", "{schedule}", "Rows that had changed since they were read"
    )
    _evaluations = _meter.create_histogram(
        "awa_cron.evaluation.duration", "s", "A pass of the leader", explicit_bucket_boundaries_advisory=SHORT
    )
    _changes = _meter.create_counter("awa_cron.leader.changes", "{change}", "Took the lead, or lost it")
    _durations = _meter.create_histogram(
        "awa_cron.job.duration", "s", "A handler's run", explicit_bucket_boundaries_advisory=LONG
    )
    _jobs = _meter.create_counter("awa_cron.jobs", "{job}", "Attempts whose outcome was written")

    def _observed(_options: CallbackOptions) -> Iterable[Observation]:
        for (queue, state), count in list(_depths.items()):
            yield metrics.Observation(count, {"awa_cron.queue": queue, "awa_cron.state": state})

    _meter.create_observable_gauge("awa_cron.queue.jobs", [_observed], "{job}", "Unfinished jobs")


def reading(read: Callable[P, Coroutine[Any, Any, Answer]]) -> Callable[P, Coroutine[Any, Any, Answer]]:
    """Remember when a pass has read, for the lateness of what it enqueues."""
    if not ENABLED:
        return read

    @functools.wraps(read)
    async def remembered(*args: P.args, **kwargs: P.kwargs) -> Answer:
        answer = await read(*args, **kwargs)
        _read_at.set(time.monotonic())
        return answer

    return remembered


def enqueuing(enqueue: Callable[P, Coroutine[Any, Any, Enqueued]]) -> Callable[P, Coroutine[Any, Any, Enqueued]]:
    """Count what a batch, the third argument, becomes."""
    if not ENABLED:
        return enqueue

    @functools.wraps(enqueue)
    async def counted(*args: P.args, **kwargs: P.kwargs) -> Enqueued:
        batch: Sequence[FrozenFires] = args[2]  # type: ignore[assignment]
        if not batch:
            return await enqueue(*args, **kwargs)
        started = time.monotonic()
        with _tracer.start_as_current_span("atomic_enqueue") as span:
            won = await enqueue(*args, **kwargs)
            span.set_attribute("awa_cron.schedules", [frozen.name for frozen in islice(batch, SCHEDULES_NAMED)])
            span.set_attribute("awa_cron.batch_size", len(batch))
            span.set_attribute("awa_cron.races_lost", len(batch) - len(won))
        if _somebody_listens():
            since_read_s = time.monotonic() - (_read_at.get() or started)
            await _count([frozen for frozen in batch if frozen.name in won], since_read_s)
            if len(won) < len(batch):
                _races.add(len(batch) - len(won))
        return won

    return counted


def evaluation(evaluate: Callable[P, Coroutine[Any, Any, Answer]]) -> Callable[P, Coroutine[Any, Any, Answer]]:
    """Time a pass."""
    if not ENABLED:
        return evaluate

    @functools.wraps(evaluate)
    async def timed(*args: P.args, **kwargs: P.kwargs) -> Answer:
        started, attributes = time.monotonic(), {"awa_cron.pass": str(args[1]) if len(args) > 1 else "all"}
        try:
            return await evaluate(*args, **kwargs)
        except Exception as error:
            attributes["error.type"] = type(error).__name__
            raise
        finally:
            _evaluations.record(time.monotonic() - started, attributes)

    return timed


def handling(handle: Callable[P, Coroutine[Any, Any, Answer]]) -> Callable[P, Coroutine[Any, Any, Answer]]:
    """Time a handler's run; the first argument is its attempt, and what comes back its outcome."""
    if not ENABLED:
        return handle

    @functools.wraps(handle)
    async def timed(*args: P.args, **kwargs: P.kwargs) -> Answer:
        job: Job = args[0].job  # type: ignore[attr-defined]
        outcome = "cancelled"
        started = time.monotonic()
        attributes: dict[str, str | int] = {"awa_cron.queue": job.queue, "awa_cron.kind": job.kind}
        with _tracer.start_as_current_span(
            f"job {job.kind}", kind=trace.SpanKind.CONSUMER, attributes=dict(_identity(job)) | attributes
        ) as span:
            try:
                said = await handle(*args, **kwargs)
                outcome = "completed" if said is None else type(said).__name__.lower()
                if outcome == "failed":
                    span.set_status(trace.StatusCode.ERROR)
                return said
            finally:
                span.set_attribute("awa_cron.outcome", outcome)
                _durations.record(time.monotonic() - started, attributes | {"awa_cron.outcome": outcome})

    return timed


def settled(job: Job, state: JobState) -> None:
    """Count an attempt whose outcome was written."""
    if ENABLED:
        _jobs.add(1, {"awa_cron.queue": job.queue, "awa_cron.kind": job.kind, "awa_cron.state": state.value})


def leader_changed(change: str) -> None:
    """Count that this instance took the lead, or lost it."""
    if ENABLED:
        _changes.add(1, {"awa_cron.change": change})


def queue_depths(depths: Mapping[tuple[str, str], int]) -> None:
    """Set what the observable gauge tells: jobs by queue and state; nothing when this instance does not lead."""
    _depths.clear()
    _depths.update(depths)


def _somebody_listens() -> bool:
    """Tell whether the application has set up more than OpenTelemetry's interface, which does nothing."""
    return not type(metrics.get_meter_provider()).__module__.startswith("opentelemetry.metrics")


async def _count(enqueued: Sequence[FrozenFires], since_read_s: float) -> None:
    """Count fires, in turns with everything else that waits for the event loop."""
    left_s, turn = COUNTING_S, time.monotonic()
    for frozen in enqueued:
        attributes = {"awa_cron.policy": str(frozen.read.missed_fire_policy)}
        _fires.add(len(frozen.fires), attributes)
        if frozen.read_at is not None:
            for fire in frozen.fires:
                _lateness.record((frozen.read_at - fire).total_seconds() + since_read_s, attributes)
        coalesces = frozen.read.missed_fire_policy == MissedFirePolicy.COALESCE
        # Where the fire is the one that was expected next, nothing lies before it.
        if coalesces and frozen.read.next_fire_at != frozen.fires[-1] and left_s > 0:
            started = time.monotonic()
            read = frozen.read
            after = max(filter(None, (read.last_enqueued_at, read.anchored_at)))
            passed_by = _passed_by(read.cron_expr, read.timezone, after, frozen.fires[-1])
            if passed_by:
                _coalesced.add(passed_by, attributes)
            left_s -= time.monotonic() - started
        if time.monotonic() - turn > TURN_S:
            await asyncio.sleep(0)
            turn = time.monotonic()


# In a herd, many schedules have the same definition and have last fired together.
@functools.lru_cache(maxsize=1_024)
def _passed_by(cron_expr: str, timezone: str, after: datetime, fire: datetime) -> int:
    """Return how many instants lie between two, at most ``COALESCED_COUNTED``."""
    try:
        due = cronexpr.due_fires(cron_expr, timezone, after=after, until=fire)
        return sum(1 for instant in islice(due, COALESCED_COUNTED) if instant < fire)
    except AwaCronError:
        return 0


def _identity(job: Job) -> Iterator[tuple[str, str | int]]:
    yield "awa_cron.job_id", job.id
    yield "awa_cron.attempt", job.attempt
    if job.cron_name is not None:
        yield "awa_cron.schedule", str(job.cron_name)
