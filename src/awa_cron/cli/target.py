"""Which database a verb works on: the options, and how they become a connection string."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from awa_cron import embedded
from awa_cron.cli.failure import Misused
from awa_cron.client import Client

Answer = TypeVar("Answer")
Verb = TypeVar("Verb", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A database and a schema in it, as the command line names them.

    Attributes:
        dsn: A connection string.
        embedded: The data directory of an embedded server, which then is meant instead.
        schema: The schema's name.
    """

    dsn: str | None
    embedded: Path | None
    schema: str

    @contextmanager
    def connection_string(self, *, make: bool = False) -> Iterator[str]:
        """Give the connection string; an embedded server runs as long as the context.

        Args:
            make: Whether an embedded server's directory is made where there is none.

        Raises:
            Misused: No database is named, or the directory holds no server's data.
        """
        if self.embedded is not None:
            if not make and not (self.embedded.expanduser() / "PG_VERSION").exists():
                raise Misused(
                    f"{str(self.embedded)!r} holds no embedded server's data: "
                    "`awa-cron migrate --embedded DIR` makes it"
                )
            with embedded.server(self.embedded) as dsn:
                yield dsn
        elif self.dsn is not None:
            yield self.dsn
        else:
            raise Misused("no database is named: give --dsn, set AWA_CRON_DSN, or give --embedded DIR")


def database_options(verb: Verb) -> Verb:
    """Add --dsn and --embedded to a verb; it gets a ``Target``."""

    @click.option("--dsn", envvar="AWA_CRON_DSN", show_envvar=True, help="Connection string of the database.")
    @click.option(
        "--embedded",
        "directory",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Use an embedded Postgres whose data is in DIR.",
    )
    @functools.wraps(verb)
    def with_target(
        *args: Any, dsn: str | None, directory: Path | None, schema: str | None = None, **options: Any
    ) -> Any:
        if dsn is not None and directory is not None:
            if click.get_current_context().get_parameter_source("dsn") is ParameterSource.COMMANDLINE:
                raise Misused("--dsn and --embedded exclude each other: give one")
            dsn = None
        return verb(*args, target=Target(dsn=dsn, embedded=directory, schema=schema or "awa"), **options)

    return with_target  # type: ignore[return-value]


def schema_option(verb: Verb) -> Verb:
    """Add --schema to a verb that has ``database_options``."""
    return click.option(
        "--schema", metavar="NAME", envvar="AWA_CRON_SCHEMA", show_envvar=True, help="Schema; default: awa."
    )(verb)


def json_option(verb: Verb) -> Verb:
    """Add --json to a verb."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")(verb)


def ask(target: Target, question: Callable[[Client], Awaitable[Answer]]) -> Answer:
    """Connect, ask one thing, disconnect.

    Raises:
        AwaCronError: What the client raises.
    """

    async def connected(dsn: str) -> Answer:
        async with Client(dsn, schema=target.schema) as client:
            return await question(client)

    with target.connection_string() as dsn:
        return asyncio.run(connected(dsn))
