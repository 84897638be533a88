"""Create or upgrade the schema. The script that is printed is the script that runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

import asyncpg

from awa_cron.actions import asking
from awa_cron.errors import DatabaseError, InvalidArgument, SchemaMismatch
from awa_cron.sql import Connection, Schema

_REFUSAL = "P0A4A"  # an SQLSTATE of our own in the class of raised exceptions
_ROLE_PREFIX = re.compile(r"[a-z][a-z0-9_]{0,47}")
_ROLE = re.compile(r"\bawa_(evaluate|work|read|purge)\b")
_SCHEMA_CLAUSE = re.compile(r"\bSCHEMA awa\b")


def script(schema: Schema) -> str:
    """Return the whole migration as SQL for psql, idempotent, in one transaction.

    It takes an advisory lock, so that any number of processes may run it at once, and refuses a schema that holds
    tables of another system before it touches anything.
    """
    return f"BEGIN ISOLATION LEVEL READ COMMITTED;\n\n{_body(schema)}\nCOMMIT;\n"


def grants(schema: Schema, prefix: str) -> str:
    """Return SQL for psql, idempotent, for the roles ``PREFIX_evaluate``, ``_work``, ``_read`` and ``_purge``.

    Args:
        schema: What they may use; it must be migrated.
        prefix: What the roles' names begin with; roles belong to the whole server.

    Raises:
        InvalidArgument: The prefix is no name that needs no quotes.
    """
    if not _ROLE_PREFIX.fullmatch(prefix):
        raise InvalidArgument(f"prefix is {prefix!r}: use lower-case letters, digits and underscores, at most 48")
    text = _ROLE.sub(rf"{prefix}_\1", schema.statement("grants"))
    text = _SCHEMA_CLAUSE.sub(f'SCHEMA "{schema.name}"', text)
    return f"BEGIN;\n\n{text}\nCOMMIT;\n"


async def migrate(connection: Connection, schema: Schema) -> list[int]:
    """Bring the schema to this version; a no-op where it is already there.

    Args:
        connection: Not inside a transaction; its role must be allowed to create the schema, or own it.
        schema: Which schema.

    Returns:
        The versions applied now, ascending.

    Raises:
        SchemaMismatch: The schema belongs to another system, or to a newer version of this one.
        DatabaseError: The server refused; its error is the cause.
    """
    try:
        async with asking("migrate"), connection.transaction(isolation="read_committed"):
            # The script takes this lock too; here it makes the count right when others migrate at the same time.
            await connection.execute("SELECT pg_advisory_xact_lock($1)", schema.migrate_lock_key)
            before = await versions(connection, schema)
            await connection.execute(_body(schema))
            return sorted(set(await versions(connection, schema)) - set(before))
    except DatabaseError as error:
        cause = error.__cause__
        if isinstance(cause, asyncpg.PostgresError) and cause.sqlstate == _REFUSAL:
            raise SchemaMismatch(str(cause)) from cause
        raise


async def versions(connection: Connection, schema: Schema) -> Sequence[int]:
    """Return the applied versions, ascending; empty where the schema is not ours or not there.

    Raises:
        DatabaseError: The server refused or the connection is gone.
    """
    async with asking("versions"):
        if not await connection.fetchval(_ours(schema)):
            return []
        rows = await connection.fetch(f'SELECT version FROM "{schema.name}".cron_migrations ORDER BY version')  # noqa: S608
    return [row["version"] for row in rows]


async def require_current(connection: Connection, schema: Schema) -> None:
    """Check that the schema is at this version.

    Raises:
        SchemaMismatch: It is not; the message says what to do.
        DatabaseError: The server refused or the connection is gone.
    """
    wanted = schema.migrations()[-1][0]
    found = max(await versions(connection, schema), default=0)
    command = "awa-cron migrate" + (f" --schema {schema.name}" if schema.name != Schema().name else "")
    if found < wanted:
        raise SchemaMismatch(
            f"schema {schema.name!r} is at version {found} of {wanted}: run `{command}`"
            if found
            else f"there is no awa_cron schema named {schema.name!r} here: run `{command}`"
        )
    if found > wanted:
        raise SchemaMismatch(
            f"schema {schema.name!r} is at version {found}, this library knows {wanted}: upgrade awa-cron"
        )


def _ours(schema: Schema) -> str:
    """Return SQL that tells our table of migrations from another system's table of that name."""
    table = f"""to_regclass('"{schema.name}".cron_migrations')"""
    columns = "attname IN ('version', 'applied_at')"
    return f"SELECT count(*) = 2 FROM pg_attribute WHERE attrelid = {table} AND {columns}"  # noqa: S608


def _body(schema: Schema) -> str:
    name = schema.name
    newest = schema.migrations()[-1][0]
    parts = [
        f"SELECT pg_advisory_xact_lock({schema.migrate_lock_key});\n",
        f"""\
DO $guard$
DECLARE
    foreign_relation text;
BEGIN
    IF NOT ({_ours(schema)}) THEN
        SELECT found.name INTO foreign_relation
        FROM (
            SELECT relname AS name FROM pg_class
            WHERE relnamespace = to_regnamespace('"{name}"') AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c')
            UNION ALL
            SELECT proname FROM pg_proc WHERE pronamespace = to_regnamespace('"{name}"')
            UNION ALL
            SELECT typname FROM pg_type
            WHERE typnamespace = to_regnamespace('"{name}"') AND typtype IN ('d', 'e', 'r')
        ) AS found
        ORDER BY found.name = 'schema_version' DESC, found.name LIMIT 1;
        IF foreign_relation IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = '{_REFUSAL}', MESSAGE = format(
                'schema "{name}" already holds %s of another system%s; nothing was changed. '
                'Choose another schema, for instance "awa_cron"',
                quote_ident(foreign_relation),
                CASE foreign_relation WHEN 'schema_version' THEN ' (the full Awa)' ELSE '' END);
        END IF;
    END IF;
    IF to_regnamespace('"{name}"') IS NULL THEN
        CREATE SCHEMA "{name}";
    END IF;
END
$guard$;

CREATE TABLE IF NOT EXISTS "{name}".cron_migrations (
    version    integer     PRIMARY KEY,
    name       text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

DO $guard$
DECLARE
    newest integer := (SELECT max(version) FROM "{name}".cron_migrations);
BEGIN
    IF newest > {newest} THEN
        RAISE EXCEPTION USING ERRCODE = '{_REFUSAL}', MESSAGE = format(
            'schema "{name}" is at version %s, this library knows {newest}: upgrade awa-cron', newest);
    END IF;
END
$guard$;
""",  # noqa: S608
    ]
    parts += [
        f"""\
DO $migration$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM "{name}".cron_migrations WHERE version = {version}) THEN

{text}
INSERT INTO "{name}".cron_migrations (version, name) VALUES ({version}, '{title}');

    END IF;
END
$migration$;
"""  # noqa: S608
        for version, title, text in schema.migrations()
    ]
    return "\n".join(parts)
