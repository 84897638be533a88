"""``awa-cron verify``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from awa_cron.cli import arguments, failure, output
from awa_cron.cli.target import Target, ask, database_options, json_option, schema_option
from awa_cron.errors import AwaCronError
from awa_cron.verify import Account, Finding, Verdict

SHOWN = 6
"""The most events that a line names; --json has more of them."""


@click.command()
@click.option(
    "--since", metavar="TIME", help="Only events recorded from then on; ISO 8601 with an offset. Default: all."
)
@click.option("--schedule", "name", metavar="NAME", help="Only this schedule.")
@click.option(
    "--grace",
    "grace_s",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long an instant may be due before it counts as lost or late.",
)
@click.option("--jobs-kept", is_flag=True, help="Jobs are never deleted here: one that is gone is a finding.")
@database_options
@schema_option
@json_option
def verify(
    target: Target, since: str | None, name: str | None, grace_s: float, *, jobs_kept: bool, as_json: bool
) -> None:
    """Check that what happened is a behaviour of the spec.

    The event log, the schedules and their jobs are read, in one snapshot, and nothing is written. Every due instant
    is accounted for: it became a job, a later one stands for it, a pause or an edit dropped it, or it waits. Exit
    status 1 if anything is lost, doubled, early, changed by hand or otherwise against the rules, 4 if it could not
    be checked.
    """
    start = None if since is None else arguments.time_of("--since", since)
    with _progress() as progress, _unchecked():
        verdict = ask(
            target,
            lambda client: client.verify(
                since=start, name=name, grace_s=grace_s, jobs_kept=jobs_kept, progress=progress
            ),
        )
    if as_json:
        output.json_of(verdict)
    else:
        _print(verdict, since)
    if not verdict.balances:
        sys.exit(1)


class Unchecked(click.ClickException):
    """There is no verdict."""

    exit_code = 4


@contextmanager
def _unchecked() -> Iterator[None]:
    """Tell a monitor apart what is wrong with the database's history from what is wrong with the connection."""
    try:
        yield
    except AwaCronError as error:
        if failure.status(error) is not failure.Failed:
            raise
        raise Unchecked(str(error)) from error


class _progress:  # noqa: N801 -- a context manager, used like a function
    """Shows on a terminal how many events have been checked, and wipes it away."""

    def __enter__(self) -> Callable[[int], None] | None:
        self._shown = sys.stderr.isatty()
        return self._show if self._shown else None

    def __exit__(self, *_: object) -> None:
        if self._shown:
            click.echo("\r\x1b[K", err=True, nl=False)

    @staticmethod
    def _show(events: int) -> None:
        click.echo(f"\r{events:,} events", err=True, nl=False)


def _print(verdict: Verdict, since: str | None) -> None:
    if verdict.accounts:
        output.table(
            ("schedule", "due", "jobs", "coalesced", "paused over", "dropped", "waiting", "by hand"),
            [_line(account) for account in verdict.accounts],
        )
    for finding in verdict.findings:
        click.echo(_told(finding))
    untold = verdict.findings_total - sum(finding.count for finding in verdict.findings)
    if untold:
        click.echo(f"… and {untold:,} more")
    extent = f"{verdict.events:,} events of {len(verdict.accounts):,} schedules until {output.moment(verdict.now)}"
    if verdict.balances and not verdict.events and since is not None:
        click.echo(f"{extent}: nothing was checked, for no event was recorded since {since}")
    elif verdict.balances:
        click.echo(f"{extent}: a behaviour of the spec, and every due instant is accounted for")
    else:
        click.echo(f"{extent}: {verdict.findings_total:,} finding{'s' * (verdict.findings_total != 1)}")
    if not verdict.from_start:
        click.echo("the log was not read from its beginning: what is before is taken as it is")
    if verdict.jobs_deleted:
        click.echo(
            f"{verdict.jobs_deleted:,} jobs of the log are gone, or have lost their label (--jobs-kept finds fault)"
        )


def _line(account: Account) -> tuple[str, ...]:
    numbers = (
        account.due,
        account.enqueued + account.settled,
        account.coalesced,
        account.paused,
        account.dropped + account.removed,
        account.held + account.pending,
        account.triggered,
    )
    more = "" if account.counted_all else "+"
    return (account.name, f"{numbers[0]:,}{more}", *(f"{number:,}" for number in numbers[1:]))


def _told(finding: Finding) -> str:
    events, more = finding.events[:SHOWN], ", …" * (len(finding.events) > SHOWN)
    seen = f" [events {', '.join(map(str, events))}{more}]" if events else ""
    return output.printable(f"{finding.schedule}: {finding.rule}: {finding.message}{seen}")
