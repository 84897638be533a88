"""Runs tests against a changed copy of the sources. Nothing of the working tree is ever touched."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from assurance import ROOT, CannotRunError
from assurance.mutants import Mutant
from awa_cron import migrate
from awa_cron.sql import Schema, in_schema
from tests import postgres

COPIED = ("src", "tests", "spec", "scripts", "pyproject.toml", "README.md")
# Those that do would fail because the text has changed, whatever it does.
EDITS_NO_STATEMENT = "not broken_statement and not enqueue_that_waits"
TEST_TIMEOUT_S = 120
RUN_TIMEOUT_S = 400
PYTEST = (
    "-m",
    "pytest",
    "-x",
    "-q",
    "--no-header",
    "--tb=no",
    "-rfEs",
    "-p",
    "no:cacheprovider",
    f"--timeout={TEST_TIMEOUT_S}",
    "-k",
    EDITS_NO_STATEMENT,
)
FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) \S+?\.py::(?:\w+::)?(\w+)(?:\[.*?\])?(?: - (.*))?$", re.MULTILINE)
ANY_PASSED = re.compile(r"^\d+ passed|, \d+ passed", re.MULTILINE)
SKIPPED = re.compile(r"^SKIPPED \[\d+\] \S+ (.*)$", re.MULTILINE)
NOT_INHERITED = {"AWA_CRON_ASSURANCE", "AWA_CRON_ASSURANCE_LEVEL", "PYTEST_ADDOPTS"}
PASSED, FAILED = 0, 1
"""Pytest's exit codes; any other says nothing about the sources."""


@dataclass(frozen=True)
class Outcome:
    """What the tests said: passed, failed, hung, or no verdict, with pytest's output as the reason.

    Skipped means that this machine lacks what all of them need, and the reason says what.
    """

    result: str
    test: str
    reason: str
    seconds: float


class Bench:
    """A snapshot of the working tree, and a server that all runs share."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.dsn = dsn
        self._folder = folder
        self._snapshot = folder / "unchanged"
        for name in COPIED:
            source, copy = ROOT / name, self._snapshot / name
            if source.is_dir():
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
            else:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy)
        imported = self._python(self._snapshot, "-c", "import awa_cron; print(awa_cron.__file__)")
        if Path(imported.stdout.strip()) != self._snapshot / "src" / "awa_cron" / "__init__.py":
            raise CannotRunError(f"The tests would import {imported.stdout.strip()}, not the copy.")

    def run_unchanged(self, tests: Iterable[str]) -> Outcome:
        """Run tests on the sources as they are."""
        return self._tests(self._snapshot, tests)

    def run(self, mutant: Mutant, tests: Iterable[str]) -> Outcome:
        """Run tests on a copy with the mutant in it."""
        with tempfile.TemporaryDirectory(prefix=f"{mutant.name}-", dir=self._folder) as name:
            copy = Path(name)
            shutil.copytree(self._snapshot, copy, dirs_exist_ok=True)
            changed = copy / mutant.path
            text = mutant.applied(changed.read_text(encoding="utf-8"))
            # Compiled code is trusted by its source's time and size, and the mutant may have both.
            shutil.rmtree(changed.parent / "__pycache__", ignore_errors=True)
            changed.write_text(text, encoding="utf-8")
            return self._tests(copy, tests)

    def _tests(self, copy: Path, tests: Iterable[str]) -> Outcome:
        started = time.monotonic()
        try:
            finished = self._python(copy, *PYTEST, *tests)
        except subprocess.TimeoutExpired:
            return Outcome("hung", "", f"stopped after {RUN_TIMEOUT_S} s", float(RUN_TIMEOUT_S))
        seconds = round(time.monotonic() - started, 1)
        if finished.returncode == PASSED:
            skipped = None if ANY_PASSED.search(finished.stdout) else SKIPPED.search(finished.stdout)
            return Outcome("skipped", "", skipped[1], seconds) if skipped else Outcome("passed", "", "", seconds)
        found = FIRST_FAILURE.search(finished.stdout)
        if finished.returncode != FAILED or found is None:
            return Outcome("no verdict", "", (finished.stdout + finished.stderr)[-2000:], seconds)
        test, reason = found[1], found[2] or ""
        return Outcome("hung" if "Timeout (>" in reason else "failed", test, reason, seconds)

    def _python(self, copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python in a copy, with the copy's library in front of an installed one."""
        # Numbers that these tests would report are not the library's.
        environment = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED} | {
            "PYTHONPATH": str(copy / "src"),
            "AWA_CRON_TEST_DSN": self.dsn,
            "AWA_CRON_ASSURANCE_PROCESSES": "1",  # several mutants run beside each other instead
            "HYPOTHESIS_PROFILE": "mutants",
            "COLUMNS": "300",
        }
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=copy,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=RUN_TIMEOUT_S)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)


@contextmanager
def a_bench() -> Iterator[Bench]:
    """Take the snapshot and start the server, and remove both in the end."""
    with tempfile.TemporaryDirectory(prefix="awa_cron_mutants_") as folder, postgres.server() as dsn:
        yield Bench(Path(folder).resolve(), dsn)


async def refused(dsn: str, mutants: Iterable[Mutant]) -> dict[str, str]:
    """Return the mutants whose SQL the server does not even accept, and why: killing those would show nothing."""
    database = f"awa_cron_mutants_{os.getpid()}"
    server = await asyncpg.connect(dsn)
    await server.execute(f'CREATE DATABASE "{database}"')
    try:
        session = await asyncpg.connect(postgres.on_database(dsn, database))
        await migrate.migrate(session, Schema())
        reasons = {each.name: await _refusal(session, each) for each in mutants if each.path.suffix == ".sql"}
        await session.close()
    finally:
        await server.execute(f'DROP DATABASE "{database}" WITH (FORCE)')
        await server.close()
    return {name: reason for name, reason in reasons.items() if reason is not None}


async def _refusal(session: asyncpg.Connection[asyncpg.Record], mutant: Mutant) -> str | None:
    text = mutant.applied((ROOT / mutant.path).read_text(encoding="utf-8"))
    attempt = session.transaction()
    await attempt.start()
    try:
        if "migrations" in mutant.path.parts:
            await session.execute("CREATE SCHEMA mutant")
            for each in sorted((ROOT / mutant.path).parent.glob("*.sql")):
                whole = text if each.name == mutant.path.name else each.read_text(encoding="utf-8")
                await session.execute(in_schema(whole, "mutant"))
        else:
            await session.prepare(in_schema(text, Schema().name))
    except asyncpg.PostgresError as error:
        return str(error)
    finally:
        await attempt.rollback()
    return None
