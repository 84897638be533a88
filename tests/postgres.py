"""The Postgres that tests run on: named by AWA_CRON_TEST_DSN, or in Docker, or embedded. Never a mock."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

DOCKER_IMAGE = os.environ.get("AWA_CRON_TEST_IMAGE", "postgres:17-alpine")


@contextmanager
def server() -> Iterator[str]:
    """Give the connection string of a server on which databases may be created."""
    dsn = os.environ.get("AWA_CRON_TEST_DSN")
    if dsn:
        yield dsn
    elif _docker_runs():
        with _in_docker() as dsn:
            yield dsn
    else:
        with _embedded() as dsn:
            yield dsn


def on_database(dsn: str, database: str) -> str:
    """Return the connection string with another database."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{database}"))


async def _hurry(dsn: str) -> None:
    """A database per test is made and dropped; none of it has to survive a power cut."""
    connection = await asyncpg.connect(dsn)
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        await connection.execute(f"ALTER SYSTEM SET {setting} = off")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


def _docker_runs() -> bool:
    if shutil.which("docker") is None:
        return False
    answer = subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=30)
    return answer.returncode == 0


@contextmanager
def _in_docker() -> Iterator[str]:
    from testcontainers.postgres import PostgresContainer  # noqa: PLC0415

    with PostgresContainer(DOCKER_IMAGE, driver=None) as container:
        yield container.get_connection_url()


@contextmanager
def _embedded() -> Iterator[str]:
    from awa_cron import embedded  # noqa: PLC0415

    directory = Path(tempfile.mkdtemp(prefix="awa_cron_test_"))
    try:
        with embedded.server(directory / "postgres") as dsn:
            asyncio.run(_hurry(dsn))
            yield dsn
    finally:
        shutil.rmtree(directory, ignore_errors=True)
