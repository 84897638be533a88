"""Connections whose every use is bounded in time, and that are cut, not trusted, when in doubt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Self

import asyncpg

from awa_cron import migrate
from awa_cron.errors import AwaCronError, DatabaseError
from awa_cron.settings import Settings
from awa_cron.sql import DRIVER_ERRORS, POOLER, Connection, Schema, told

CONNECT_TIMEOUT_S = 10.0
PROBES = 5
PROBES_TIMEOUT_S = 3.0
_BACKEND = "SELECT pg_backend_pid()"


class Database:
    """A pool for short statements, and dedicated connections for the leader and the listener.

    Args:
        dsn: A Postgres connection string.
        schema: Where the tables are.
        settings: ``statement_timeout_s`` bounds every use of a pooled connection.
        pool_size: The most connections of the pool; dedicated ones come on top.
    """

    def __init__(self, dsn: str, schema: Schema, settings: Settings, *, pool_size: int = 5) -> None:
        self._dsn = dsn
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._pool_size = pool_size
        self._sessions_are_ours = False
        self.schema = schema
        self.settings = settings

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect, and check that the schema is this version's.

        Raises:
            DatabaseError: No connection can be made.
            SchemaMismatch: The schema is missing, old or somebody else's.
        """
        try:
            self._pool = await asyncpg.create_pool(
                self._dsn,
                min_size=1,
                max_size=self._pool_size,
                timeout=CONNECT_TIMEOUT_S,
                server_settings={"application_name": "awa_cron"},
            )
        except (*DRIVER_ERRORS, ValueError) as error:
            raise DatabaseError(f"cannot connect: {told(error)}") from error
        try:
            async with self.session() as connection:
                await migrate.require_current(connection, self.schema)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the pool; connections that do not close in time are cut."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(self.settings.statement_timeout_s):
                await pool.close()
        except TimeoutError:
            pool.terminate()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Connection]:
        """Lend a pooled connection for a few statements.

        Raises:
            DatabaseError: The database is not open, no connection came in time, or its use took too long.
        """
        pool = self._pool
        if pool is None:
            raise DatabaseError("not connected: use `async with client:`")
        timeout_s = self.settings.statement_timeout_s
        try:
            connection = await pool.acquire(timeout=timeout_s)
        except DRIVER_ERRORS as error:
            raise DatabaseError(f"no connection: {told(error)}") from error
        try:
            async with asyncio.timeout(timeout_s):
                yield connection
        except TimeoutError as error:
            _cut(connection)
            raise DatabaseError(f"no answer within {timeout_s} s") from error
        except AwaCronError:
            raise
        except BaseException:
            # Whatever happened, the session's state is unknown; a cut connection has none.
            _cut(connection)
            raise
        finally:
            # A connection that died meanwhile cannot be reset, and the pool drops it: what was asked is done.
            with suppress(*DRIVER_ERRORS):
                await pool.release(connection, timeout=timeout_s)

    async def dedicated(self, purpose: str, **session: str) -> asyncpg.Connection[asyncpg.Record]:
        """Open a connection outside the pool.

        Args:
            purpose: Shown in ``pg_stat_activity`` as part of the application name.
            session: Server settings of this session, by name.

        Raises:
            DatabaseError: No connection can be made, or a pooler would share it with others.
        """
        connection: asyncpg.Connection[asyncpg.Record] | None = None
        try:
            if not self._sessions_are_ours:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    self._sessions_are_ours = await self._backends_are_ours()
            connection = await asyncpg.connect(self._dsn, timeout=CONNECT_TIMEOUT_S)
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                for name, value in {"application_name": f"awa_cron {purpose}", **session}.items():
                    await connection.execute("SELECT set_config($1, $2, false)", name, value)
        except BaseException as error:
            if connection is not None:
                connection.terminate()
            if isinstance(error, (*DRIVER_ERRORS, ValueError)):
                raise DatabaseError(f"cannot connect the {purpose}: {told(error)}") from error
            raise
        return connection

    async def _backends_are_ours(self) -> bool:
        """Tell whether it is sure that no pooler lends a session's server process to others.

        A pooler gives clients process ids of its own making. In session mode the process behind it is still ours
        alone; otherwise somebody else, here a second session, gets it as soon as we are idle.

        Raises:
            DatabaseError: One does.
        """
        session = await self._probe()
        try:
            ours = await _backend(session)
            if ours == session.get_server_pid():
                return True
            other = await self._probe()
            try:
                return await _unshared(session, ours, other)
            finally:
                other.terminate()
        finally:
            session.terminate()

    async def _probe(self) -> asyncpg.Connection[asyncpg.Record]:
        # Prepared statements would stay behind in sessions of the pooler's.
        return await asyncpg.connect(self._dsn, timeout=CONNECT_TIMEOUT_S, statement_cache_size=0)


async def _unshared(
    session: asyncpg.Connection[asyncpg.Record], ours: object, other: asyncpg.Connection[asyncpg.Record]
) -> bool:
    try:
        async with asyncio.timeout(PROBES_TIMEOUT_S):
            for _ in range(PROBES):
                # First beside a transaction of the other's, then alone: whatever order a pooler lends in.
                async with other.transaction():
                    theirs = await other.fetchval(_BACKEND)
                    beside = await _backend(session)
                if theirs == ours or {ours} != {beside, await _backend(session)}:
                    raise DatabaseError(POOLER)
    except TimeoutError:
        return False  # perhaps the pooler has no process left for the other session; then ours is not lent
    return True


async def _backend(connection: asyncpg.Connection[asyncpg.Record]) -> object:
    """Return the server process that answers; in a transaction, within which no pooler changes it."""
    async with connection.transaction():
        return await connection.fetchval(_BACKEND)


def _cut(connection: Connection) -> None:
    with suppress(asyncpg.InterfaceError):  # the pool has dropped it already
        connection.terminate()
