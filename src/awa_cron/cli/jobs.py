"""``awa-cron queue``: which queues hand out jobs. ``awa-cron dead``: jobs that have used up their attempts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from awa_cron.cli import arguments, names, output
from awa_cron.cli.failure import Misused
from awa_cron.cli.operate import by_option, report
from awa_cron.cli.target import Target, ask, database_options, json_option, schema_option
from awa_cron.client import Client
from awa_cron.model import DeadJob, Queue

Verb = TypeVar("Verb", bound=Callable[..., Any])


@click.group()
def queue() -> None:
    """List, pause and resume queues."""


@queue.command("list")
@database_options
@schema_option
@json_option
def queue_list(target: Target, *, as_json: bool) -> None:
    """List the queues that a schedule, an unfinished or dead job, or a pause names."""
    found = ask(target, Client.list_queues)
    if as_json:
        output.json_of(found)
        return
    if not found:
        click.echo("no queues: no schedule or job names one")
        return
    output.table(
        ("queue", "schedules", "waiting", "running", "dead", "status"),
        [
            (each.name, str(each.schedules), str(each.waiting), str(each.running), str(each.dead), _status(each))
            for each in found
        ],
    )


@queue.command("pause")
@click.argument("name", metavar="QUEUE", shell_complete=names.of("queues"))
@by_option
@database_options
@schema_option
@json_option
def queue_pause(target: Target, name: str, by: str | None, *, as_json: bool) -> None:
    """Hand out no more jobs of a queue. They go on being made, and what runs goes on."""
    changed = ask(target, lambda client: client.pause_queue(name, by=by))
    report(name, changed, "paused", "was paused already; its label stays", as_json=as_json)


@queue.command("resume")
@click.argument("name", metavar="QUEUE", shell_complete=names.of("queues"))
@by_option
@database_options
@schema_option
@json_option
def queue_resume(target: Target, name: str, by: str | None, *, as_json: bool) -> None:
    """Hand out a queue's jobs again, in their order."""
    changed = ask(target, lambda client: client.resume_queue(name, by=by))
    report(name, changed, "resumed", "was not paused", as_json=as_json)


@click.group()
def dead() -> None:
    """List, retry and purge jobs that have used up their attempts."""


def of_some(verb: Verb) -> Verb:
    """Add the options that name dead jobs by what they are."""
    for option in (
        click.option("--queue", metavar="QUEUE", help="Only of this queue."),
        click.option("--kind", metavar="KIND", help="Only of this kind."),
        click.option("--schedule", "cron_name", metavar="NAME", help="Only of this schedule."),
    ):
        verb = option(verb)
    return verb


def chosen(verb: Verb) -> Verb:
    """Add what the verbs that act on dead jobs share: IDs, filters, --all, --by."""
    for option in (
        json_option,
        schema_option,
        database_options,
        by_option,
        click.option("--all", "everything", is_flag=True, help="All dead jobs."),
        click.option("--before", metavar="TIME", help="Only those that died before; ISO 8601 with an offset."),
        of_some,
        click.argument("ids", nargs=-1, type=click.IntRange(0, 2**63 - 1), metavar="[ID]..."),
    ):
        verb = option(verb)
    return verb


@dead.command("list")
@of_some
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, help="The most jobs.")
@database_options
@schema_option
@json_option
def dead_list(
    target: Target, cron_name: str | None, kind: str | None, queue: str | None, limit: int, *, as_json: bool
) -> None:
    """List dead jobs, the latest first, each with its last error; --json has them all."""
    found = ask(target, lambda client: client.list_dead(cron_name=cron_name, kind=kind, queue=queue, limit=limit))
    if as_json:
        output.json_of(found)
        return
    if not found:
        click.echo("no dead jobs")
        return
    output.table(
        ("id", "died", "kind", "queue", "schedule", "attempts", "last error"),
        [
            (
                str(each.id),
                output.moment(each.died_at),
                each.kind,
                each.queue,
                str(each.metadata.get("cron_name", "-")),
                str(each.attempt),
                _last_error(each),
            )
            for each in found
        ],
    )


@dead.command("retry")
@click.option(
    "--attempts", type=click.IntRange(1, 1000), default=1, show_default=True, help="Attempts that each gets."
)
@chosen
def dead_retry(
    target: Target,
    ids: tuple[int, ...],
    by: str | None,
    attempts: int,
    *,
    everything: bool,
    as_json: bool,
    **which: str | None,
) -> None:
    """Let dead jobs wait in their queues again: those named by ID, those that fit the filters, or --all."""
    selection = _selection(ids, which, everything=everything)
    done = ask(target, lambda client: client.retry_dead(**selection, attempts=attempts, by=by))
    _report(done, "retried", as_json=as_json)


@dead.command("purge")
@chosen
def dead_purge(
    target: Target,
    ids: tuple[int, ...],
    by: str | None,
    *,
    everything: bool,
    as_json: bool,
    **which: str | None,
) -> None:
    """Delete dead jobs for good: those named by ID, those that fit the filters, or --all."""
    selection = _selection(ids, which, everything=everything)
    done = ask(target, lambda client: client.purge_dead(**selection, by=by))
    _report(done, "purged", as_json=as_json)


def _selection(ids: tuple[int, ...], which: dict[str, str | None], *, everything: bool) -> dict[str, Any]:
    named = bool(ids) or any(value is not None for value in which.values())
    if named is everything:
        raise Misused("name the jobs by ID, or by --schedule, --kind, --queue, --before; or give --all alone")
    before = which["before"]
    return {
        **which,
        "everything": everything,
        "ids": ids or None,
        "before": None if before is None else arguments.time_of("--before", before),
    }


def _report(done: list[int], what: str, *, as_json: bool) -> None:
    if as_json:
        output.json_of({what: done})
    else:
        click.echo(f"{what} {len(done)} job{'s' * (len(done) != 1)}")


def _status(each: Queue) -> str:
    if each.paused_at is None:
        return "active"
    label = "" if each.paused_by is None else f" by {each.paused_by}"
    return f"paused{label} since {output.moment(each.paused_at)}"


def _last_error(job: DeadJob) -> str:
    error = job.errors[-1].get("error") if job.errors else None
    text = " ".join(str(error or "-").split())
    return text if len(text) <= 100 else f"{text[:100]}…"
