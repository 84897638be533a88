"""The verbs by which an operator acts on a schedule: pause, resume, trigger, cancel, remove."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from typing import Any, TypeVar

import click

from awa_cron.cli import names, output
from awa_cron.cli.target import Target, ask, database_options, json_option, schema_option
from awa_cron.insight.resuming import ResumePreview
from awa_cron.model import MissedFirePolicy

Verb = TypeVar("Verb", bound=Callable[..., Any])


def login_name() -> str | None:
    """Return who is logged in, if the system tells."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None


def by_option(verb: Verb) -> Verb:
    """Add --by."""
    return click.option("--by", default=login_name, help="Label in the history; default: your login name.")(verb)


def on_a_schedule(verb: Verb) -> Verb:
    """Add what these verbs share: NAME, --by, the database, --json."""
    decorators: list[Callable[[Any], Any]] = [
        click.argument("name", shell_complete=names.of("schedules")),
        by_option,
        database_options,
        schema_option,
        json_option,
    ]
    decorated: Any = verb
    for decorator in reversed(decorators):
        decorated = decorator(decorated)
    return decorated  # type: ignore[no-any-return]


@click.command()
@on_a_schedule
def pause(target: Target, name: str, by: str | None, *, as_json: bool) -> None:
    """Stop a schedule's automatic fires. Its jobs go on."""
    changed = ask(target, lambda client: client.pause(name, by=by))
    report(name, changed, "paused", "was paused already; its label stays", as_json=as_json)


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would become of the fires that it missed.")
@on_a_schedule
def resume(target: Target, name: str, by: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Let a schedule fire again. Its policy decides about the fires it missed."""
    if not dry_run:
        changed = ask(target, lambda client: client.resume(name, by=by))
        report(name, changed, "resumed", "was not paused", as_json=as_json)
        return
    told = ask(target, lambda client: client.preview_resume(name))
    if as_json:
        output.json_of(told)
    else:
        click.echo(output.printable(f"{name}: {_foretold(told)}"))


def _foretold(told: ResumePreview) -> str:
    """Return what a resume would do, in a sentence."""
    when = "a resume now" if told.paused else "it is not paused; the next pass"
    if told.broken is not None:
        return f"{when} makes no job: {told.broken}"
    if not told.fires:
        return f"{when} makes no job: nothing is due"
    more = "" if told.counted_all else "more than "
    if told.policy == MissedFirePolicy.COALESCE:
        said = f"{when} makes 1 job, for {output.moment(told.last)}"
        stands = f"; it stands for {more}{told.coalesced:,} due before it, the oldest {output.moment(told.first)}"
        return said + stands if told.coalesced else said
    jobs = f"{more}{told.jobs:,} job{'s' * (told.jobs != 1)}"
    passes = f"{more}{told.passes:,} pass{'es' * (told.passes != 1)} of at most {told.pass_limit}"
    return f"{when} makes {jobs} in {passes}, from {output.moment(told.first)} to {output.moment(told.last)}"


@click.command()
@on_a_schedule
def trigger(target: Target, name: str, by: str | None, *, as_json: bool) -> None:
    """Insert a job of a schedule now, paused or not. Its own fires are not touched."""
    job = ask(target, lambda client: client.trigger(name, by=by))
    if as_json:
        output.json_of(job)
    else:
        click.echo(f"job {job.id} of {output.printable(name)} waits in queue {output.printable(job.queue)}")


@click.command()
@click.option("--running", is_flag=True, help="Also those that run: their handlers are told to stop.")
@on_a_schedule
def cancel(target: Target, name: str, by: str | None, *, running: bool, as_json: bool) -> None:
    """Cancel a schedule's jobs that have not begun. The schedule itself goes on."""
    found = ask(target, lambda client: client.cancel_jobs(name, running=running, by=by))
    if as_json:
        output.json_of(found)
        return
    said = [f"{found.waiting} cancelled before they began"]
    if running:
        said.append(f"{found.signalled} cancelled while they ran, and told to stop")
    elif found.running:
        said.append(f"{found.running} run and go on (--running cancels them too)")
    click.echo(f"{output.printable(name)}: {'; '.join(said)}")


@click.command()
@on_a_schedule
def remove(target: Target, name: str, by: str | None, *, as_json: bool) -> None:
    """Delete a schedule. Its jobs stay.

    A process that still registers it brings it back at its next sync, without firing for the past.
    """
    ask(target, lambda client: client.remove(name, by=by))
    if as_json:
        output.json_of({"name": name, "removed": True})
    else:
        click.echo(f"{output.printable(name)}: removed")


def report(name: str, changed: bool, done: str, already: str, *, as_json: bool) -> None:
    """Say whether something changed."""
    if as_json:
        output.json_of({"name": name, "changed": changed})
    else:
        click.echo(f"{output.printable(name)}: {done if changed else already}")
