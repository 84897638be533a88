"""The server of a run, and a fresh database for each measurement."""

from __future__ import annotations

import asyncio
import itertools
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from awa_cron import embedded

SETTINGS = {"max_wal_size": "4GB", "checkpoint_timeout": "30min"}
"""Of the embedded server: no checkpoint falls into a measurement by chance. All else is Postgres's default, also
that a commit waits for the disk."""

_counter = itertools.count(1)


@contextmanager
def server() -> Iterator[str]:
    """Give the connection string of the server that AWA_CRON_TEST_DSN names, or of an embedded one."""
    dsn = os.environ.get("AWA_CRON_TEST_DSN")
    if dsn:
        yield dsn
        return
    directory = Path(tempfile.mkdtemp(prefix="awa_cron_bench_"))
    try:
        with embedded.server(directory / "postgres") as dsn:
            asyncio.run(_configure(dsn))
            yield dsn
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def database(server_dsn: str) -> Iterator[str]:
    """Make a database, and drop it in the end."""
    name = f"awa_cron_bench_{os.getpid()}_{next(_counter)}"
    asyncio.run(_execute(server_dsn, f'CREATE DATABASE "{name}"', "CHECKPOINT"))
    try:
        yield urlunsplit(urlsplit(server_dsn)._replace(path=f"/{name}"))
    finally:
        asyncio.run(_execute(server_dsn, f'DROP DATABASE "{name}" WITH (FORCE)'))


def machine(server_dsn: str) -> dict[str, Any]:
    """Describe where a run takes place, and how busy it is already."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "busy_before": busy(),
        **asyncio.run(_about(server_dsn)),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def busy(seconds: float = 2.0) -> float | None:
    """Return the share of the processors' time that others use, while we do nothing; None where nobody tells."""
    before = _ticks()
    time.sleep(seconds)
    after = _ticks()
    if before is None or after is None:
        return None
    return round(1 - (after[0] - before[0]) / max(1, after[1] - before[1]), 3)


def _ticks() -> tuple[int, int] | None:
    try:
        spent = [
            int(each) for each in Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:9]
        ]
    except (OSError, ValueError):
        return None
    return spent[3] + spent[4], sum(spent)


async def _about(dsn: str) -> dict[str, Any]:
    connection = await asyncpg.connect(dsn)
    try:
        named = ("server_version", "shared_buffers", "fsync", "synchronous_commit", "max_wal_size")
        found = {name: await connection.fetchval("SELECT current_setting($1)", name) for name in named}
    finally:
        await connection.close()
    return {"postgres": found.pop("server_version"), "settings": found}


async def _configure(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    for name, value in SETTINGS.items():
        await connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


async def _execute(dsn: str, *statements: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()
