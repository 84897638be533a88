"""``/metrics`` for Prometheus, ``/health`` for load balancers: numbers of the database, not of this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, PlainTextResponse, Response

from awa_cron.errors import AwaCronError

if TYPE_CHECKING:
    from awa_cron.insight.views import LeaderView
    from awa_cron.model import Queue, StoredSchedule
    from awa_cron.operating.figures import Figures
    from awa_cron.ui.desk import Desk

PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


async def metrics(desk: Desk) -> Response:
    """Return the numbers as Prometheus reads them.

    Raises:
        AwaCronError: The database cannot be asked.
    """
    client = await desk.client()
    leader, figures = await client.leadership(), await client.figures()
    queues, listed = await client.list_queues(), await desk.listed()
    lines = [*_schedules(listed), *_leader(leader), *_fires(figures), *_queues(figures, queues)]
    return PlainTextResponse("\n".join(lines) + "\n", media_type=PROMETHEUS)


async def health(desk: Desk) -> Response:
    """Return whether fires can become jobs just now: the database answers, and somebody leads. It names nobody."""
    try:
        client = await desk.client()
        leader, figures = await client.leadership(), await client.figures()
    except AwaCronError as error:
        said = {"status": "no database", "database": False, "reason": type(error).__name__}
        return JSONResponse(said, HTTPStatus.SERVICE_UNAVAILABLE)
    healthy = leader.leads is not False
    return JSONResponse(
        {
            "status": "ok" if healthy else "no leader",
            "database": True,
            "leader": leader.leads,  # null where this role may not see it
            "leader_age_s": None if leader.since is None else (leader.now - leader.since).total_seconds(),
            "last_enqueue_age_s": (
                None if leader.enqueued_at is None else (leader.now - leader.enqueued_at).total_seconds()
            ),
            "overdue_s": figures.overdue_s or 0,
            "last_event_age_s": (
                None if figures.last_event_at is None else (figures.now - figures.last_event_at).total_seconds()
            ),
        },
        HTTPStatus.OK if healthy else HTTPStatus.SERVICE_UNAVAILABLE,
    )


def _schedules(listed: list[StoredSchedule]) -> Iterable[str]:
    broken = sum(each.broken is not None for each in listed)
    paused = sum(each.broken is None and each.paused_at is not None for each in listed)
    counts = {"active": len(listed) - broken - paused, "paused": paused, "broken": broken}
    yield from _gauge("schedules", "Stored schedules", (({"state": state}, n) for state, n in counts.items()))


def _leader(leader: LeaderView) -> Iterable[str]:
    if leader.leads is not None:
        yield from _gauge("leader", "Whether somebody leads", [({}, int(leader.leads))])
    if leader.since is not None:
        yield from _gauge(
            "leader_elected_timestamp_seconds", "When it was elected", [({}, leader.since.timestamp())]
        )
    if leader.enqueued_at is not None:
        at = leader.enqueued_at.timestamp()
        yield from _gauge("last_enqueue_timestamp_seconds", "When a fire last became a job", [({}, at)])


def _fires(figures: Figures) -> Iterable[str]:
    yield from _gauge("recent_fires", "Fires that became jobs in the last 5 minutes", [({}, figures.fires)])
    if figures.lateness_s is not None:
        quantiles = zip(("0.5", "0.99", "1"), figures.lateness_s, strict=True)
        samples = (({"quantile": quantile}, value) for quantile, value in quantiles)
        yield from _gauge("recent_lateness_seconds", "From their instants to their jobs", samples)
    yield from _gauge(
        "overdue_schedules", "Schedules whose next fire is due and no job yet", [({}, figures.overdue)]
    )
    yield from _gauge(
        "overdue_seconds", "For how long the first of them has been due", [({}, figures.overdue_s or 0)]
    )
    yield from _gauge("last_event_id", "How far the event log has come", [({}, figures.last_event_id)])


def _queues(figures: Figures, queues: list[Queue]) -> Iterable[str]:
    counts = (({"queue": each.queue, "state": each.state}, each.jobs) for each in figures.depths)
    yield from _gauge("queue_jobs", "Unfinished and dead jobs", counts)
    waits = (({"queue": each.queue}, each.oldest_s) for each in figures.depths if each.state == "available")
    yield from _gauge("queue_oldest_seconds", "For how long the oldest available job has waited", waits)
    paused = (({"queue": each.name}, int(each.paused_at is not None)) for each in queues)
    yield from _gauge("queue_paused", "Whether the queue hands out no jobs", paused)


def _gauge(name: str, told: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Iterable[str]:
    yield f"# HELP awa_cron_{name} {told}."
    yield f"# TYPE awa_cron_{name} gauge"
    for labels, value in samples:
        inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"awa_cron_{name}{{{inner}}} {value}" if inner else f"awa_cron_{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
