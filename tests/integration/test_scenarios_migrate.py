"""Migrating: once, again, ten at a time, beside another system, and with psql."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import asyncpg
import pytest

import awa_cron
from awa_cron import actions, migrate
from awa_cron.errors import DatabaseError, SchemaMismatch
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from tests.integration.support import Session, a_session, at, running, schedule, wait_until

NEWEST = [version for version, _, _ in Schema().migrations()]


@pytest.fixture
async def empty(dsn: str) -> AsyncIterator[Session]:
    """A session on a database that holds nothing of ours."""
    session = await asyncpg.connect(dsn)
    await session.execute("DROP SCHEMA awa CASCADE")
    yield session
    session.terminate()


async def shape(session: Session, schema: str) -> list[tuple[object, ...]]:
    """Return everything that the catalogue says of a schema, with its name left out."""
    rows = await session.fetch(
        """
        SELECT 'column', table_name, column_name, data_type, is_nullable, column_default, identity_generation
        FROM information_schema.columns WHERE table_schema = $1
        UNION ALL
        SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL, NULL, NULL
        FROM pg_constraint WHERE connamespace = $1::regnamespace
        UNION ALL
        SELECT 'index', tablename, indexname, indexdef, NULL, NULL, NULL FROM pg_indexes WHERE schemaname = $1
        UNION ALL
        SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), NULL, NULL, NULL
        FROM pg_trigger WHERE NOT tgisinternal
            AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = $1::regnamespace)
        UNION ALL
        SELECT 'function', proname, prosrc, pg_get_function_result(oid), NULL, NULL, NULL
        FROM pg_proc WHERE pronamespace = $1::regnamespace
        UNION ALL
        SELECT 'comment', c.relname, d.objsubid::text, d.description, NULL, NULL, NULL
        FROM pg_description AS d JOIN pg_class AS c ON c.oid = d.objoid AND d.classoid = 'pg_class'::regclass
        WHERE c.relnamespace = $1::regnamespace
        ORDER BY 1, 2, 3, 4
        """,
        schema,
    )
    return [
        tuple(value.replace(f"{schema}.", "") if isinstance(value, str) else value for value in row) for row in rows
    ]


async def test_migrating_again_changes_nothing(empty: Session) -> None:
    schema = Schema()
    assert [] == await migrate.versions(empty, schema)
    assert NEWEST == await migrate.migrate(empty, schema)
    before = await shape(empty, "awa")
    applied = await empty.fetch("SELECT * FROM awa.cron_migrations")
    assert [] == await migrate.migrate(empty, schema), "a no-op says so"
    assert before == await shape(empty, "awa")
    assert applied == await empty.fetch("SELECT * FROM awa.cron_migrations")
    await migrate.require_current(empty, schema)


@pytest.mark.parametrize("level", ["read committed", "serializable"])
async def test_ten_processes_may_migrate_at_once(dsn: str, empty: Session, level: str) -> None:
    async def one() -> list[int]:
        async with a_session(dsn, level=level) as session:
            return await migrate.migrate(session, Schema())

    outcomes = await asyncio.gather(*(one() for _ in range(10)))
    assert [[]] * 9 + [NEWEST] == sorted(outcomes), "one of them did it, and nine know that they did not"


@pytest.mark.parametrize("table", ["schema_version", "jobs", "cron_jobs"])
async def test_a_schema_of_another_system_is_refused_and_left_alone(empty: Session, table: str) -> None:
    await empty.execute(f"CREATE SCHEMA awa; CREATE TABLE awa.{table} (version int); CREATE VIEW awa.v AS SELECT 1")
    before = await shape(empty, "awa")
    with pytest.raises(SchemaMismatch, match=f"already holds {table} of another system") as caught:
        await migrate.migrate(empty, Schema())
    assert isinstance(caught.value.__cause__, asyncpg.PostgresError)
    assert ("full Awa" in str(caught.value)) == (table == "schema_version")
    assert before == await shape(empty, "awa"), "nothing of it is touched"
    with pytest.raises(asyncpg.PostgresError, match="another system"):
        await empty.execute(migrate.script(Schema()))
    await empty.execute("ROLLBACK")
    assert before == await shape(empty, "awa"), "by the printed script neither"


async def test_an_empty_schema_made_beforehand_is_used(empty: Session) -> None:
    await empty.execute("CREATE SCHEMA awa")
    assert NEWEST == await migrate.migrate(empty, Schema())


async def test_a_newer_version_is_refused(empty: Session) -> None:
    await migrate.migrate(empty, Schema())
    await empty.execute("INSERT INTO awa.cron_migrations (version, name) VALUES (999, 'future')")
    with pytest.raises(SchemaMismatch, match="at version 999"):
        await migrate.migrate(empty, Schema())
    with pytest.raises(SchemaMismatch, match="at version 999"):
        await migrate.require_current(empty, Schema())


async def test_a_role_that_may_not_create_gets_the_servers_error(dsn: str, empty: Session) -> None:
    await empty.execute("CREATE ROLE awa_cannot_create NOLOGIN")
    try:
        async with a_session(dsn) as session:
            await session.execute("SET ROLE awa_cannot_create")
            with pytest.raises(DatabaseError) as caught:
                await migrate.migrate(session, Schema())
        assert isinstance(caught.value.__cause__, asyncpg.InsufficientPrivilegeError)
    finally:
        await empty.execute("DROP ROLE awa_cannot_create")


async def test_the_printed_script_does_what_migrate_does(empty: Session) -> None:
    await migrate.migrate(empty, Schema())
    by_function = await shape(empty, "awa")
    await empty.execute("DROP SCHEMA awa CASCADE")
    for _ in range(2):
        await empty.execute(migrate.script(Schema()))
        assert by_function == await shape(empty, "awa")
    assert NEWEST == await migrate.versions(empty, Schema())


async def test_the_printed_script_runs_in_psql(dsn: str, empty: Session) -> None:
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("psql is not installed")
    await migrate.migrate(empty, Schema())
    by_function = await shape(empty, "awa")
    await empty.execute("DROP SCHEMA awa CASCADE")
    for _ in range(2):
        ran = await asyncio.to_thread(
            subprocess.run,
            [psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", dsn],
            input=migrate.script(Schema()),
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert 0 == ran.returncode, ran.stderr
    assert by_function == await shape(empty, "awa")


async def test_schemas_live_side_by_side(dsn: str, connection: Session) -> None:
    other = Schema("awa_2")
    assert NEWEST == await migrate.migrate(connection, other)
    assert await shape(connection, "awa") == await shape(connection, "awa_2"), "the same, under another name"
    outcome = await actions.sync(
        connection, other, [schedule()], actor="t", pass_limit=9, clock=at("2026-01-01 10:00")
    )
    assert 1 == len(outcome.outcomes)
    assert await actions.trigger(connection, other, "s") is not None
    assert await actions.trigger(connection, Schema(), "s") is None
    counts = await connection.fetchrow("SELECT (SELECT count(*) FROM awa.jobs), (SELECT count(*) FROM awa_2.jobs)")
    assert counts is not None
    assert (0, 1) == tuple(counts)


async def test_a_client_works_in_another_schema_and_each_schema_has_a_leader(dsn: str, connection: Session) -> None:
    await migrate.migrate(connection, Schema("_x1"))
    settings = Settings(evaluate_interval_s=0.2, election_interval_s=0.1, poll_interval_s=30)
    handled: list[datetime] = []
    client = awa_cron.Client(dsn, schema="_x1", settings=settings)
    client.periodic("tick", "* * * * * *", kind="tick")

    @client.task("tick")
    async def tick(job: awa_cron.Job) -> None:
        handled.append(datetime.now(UTC))

    async with (
        awa_cron.Client(dsn, settings=settings) as plain,
        running(plain.run_forever()),
        client,
        running(client.run_forever()),
    ):
        await wait_until(lambda: client.leading and plain.leading, "both lead, each its schema")
        await wait_until(lambda: handled, "woken by the notification of its own schema")
    assert 0 == await connection.fetchval("SELECT count(*) FROM awa.jobs")


async def test_every_statement_names_the_schema(connection: Session) -> None:
    """Nothing is found through the search path, so nobody can put a table in between."""
    await migrate.migrate(connection, Schema("elsewhere"))
    await connection.execute("DROP SCHEMA awa CASCADE")
    await connection.execute("SET search_path = pg_catalog")
    other = Schema("elsewhere")
    await actions.sync(connection, other, [schedule()], actor="t", pass_limit=9)
    assert await actions.pause(connection, other, "s")
    assert await actions.resume(connection, other, "s")
    assert await actions.trigger(connection, other, "s")
    assert await actions.read_cron_state(connection, other)
    assert await actions.remove(connection, other, "s")
