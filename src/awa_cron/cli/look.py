"""The verbs that only look: list, show, next, history."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import click

from awa_cron import cronexpr
from awa_cron.cli import arguments, output
from awa_cron.cli.target import Target, ask, database_options, json_option, schema_option
from awa_cron.client import Client
from awa_cron.errors import AwaCronError
from awa_cron.model import Event, StoredSchedule

FIRES_SHOWN = 5


@click.command("list")
@database_options
@schema_option
@json_option
def list_(target: Target, *, as_json: bool) -> None:
    """List the stored schedules, those of every deployment."""
    found = ask(target, Client.list_schedules)
    if as_json:
        output.json_of([_described(each, 1) for each in found])
        return
    if not found:
        click.echo("no schedules: a process that runs (`awa-cron run`) stores those that it registers")
        return
    output.table(
        ("name", "expression", "zone", "queue", "policy", "last fire", "next fire", "status"),
        [
            (
                each.name,
                each.cron_expr,
                each.timezone,
                each.queue,
                each.missed_fire_policy,
                output.moment(each.last_enqueued_at),
                output.moment(next(iter(_coming(each, 1)), None)),
                _status(each),
            )
            for each in found
        ],
    )


@click.command()
@click.argument("name")
@database_options
@schema_option
@json_option
def show(target: Target, name: str, *, as_json: bool) -> None:
    """Show one schedule and its next fires."""
    found = ask(target, lambda client: client.get_schedule(name))
    if as_json:
        output.json_of(_described(found, FIRES_SHOWN))
        return
    output.fields(
        {
            "name": found.name,
            "status": _status(found),
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
            "counts from": output.moment(found.anchored_at),
            "created": output.moment(found.created_at),
            "updated": output.moment(found.updated_at),
        }
    )
    for fire in _coming(found, FIRES_SHOWN):
        click.echo(f"next fire     {_in_zone(fire, found.timezone)}")


@click.command("next")
@click.argument("expression", metavar="EXPR")
@click.option("--timezone", default="UTC", show_default=True, help="IANA name of the zone it is read in.")
@click.option("--after", metavar="TIME", help="ISO 8601 with an offset, such as 2026-03-29T00:00Z; default: now.")
@click.option("--count", type=click.IntRange(1, 10_000), default=FIRES_SHOWN, show_default=True)
@json_option
def next_(expression: str, timezone: str, after: str | None, count: int, *, as_json: bool) -> None:
    """Print the next fires of a cron expression; needs no database.

    Quote the expression, so that the shell leaves its stars alone: awa-cron next '0 9 * * MON-FRI'.
    """
    start = datetime.now(UTC) if after is None else arguments.time_of("--after", after)
    fires = cronexpr.next_fires(expression, timezone, after=start, count=count)
    if as_json:
        zone = cronexpr.zone(timezone)
        output.json_of([{"fire": fire, "local": fire.astimezone(zone).isoformat()} for fire in fires])
        return
    for fire in fires:
        click.echo(_in_zone(fire, timezone))


@click.command()
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, help="The most events.")
@database_options
@schema_option
@json_option
def history(target: Target, name: str | None, limit: int, *, as_json: bool) -> None:
    """Show what happened, newest first.

    To one schedule, also a removed one; without NAME, to all schedules and the leadership.
    """

    async def question(client: Client) -> list[Event]:
        events = await client.history(name, limit=limit)
        if not events and name is not None:
            await client.get_schedule(name)
        return events

    events = ask(target, question)
    if as_json:
        output.json_of(events)
        return
    if not events:
        click.echo("nothing has happened yet")
        return
    output.table(
        ("time", "action", "schedule", "by", "what"),
        [
            (output.moment(each.recorded_at), each.action, each.name or "-", each.actor or "-", _told(each))
            for each in events
        ],
    )


def _described(schedule: StoredSchedule, count: int) -> dict[str, object]:
    values = {field.name: getattr(schedule, field.name) for field in dataclasses.fields(schedule)}
    return values | {"next_fires": _coming(schedule, count)}


def _coming(schedule: StoredSchedule, count: int) -> list[datetime]:
    """Return the next fires by this machine's clock: for reading only. None for what does not fire."""
    if schedule.broken is not None or schedule.paused_at is not None:
        return []
    after = max(datetime.now(UTC), schedule.anchored_at)
    try:
        return cronexpr.next_fires(schedule.cron_expr, schedule.timezone, after=after, count=count)
    except AwaCronError:
        return []


def _status(schedule: StoredSchedule) -> str:
    said = []
    if schedule.broken is not None:
        said.append(schedule.broken)
    if schedule.paused_at is not None:
        label = "" if schedule.paused_by is None else f" by {schedule.paused_by}"
        said.append(f"paused{label} since {output.moment(schedule.paused_at)}")
    if schedule.queue_paused:
        said.append("queue paused")
    return "; ".join(said) or "active"


def _told(event: Event) -> str:
    said = []
    if event.fires:
        first, *rest = event.fires
        upto = f" to {output.moment(rest[-1])}" if rest else ""
        said.append(f"{len(event.fires)} fire{'s' if rest else ''}: {output.moment(first)}{upto}")
    if event.job_ids:
        shown = ", ".join(map(str, event.job_ids[:3])) + (", …" if len(event.job_ids) > 3 else "")
        said.append(f"job {shown}")
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


def _in_zone(fire: datetime, timezone: str) -> str:
    local = fire.astimezone(cronexpr.zone(timezone))
    return f"{local:%a %Y-%m-%d %H:%M:%S %Z (%z)}  {output.moment(fire)}"
