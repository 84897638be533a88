"""What each page shows: the client's answers, cut to a page and put into a template's terms."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from starlette.requests import Request

from awa_cron import cronexpr
from awa_cron.client import Client
from awa_cron.errors import InvalidArgument, ScheduleNotFound
from awa_cron.insight.reasons import Explanation
from awa_cron.insight.views import LeaderView, ScheduleView
from awa_cron.model import Event, StoredSchedule
from awa_cron.operating.figures import DEAD_COUNTED
from awa_cron.ui import timeline, words
from awa_cron.ui.desk import Desk, Reader

ROWS: Final = 50
FIRES: Final = 5
JOBS: Final = 25
EVENTS: Final = 30
DEAD: Final = 100
EVENTS_EACH: Final = 400
"""Events read of each schedule of a list."""
EVENTS_OF_ONE: Final = 5_000
BARS: Final = 120
SPANS: Final = {
    "10m": timedelta(minutes=10),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "1d": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
FILTERS: Final = ("all", "active", "paused", "broken", "queue-paused", "overdue")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shown:
    """A page.

    Attributes:
        template: What it is made with.
        now: The database's clock.
        context: What the template needs besides.
    """

    template: str
    now: datetime
    context: dict[str, Any]


async def schedules(desk: Desk, reader: Reader, request: Request) -> Shown:
    """Show the schedules: some of them, a page at a time."""
    if "name" in request.query_params:
        return await schedule(desk, reader, request)
    client = await desk.client()
    sought = request.query_params.get("q", "").strip()
    state = request.query_params.get("state", "all")
    if state not in FILTERS:
        raise InvalidArgument(f"state is {state!r}: it must be one of {', '.join(FILTERS)}")
    half_name, half = _half(request, "1h")
    leader = await client.leadership()
    now = leader.now
    listed = await desk.listed()
    found = [each.name for each in listed if _fits(each, sought) and _in_state(each, state, now)]
    pages = max(1, -(-len(found) // ROWS))
    page = min(_page(request), pages)
    on_page = await _views(client, found[(page - 1) * ROWS : page * ROWS])
    events = await client.recent_events([view.name for view in on_page], since=now - half, limit_each=EVENTS_EACH)
    lines = [
        timeline.timeline_of(
            view.schedule, events[view.name], now=now, half=half, complete=len(events[view.name]) < EVENTS_EACH
        )
        for view in on_page
    ]
    return Shown(
        template="schedules.html",
        now=now,
        context=await _common(client, leader, "schedules", [view.name for view in on_page])
        | {
            "rows": [
                {"view": view, "line": line, "late_s": _late(view, events[view.name]), "fires": _fires(view)}
                for view, line in zip(on_page, lines, strict=True)
            ],
            "first": (page - 1) * ROWS + 1,
            "total": len(listed),
            "found": len(found),
            "counts": {name: sum(_in_state(each, name, now) for each in listed) for name in FILTERS},
            "sought": sought,
            "state": state,
            "page": page,
            "pages": pages,
            "span": half_name,
            "half": half,
            "spans": SPANS,
            "columns": timeline.together(lines, BARS),
            "bars": BARS,
        },
    )


async def schedule(desk: Desk, _reader: Reader, request: Request) -> Shown:
    """Show one schedule: what it is, what it did, what it will do."""
    client = await desk.client()
    name = request.path_params.get("name") or request.query_params.get("name", "")
    leader = await client.leadership()
    now = leader.now
    try:
        view = await client.view(name, next_fires=FIRES)
    except ScheduleNotFound:
        return await _removed(client, leader, name)
    half_name, half = _half(request, _fitting(view))
    asked = request.query_params.get("ask", "")
    if asked in {"resume", "remove", "cancel", "pause"}:
        preview = await client.preview_resume(name) if asked == "resume" else None
        return Shown(
            template="ask.html",
            now=now,
            context=await _common(client, leader, "schedules", [name])
            | {"view": view, "ask": asked, "preview": preview},
        )
    events = (await client.recent_events([name], since=now - half, limit_each=EVENTS_OF_ONE))[name]
    why, why_failed = await _explained(client, view, request.query_params.get("at"))
    return Shown(
        template="schedule.html",
        now=now,
        context=await _common(client, leader, "schedules", [name])
        | {
            "view": view,
            "fires": _fires(view),
            "line": timeline.timeline_of(
                view.schedule, events, now=now, half=half, complete=len(events) < EVENTS_OF_ONE
            ),
            "late_s": _late(view, events),
            "events": await client.history(name, limit=EVENTS),
            "jobs": await client.jobs_of(name, limit=JOBS),
            "span": half_name,
            "half": half,
            "spans": SPANS,
            "at": request.query_params.get("at", ""),
            "why": why,
            "why_failed": why_failed,
        },
    )


async def _removed(client: Client, leader: LeaderView, name: str) -> Shown:
    events = await client.history(name, limit=EVENTS)
    if not events:
        raise ScheduleNotFound(name)
    return Shown(
        template="removed.html",
        now=leader.now,
        context=await _common(client, leader, "schedules") | {"name": name, "events": events},
    )


async def queues(desk: Desk, _reader: Reader, _request: Request) -> Shown:
    """Show the queues."""
    client = await desk.client()
    leader = await client.leadership()
    return Shown(
        template="queues.html",
        now=leader.now,
        context=await _common(client, leader, "queues") | {"queues": await client.list_queues()},
    )


async def dead(desk: Desk, _reader: Reader, request: Request) -> Shown:
    """Show the dead jobs."""
    client = await desk.client()
    leader = await client.leadership()
    queue = request.query_params.get("queue") or None
    return Shown(
        template="dead.html",
        now=leader.now,
        context=await _common(client, leader, "dead")
        | {"jobs": await client.list_dead(queue=queue, limit=DEAD), "queue": queue, "most": DEAD},
    )


async def history(desk: Desk, _reader: Reader, _request: Request) -> Shown:
    """Show what happened to all schedules and the leadership."""
    client = await desk.client()
    leader = await client.leadership()
    return Shown(
        template="history.html",
        now=leader.now,
        context=await _common(client, leader, "history") | {"events": await client.history(limit=4 * EVENTS)},
    )


async def _explained(client: Client, view: ScheduleView, at: str | None) -> tuple[list[Explanation], str]:
    """Return why an instant did or did not become a job, or what is wrong with the question."""
    if at is None:
        return [], ""
    try:
        return await client.explain(view.name, _instant(view, at.strip())), ""
    except InvalidArgument as error:
        return [], str(error)


def _instant(view: ScheduleView, text: str) -> datetime | None:
    """Return the instant that a reader means; without an offset, on the wall clock of the schedule's zone."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        zone = cronexpr.zone(view.schedule.timezone)
    except ValueError:
        raise InvalidArgument(f"{text!r} is no time: write 2026-03-29 09:00, or with an offset") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=zone)


async def _common(client: Client, leader: LeaderView, here: str, names: Sequence[str] = ()) -> dict[str, Any]:
    """Return what every page shows, and what some schedules' newest jobs came to."""
    dying = await client.dying(names)
    dead = f"{DEAD_COUNTED:,}+" if dying.dead > DEAD_COUNTED else f"{dying.dead:,}" if dying.dead else ""
    return {"leader": leader, "here": here, "schema": client.schema.name, "dead": dead, "dying": dying.in_a_row}


def _half(request: Request, default: str) -> tuple[str, timedelta]:
    name = request.query_params.get("span", default)
    if name not in SPANS:
        raise InvalidArgument(f"span is {name!r}: it must be one of {', '.join(SPANS)}")
    return name, SPANS[name]


def _fitting(view: ScheduleView) -> str:
    """Return how far a timeline has to reach so that a dozen fires are on each side."""
    stored = view.schedule
    if stored.broken is not None:
        return "1d"
    fires = cronexpr.next_fires(stored.cron_expr, stored.timezone, after=view.now, count=FIRES)
    if len(fires) < 2:
        return "1d"
    wanted = 12 * (fires[-1] - fires[0]) / (len(fires) - 1)
    return next((name for name, half in SPANS.items() if half >= wanted), "30d")


def _page(request: Request) -> int:
    text = request.query_params.get("page", "1")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 9 else 1


async def _views(client: Client, names: Sequence[str]) -> list[ScheduleView]:
    """Return how some schedules stand; without those that have just been removed."""
    asked = await asyncio.gather(*(client.view(name, next_fires=FIRES) for name in names), return_exceptions=True)
    views = []
    for answer in asked:
        if isinstance(answer, ScheduleView):
            views.append(answer)
        elif not isinstance(answer, ScheduleNotFound):
            raise answer
    return views


def _fits(stored: StoredSchedule, sought: str) -> bool:
    """Tell whether every word is somewhere in a schedule's name, expression, zone, kind, queue or tags."""
    text = " ".join(
        (stored.name, stored.cron_expr, stored.timezone, stored.kind, stored.queue, *stored.tags)
    ).casefold()
    return all(word in text for word in sought.casefold().split())


def _in_state(stored: StoredSchedule, state: str, now: datetime) -> bool:
    match state:
        case "broken":
            return stored.broken is not None
        case "paused":
            return stored.paused_at is not None and stored.broken is None
        case "active":
            return stored.paused_at is None and stored.broken is None
        case "queue-paused":
            return stored.queue_paused
        case "overdue":
            due = words.finite(stored.next_fire_at)
            return stored.paused_at is None and due is not None and now - due > timeline.GRACE
        case _:
            return True


def _late(view: ScheduleView, events: Sequence[Event]) -> float | None:
    """Return how late the newest fire became a job, if the events that were read tell."""
    for event in events:
        ours = event.action == "atomic_enqueue" and event.fires and event.fires[-1] == view.last_fire
        if ours and words.finite(event.fires[-1]) and words.finite(event.clock):
            return max(0.0, (event.clock - event.fires[-1]).total_seconds())
    return None


def _fires(view: ScheduleView) -> list[dict[str, Any]]:
    zone = None if view.schedule.broken else cronexpr.zone(view.schedule.timezone)
    return [{"coming": each, "zone": zone or UTC} for each in view.next_fires]
