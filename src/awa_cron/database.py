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
from awa_cron.sql import DRIVER_ERRORS, Connection, Schema

CONNECT_TIMEOUT_S = 10.0


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
            raise DatabaseError(f"cannot connect: {error or type(error).__name__}") from error
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
            raise DatabaseError(f"no connection: {error or type(error).__name__}") from error
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
            DatabaseError: No connection can be made.
        """
        connection: asyncpg.Connection[asyncpg.Record] | None = None
        try:
            connection = await asyncpg.connect(self._dsn, timeout=CONNECT_TIMEOUT_S)
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                for name, value in {"application_name": f"awa_cron {purpose}", **session}.items():
                    await connection.execute("SELECT set_config($1, $2, false)", name, value)
        except BaseException as error:
            if connection is not None:
                connection.terminate()
            if isinstance(error, (*DRIVER_ERRORS, ValueError)):
                raise DatabaseError(f"cannot connect the {purpose}: {error or type(error).__name__}") from error
            raise
        return connection


def _cut(connection: Connection) -> None:
    with suppress(asyncpg.InterfaceError):  # the pool has dropped it already
        connection.terminate()
