"""``awa-cron migrate`` and ``awa-cron grants``."""

from __future__ import annotations

import asyncio

import asyncpg
import click

from awa_cron import migrate as migration
from awa_cron.actions import asking
from awa_cron.cli import output
from awa_cron.cli.target import Target, database_options, json_option, schema_option
from awa_cron.database import CONNECT_TIMEOUT_S
from awa_cron.errors import DatabaseError
from awa_cron.operating.address import unreached
from awa_cron.sql import DRIVER_ERRORS, Schema, told


@click.command()
@click.option("--sql", "as_sql", is_flag=True, help="Print the migration as SQL; needs no database.")
@database_options
@schema_option
@json_option
def migrate(target: Target, *, as_sql: bool, as_json: bool) -> None:
    """Create the schema, or bring it to this version.

    Any number of processes may do it at once, and as often as they like. A schema of that name that belongs to
    another system is left untouched.
    """
    schema = Schema(target.schema)
    if as_sql:
        click.echo(migration.script(schema), nl=False)
        return
    with target.connection_string(make=True) as dsn:
        applied = asyncio.run(apply(dsn, schema))
    if as_json:
        output.json_of({"schema": schema.name, "applied": applied})
    elif applied:
        click.echo(f"schema {schema.name}: applied {', '.join(map(str, applied))}")
    else:
        click.echo(f"schema {schema.name}: up to date")


@click.command()
@click.option("--prefix", default="awa", show_default=True, help="What the roles' names begin with.")
@schema_option
def grants(schema: str | None, prefix: str) -> None:
    """Print SQL for roles of least privilege: PREFIX_evaluate, PREFIX_work, PREFIX_read, PREFIX_purge.

    Needs no database: awa-cron grants | psql -v ON_ERROR_STOP=1 …; then grant them to the roles that log in. Run it
    again after each migration.
    """
    click.echo(migration.grants(Schema(schema or "awa"), prefix), nl=False)


async def apply(dsn: str, schema: Schema) -> list[int]:
    """Migrate a database.

    Returns:
        The versions applied now, ascending.

    Raises:
        SchemaMismatch: The schema belongs to another system, or to a newer version.
        DatabaseError: No connection can be made, or the server refuses.
    """
    try:
        connection = await asyncpg.connect(dsn, timeout=CONNECT_TIMEOUT_S)
    except (*DRIVER_ERRORS, ValueError) as cause:
        raise unreached(dsn, cause) or DatabaseError(f"cannot connect: {told(cause)}") from cause
    async with asking("migrate"):
        try:
            return await migration.migrate(connection, schema)
        finally:
            connection.terminate()
