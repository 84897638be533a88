"""``awa-cron purge``: delete what is old."""

from __future__ import annotations

import re

import click

from awa_cron.cli import output
from awa_cron.cli.failure import Misused
from awa_cron.cli.operate import by_option
from awa_cron.cli.target import Target, ask, database_options, json_option, schema_option

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
MOST_S = 9_999_999_999
"""Some 300 years: what was before can still be told in a date."""


@click.command()
@click.option("--older-than", required=True, metavar="AGE", help="Like 30d; units are s, m, h, d, w.")
@click.option("--jobs", is_flag=True, help="Completed and cancelled jobs; not the dead.")
@click.option("--events", is_flag=True, help="Events; verify and explain then begin later.")
@click.option("--dry-run", is_flag=True, help="Only count.")
@by_option
@database_options
@schema_option
@json_option
def purge(
    target: Target,
    older_than: str,
    by: str | None,
    *,
    jobs: bool,
    events: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete old jobs that are done with, or old events, or both; in small steps, beside running instances."""
    if not jobs and not events:
        raise Misused("say what: --jobs, --events, or both")
    age_s = seconds_of(older_than)
    purged = ask(target, lambda client: client.purge(age_s, jobs=jobs, events=events, dry_run=dry_run, by=by))
    if as_json:
        output.json_of(purged)
        return
    parts = [f"{purged.jobs} jobs"] * jobs + [f"{purged.events} events"] * events
    click.echo(f"{'would purge' if dry_run else 'purged'} {' and '.join(parts)}")


def seconds_of(age: str) -> float:
    """Return an age in seconds.

    Raises:
        Misused: It is no number with a unit, or 0, or older than anything.
    """
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhdw])", age.strip())
    seconds = 0.0 if found is None else float(found[1]) * SECONDS[found[2]]
    if not 0 < seconds <= MOST_S:
        raise Misused(
            f"--older-than is {age!r}: give a number above 0 with a unit s, m, h, d or w, as in 30d;"
            f" {MOST_S}s at most"
        )
    return seconds
