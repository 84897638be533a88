"""``awa-cron demo``."""

from __future__ import annotations

import sys

import click


@click.command()
def demo() -> None:
    """Watch leaders being killed and frozen.

    A real Postgres, three workers, six schedules, and the accounts at the end. Takes about 40 seconds and leaves
    nothing behind. Exit status 1 unless nothing was lost, nothing doubled,
    and everything explained as it was.
    """
    from awa_cron.demo import run  # noqa: PLC0415

    sys.exit(run.main())
