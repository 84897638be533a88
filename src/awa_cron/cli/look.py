"""The verbs that only look: list, show, next, history."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import click

from awa_cron import cronexpr, preview
from awa_cron.cli import arguments, names, output
from awa_cron.cli.target import Target, ask, database_options, json_option, schema_option
from awa_cron.client import Client
from awa_cron.insight.reasons import job_fate
from awa_cron.insight.views import JobView, ScheduleView
from awa_cron.insight.wording import job_words, span
from awa_cron.model import Event

FIRES_SHOWN = 5

JOBS_LOOKED_UP = 1_000
"""The most jobs of a history that are asked for their states."""


@click.command("list")
@database_options
@schema_option
@json_option
def list_(target: Target, *, as_json: bool) -> None:
    """List the stored schedules, those of every deployment: how each stands, by the database's clock.

    "late" is how long the oldest due instant has waited for the leader.
    """
    found = ask(target, Client.overview)
    if as_json:
        output.json_of([_described(each) for each in found])
        return
    if not found:
        click.echo("no schedules: a process that runs (`awa-cron run`) stores those that it registers")
        return
    output.table(
        ("name", "expression", "zone", "queue", "policy", "last fire", "next fire", "late", "status"),
        [
            (
                each.name,
                each.schedule.cron_expr,
                each.schedule.timezone,
                each.schedule.queue,
                each.schedule.missed_fire_policy,
                output.moment(each.last_fire),
                output.moment(each.next_fire),
                span(timedelta(seconds=each.lateness_s)) if each.lateness_s else "-",
                _status(each),
            )
            for each in found
        ],
    )


@click.command()
@click.argument("name", shell_complete=names.of("schedules"))
@click.option(
    "--count", type=click.IntRange(1, 1_000), default=FIRES_SHOWN, show_default=True, help="Fires to come."
)
@click.option(
    "--jobs", "jobs_shown", type=click.IntRange(0, 10_000), default=5, show_default=True, help="The newest jobs."
)
@database_options
@schema_option
@json_option
def show(target: Target, name: str, count: int, jobs_shown: int, *, as_json: bool) -> None:
    """Show one schedule: its definition, its next fires, its newest jobs and what has become of them."""

    async def question(client: Client) -> tuple[ScheduleView, list[JobView]]:
        view = await client.view(name, next_fires=count)
        return view, await client.jobs_of(name, limit=jobs_shown) if jobs_shown else []

    view, jobs = ask(target, question)
    if as_json:
        output.json_of(_described(view) | {"jobs": jobs})
        return
    found = view.schedule
    output.fields(
        {
            "name": found.name,
            "status": _status(view),
            "expression": found.cron_expr,
            "zone": found.timezone,
            "policy": found.missed_fire_policy,
            "kind": found.kind,
            "args": output.compact(found.args),
            "queue": found.queue,
            "priority": str(found.priority),
            "max attempts": str(found.max_attempts),
            "deadline": "-" if found.deadline_s is None else f"{found.deadline_s:g} s",
            "tags": ", ".join(found.tags) or "-",
            "metadata": output.compact(found.metadata),
            "last fire": output.moment(found.last_enqueued_at),
            "due since": output.moment(view.due_since),
            "counts from": output.moment(found.anchored_at),
            "created": output.moment(found.created_at),
            "updated": output.moment(found.updated_at),
        }
    )
    for fire in view.next_fires:
        click.echo(f"next fire     {_coming(fire, found.timezone)}")
    for job in jobs:
        click.echo(output.printable(f"job           {output.moment(job.created_at)}  {job_words(job, job.id)}"))


@click.command("next")
@click.argument("expression", metavar="EXPR")
@click.option("--timezone", default="UTC", show_default=True, help="IANA name of the zone it is read in.")
@click.option("--after", metavar="TIME", help="ISO 8601 with an offset, such as 2026-03-29T00:00Z; default: now.")
@click.option(
    "--count", type=click.IntRange(1, 10_000), default=FIRES_SHOWN, show_default=True, help="How many fires."
)
@json_option
def next_(expression: str, timezone: str, after: str | None, count: int, *, as_json: bool) -> None:
    """Print the next fires of a cron expression; needs no database.

    Where a clock is changed, what that does to a fire stands beside it: moved, skipped, doubled, or the first
    copy only.

    Quote the expression, so that the shell leaves its stars alone: awa-cron next '0 9 * * MON-FRI'.
    """
    start = datetime.now(UTC) if after is None else arguments.time_of("--after", after)
    fires = preview.coming_fires(expression, timezone, after=start, count=count)
    if as_json:
        output.json_of(fires)
    else:
        for fire in fires:
            click.echo(_coming(fire, timezone))
    made = sum(each.fire is not None for each in fires)
    if made < count:
        click.echo(
            f"only {made} of {count}: no other until the year 9947, where calculation ends, or for 100 years",
            err=True,
        )


@click.command()
@click.argument("name", required=False, shell_complete=names.of("schedules"))
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, help="The most events.")
@click.option("--since", metavar="TIME", help="Only events recorded from then on; ISO 8601 with an offset.")
@database_options
@schema_option
@json_option
def history(target: Target, name: str | None, limit: int, since: str | None, *, as_json: bool) -> None:
    """Show what happened, newest first, and what has become of the jobs.

    To one schedule, also a removed one; without NAME, to all schedules and the leadership.
    """
    start = None if since is None else arguments.time_of("--since", since)

    async def question(client: Client) -> tuple[list[Event], list[JobView]]:
        events = await client.history(name, limit=limit, since=start)
        if not events and name is not None and not await client.history(name, limit=1):
            await client.get_schedule(name)
        ids = [job for event in events for job in event.job_ids]
        return events, [] if as_json else await client.get_jobs(ids[:JOBS_LOOKED_UP])

    events, jobs = ask(target, question)
    if as_json:
        output.json_of(events)
        return
    if not events:
        click.echo("nothing has happened yet" if start is None else f"nothing has happened since {since}")
        return
    fates: dict[int, str] = dict.fromkeys(
        [job for event in events for job in event.job_ids][:JOBS_LOOKED_UP], "gone"
    )
    fates |= {job.id: job_fate(job).value for job in jobs}
    output.table(
        ("time", "action", "schedule", "by", "what"),
        [
            (output.moment(each.recorded_at), each.action, each.name or "-", each.actor or "-", _told(each, fates))
            for each in events
        ],
    )


def _described(view: ScheduleView) -> dict[str, object]:
    schedule = view.schedule
    values = {field.name: getattr(schedule, field.name) for field in dataclasses.fields(schedule)}
    return values | {
        "now": view.now,
        "condition": view.condition,
        "next_fires": view.next_fires,
        "due_since": view.due_since,
        "lateness_s": view.lateness_s,
        "queue_paused_at": view.queue_paused_at,
        "queue_paused_by": view.queue_paused_by,
    }


def _status(view: ScheduleView) -> str:
    schedule, said = view.schedule, []
    if schedule.broken is not None:
        said.append(f"broken: {schedule.broken}")
    if schedule.paused_at is not None:
        said.append(f"paused{_by(schedule.paused_by)} since {output.moment(schedule.paused_at)}")
    if view.queue_paused_at is not None:
        said.append(f"queue paused{_by(view.queue_paused_by)} since {output.moment(view.queue_paused_at)}")
    return "; ".join(said) or "active"


def _by(label: str | None) -> str:
    return "" if label is None else f" by {label}"


def _told(event: Event, fates: Mapping[int, str]) -> str:
    said = []
    if event.fires:
        first, *rest = event.fires
        upto = f" to {output.moment(rest[-1])}" if rest else ""
        said.append(f"{len(event.fires)} fire{'s' if rest else ''}: {output.moment(first)}{upto}")
    if event.job_ids:
        said.append(_jobs(event.job_ids, fates))
    if event.action == "sync":
        said.append(str(event.details.get("change", "")))
        dropped = event.details.get("dropped")
        if isinstance(dropped, dict) and "count" in dropped:
            said.append(f"dropped {dropped['count']} due fires of the old definition")
    if event.action == "cancel_jobs":
        said.append(f"{event.details['waiting']} waiting, {event.details['signalled']} running")
    if event.action in {"retry_dead", "purge_dead"}:
        said.append(f"{event.details['jobs']} jobs")
    if "queue" in event.details:
        said.append(f"queue {event.details['queue']}")
    if "backend_pid" in event.details:
        said.append(f"backend {event.details['backend_pid']}")
    return "; ".join(filter(None, said))


def _jobs(ids: tuple[int, ...], fates: Mapping[int, str]) -> str:
    """Return jobs with what has become of them, the first three of many one by one."""
    if len(ids) <= 3:
        return ", ".join(f"job {job}" + (f" {fates[job]}" if job in fates else "") for job in ids)
    counts = Counter(fates[job] for job in ids if job in fates)
    told = ", ".join(f"{count} {fate}" for fate, count in counts.most_common())
    return f"jobs {ids[0]}, {ids[1]}, {ids[2]}, …" + (f" ({told})" if told else "")


def _coming(coming: preview.ComingFire, timezone: str) -> str:
    """Return one line: the zone's clock, UTC, and what is odd."""
    odd = "" if coming.oddity is None else f"  {coming.oddity}: {coming.words}"
    if coming.fire is None:
        return f"{datetime.fromisoformat(coming.local):%a %Y-%m-%d %H:%M:%S} -{odd}"
    local = coming.fire.astimezone(cronexpr.zone(timezone))
    return f"{local:%a %Y-%m-%d %H:%M:%S %Z (%z)}  {output.moment(coming.fire)}{odd}"
