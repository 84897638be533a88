"""The Postgres that tests run on: named by AWA_CRON_TEST_DSN, or in Docker, or embedded. Never a mock."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Self
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


class Databases:
    """Copies of a template, made one ahead and dropped in the background: either takes longer than many a test."""

    def __init__(self, dsn: str, template: str) -> None:
        self._dsn = dsn
        self._template = template
        self._counter = itertools.count(1)

    def __enter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1)
        self._next = self._thread.submit(self._make)
        self._drops: list[Future[None]] = []
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back(self._next.result())
        self._thread.shutdown()
        for drop in self._drops:
            drop.result()

    def take(self) -> str:
        """Return the name of a copy that nobody has used."""
        made, self._next = self._next, self._thread.submit(self._make)
        return made.result()

    def give_back(self, name: str) -> None:
        """Drop a copy, whoever is still connected to it."""
        self._drops.append(self._thread.submit(self._execute, f'DROP DATABASE "{name}" WITH (FORCE)'))

    def _make(self) -> str:
        name = f"awa_cron_test_{os.getpid()}_{next(self._counter)}"
        self._execute(f'CREATE DATABASE "{name}" TEMPLATE "{self._template}"')
        return name

    def _execute(self, statement: str) -> None:
        async def execute() -> None:
            connection = await asyncpg.connect(self._dsn)
            await connection.execute(statement)
            await connection.close()

        asyncio.run(execute())


def on_database(dsn: str, database: str) -> str:
    """Return the connection string with another database."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{database}"))


def _in_memory() -> str | None:
    """Return a folder in memory if there is room: a disk spends most of the run on files of dropped databases."""
    folder = Path("/dev/shm")
    return str(folder) if folder.is_dir() and shutil.disk_usage(folder).free > 2 << 30 else None


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

    directory = Path(tempfile.mkdtemp(prefix="awa_cron_test_", dir=_in_memory()))
    try:
        with embedded.server(directory / "postgres") as dsn:
            asyncio.run(_hurry(dsn))
            yield dsn
    finally:
        shutil.rmtree(directory, ignore_errors=True)
