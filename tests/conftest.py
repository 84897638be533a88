"""Fixtures for every layer of tests: a server per run, a migrated database per test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
from hypothesis import HealthCheck, Phase, settings

from awa_cron import migrate
from awa_cron.sql import Schema
from tests import postgres

settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=100, derandomize=True, print_blob=True)
settings.register_profile("soak", deadline=None, max_examples=100_000, suppress_health_check=[HealthCheck.too_slow])
# scripts/mutants wants to know that a test fails, not the smallest reason.
settings.register_profile(
    "mutants", deadline=None, max_examples=40, derandomize=True, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

_TEMPLATE = f"awa_cron_template_{os.getpid()}"


@pytest.fixture(scope="session")
def server_dsn() -> Iterator[str]:
    """A connection string of the server's own database."""
    with postgres.server() as dsn:
        yield dsn


@pytest.fixture(scope="session")
def template(server_dsn: str) -> Iterator[str]:
    """A migrated database that is copied, never used."""

    async def make() -> None:
        await _execute(server_dsn, f'CREATE DATABASE "{_TEMPLATE}"')
        connection = await asyncpg.connect(postgres.on_database(server_dsn, _TEMPLATE))
        await migrate.migrate(connection, Schema())
        await connection.close()

    asyncio.run(make())
    yield _TEMPLATE
    asyncio.run(_execute(server_dsn, f'DROP DATABASE "{_TEMPLATE}" WITH (FORCE)'))


@pytest.fixture(scope="session")
def databases(server_dsn: str, template: str) -> Iterator[postgres.Databases]:
    with postgres.Databases(server_dsn, template) as copies:
        yield copies


@pytest.fixture
def dsn(server_dsn: str, databases: postgres.Databases) -> Iterator[str]:
    """A connection string of this test's own migrated database."""
    name = databases.take()
    yield postgres.on_database(server_dsn, name)
    databases.give_back(name)


@pytest.fixture
async def connection(dsn: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A session on this test's database."""
    session = await asyncpg.connect(dsn)
    yield session
    session.terminate()


@pytest.fixture
def schema() -> Schema:
    return Schema()


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
