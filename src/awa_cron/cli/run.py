"""``awa-cron run``: one instance, until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import ExitStack
from typing import Literal

import click

from awa_cron.cli import loading, logs, stopping
from awa_cron.cli.failure import Misused
from awa_cron.cli.schema import apply
from awa_cron.cli.target import Target, database_options
from awa_cron.client import Client

log = logging.getLogger(__name__)


@click.command()
@click.argument("module_and_client", metavar="MODULE:CLIENT")
@database_options
@click.option("--migrate", is_flag=True, help="Migrate first. With --embedded that is always done.")
@click.option("--no-evaluate", is_flag=True, help="Only run jobs: take no part in syncing and leading.")
@click.option("--no-work", is_flag=True, help="Only sync and lead: run no jobs.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What a line of the log is.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
    help="The least that is logged.",
)
def run(
    module_and_client: str,
    target: Target,
    *,
    migrate: bool,
    no_evaluate: bool,
    no_work: bool,
    log_format: Literal["text", "json"],
    log_level: str,
) -> None:
    """Run a client's schedules and handlers, until stopped.

    MODULE is imported with the current directory on the path. The database is the one given here, or else the
    client's own; the schema is always the client's. SIGTERM or SIGINT stops it: the first lets running handlers
    finish, a second ends the process at once, and the jobs it leaves are run again by others.
    """
    if no_evaluate and no_work:
        raise Misused("--no-evaluate and --no-work leave nothing to do: give at most one")
    logs.configure(log_format, log_level)
    with ExitStack() as resources:
        stop = stopping.GracefulStop(last_words=resources.close)
        stop.install()
        try:
            client = loading.client(module_and_client)
            gc.freeze()  # what the module has made stays: going over it now and then would hold up the event loop
            named = target.dsn is not None or target.embedded is not None
            if migrate and not named:
                raise Misused("--migrate needs the database: give --dsn, or set AWA_CRON_DSN")
            if named:
                dsn = resources.enter_context(target.connection_string(make=True))
                if migrate or target.embedded is not None:
                    asyncio.run(apply(dsn, client.schema))
                client.connect_to(dsn)
            stop.run(_serve(client, evaluate=not no_evaluate, work=not no_work))
        except stopping.StoppedEarly:
            pass
        log.info("stopped")


async def _serve(client: Client, *, evaluate: bool, work: bool) -> None:
    async with client:
        log.info("running", extra={"actor": client.actor, "schedules": len(client.schedules)})
        await client.run_forever(evaluate=evaluate, work=work)
