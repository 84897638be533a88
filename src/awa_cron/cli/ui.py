"""``awa-cron ui``: the page for operators."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import webbrowser
from typing import TYPE_CHECKING

import click

from awa_cron.cli.failure import Failed, Misused
from awa_cron.cli.operate import login_name
from awa_cron.cli.target import Target, database_options, schema_option
from awa_cron.sql import Schema

if TYPE_CHECKING:
    from awa_cron.ui.security import Rules

EXTRA = {"starlette", "jinja2", "uvicorn"}
DEFAULT_PORT = 8377


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=DEFAULT_PORT,
    show_default=True,
    help="0 for any that is free.",
)
@click.option("--read-only", is_flag=True, help="Show everything, change nothing; the role awa_read is enough.")
@click.option(
    "--token",
    envvar="AWA_CRON_UI_TOKEN",
    show_envvar=True,
    help="What opens the page; default: a new one each start. Command lines can be seen: set the variable.",
)
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="Another name of this page, such as a proxy's."
)
@click.option("--open", "open_it", is_flag=True, help="Open it in the browser.")
@database_options
@schema_option
def ui(
    target: Target,
    host: str,
    port: int,
    token: str | None,
    hosts: tuple[str, ...],
    *,
    read_only: bool,
    open_it: bool,
) -> None:
    """Serve the page for operators, until stopped.

    Schedules, queues and dead jobs to look at and act on, /metrics for Prometheus and /health. It prints one link,
    which holds the token unless you gave it. Anywhere but on this machine's own address it wants an
    explicit --token.
    """
    try:
        from awa_cron.ui import security, server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        raise Failed(f"the page needs {package}, which is not installed: pip install 'awa-cron[ui]'") from error
    schema = Schema(target.schema)
    loopback = security.is_loopback(host)
    if not loopback and token is None:
        raise Misused(
            f"--host {host} can be reached by others: give --token too (or set AWA_CRON_UI_TOKEN), or listen "
            "on 127.0.0.1"
        )
    secret = security.usable(token or secrets.token_urlsafe(24))
    with target.connection_string() as dsn, server.bound(host, port) as listening:
        rules = security.Rules(
            token=secret,
            port=listening.getsockname()[1],
            hosts=security.LOOPBACK_NAMES | {host.lower(), *(name.lower() for name in hosts)},
            any_address=host in {"0.0.0.0", "::"},  # noqa: S104
            open_figures=loopback,
            read_only=read_only,
        )
        link = _link(host, rules, with_token=token is None)

        def ready() -> None:
            click.echo(link)
            if open_it:
                webbrowser.open(_link(host, rules, with_token=True))

        asyncio.run(server.serve(listening, dsn, schema.name, rules, login=login_name() or "", ready=ready))


def _link(host: str, rules: Rules, *, with_token: bool) -> str:
    """Return where the page is; whoever reads the terminal, or its log, is not shown a token that the user gave."""
    try:
        address = ipaddress.ip_address(host)
        name = "localhost" if address.is_unspecified else f"[{host}]" if address.version == 6 else host
    except ValueError:
        name = host
    return f"http://{name}:{rules.port}/cron" + (f"?token={rules.token}" if with_token else "")
