"""``awa-cron explain``."""

from __future__ import annotations

from datetime import datetime

import click

from awa_cron import cronexpr, preview
from awa_cron.cli import arguments, names, output
from awa_cron.cli.target import Target, ask, database_options, json_option, schema_option
from awa_cron.client import Client
from awa_cron.errors import InvalidArgument, ScheduleNotFound
from awa_cron.insight.reasons import Explanation, Reason


@click.command()
@click.argument("name", shell_complete=names.of("schedules"))
@click.option(
    "--at",
    "text",
    metavar="TIME",
    help="ISO 8601, such as 2026-03-29T02:30Z; without an offset, local time in the schedule's zone. "
    "Default: the latest instant that was due, and the next.",
)
@database_options
@schema_option
@json_option
def explain(target: Target, name: str, text: str | None, *, as_json: bool) -> None:
    """Say why an instant did or did not become a job.

    Not due by the expression, before the schedule was registered or edited, paused, coalesced into a later one, no
    leader, or job N and what has become of that. Also of a removed schedule.
    """
    read: list[str] = []

    async def question(client: Client) -> list[Explanation]:
        if text is None:
            return await client.explain(name)
        instants = await _instants(client, name, text, read)
        return [each for instant in instants for each in await client.explain(name, instant)]

    explained = ask(target, question)
    if as_json:
        output.json_of(explained)
        return
    for line in read:
        click.echo(output.printable(line))
    for each in explained:
        _print(each)


async def _instants(client: Client, name: str, text: str, read: list[str]) -> list[datetime]:
    """Return the instants that a time names, and note how it was read."""
    value = arguments.local_or_instant("--at", text)
    if value.tzinfo is not None:
        return [value]
    timezone = await _zone(client, name)
    found = preview.reading(value, timezone)
    read.append(f"{text} is read as local time in {timezone}, the schedule's zone")
    if found.words is not None:
        read.append(found.words)
    return list(found.instants)


async def _zone(client: Client, name: str) -> str:
    try:
        timezone: object = (await client.get_schedule(name)).timezone
    except ScheduleNotFound:
        events = await client.history(name)
        if not events:
            raise
        timezone = next((each.details["timezone"] for each in events if "timezone" in each.details), None)
    try:
        cronexpr.zone(str(timezone))
    except ValueError as error:
        raise InvalidArgument(f"--at has no offset, and the schedule's zone is of no help: {error}") from None
    return str(timezone)


def _print(told: Explanation) -> None:
    where = "" if told.local is None else f" ({output.local(told.at, told.timezone)})"
    click.echo(output.printable(f"{told.name} at {output.moment(told.at)}{where}"))
    click.echo(output.printable(f"  {told.reason}: {told.sentence}"))
    for note in told.notes:
        click.echo(output.printable(f"  {note}"))
    if told.reason is Reason.NOT_A_FIRE:
        click.echo(
            f"  the fires around it: {output.moment(told.previous_fire)} and {output.moment(told.next_fire)}"
        )
