"""A connection to the database that an operator's verbs share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar

from awa_cron import registration
from awa_cron.database import Database
from awa_cron.errors import DatabaseError, InvalidArgument, ScheduleNotFound
from awa_cron.operating.address import unreached
from awa_cron.settings import Settings
from awa_cron.sql import Schema

Found = TypeVar("Found")


class Connected:
    """What is connected to a database while it is entered.

    Args:
        dsn: A Postgres connection string. It may be given later, to ``connect_to``.
        schema: The schema that ``awa-cron migrate`` made.
        settings: Timing and limits.
        clock: A clock instead of the database's, for tests.

    Raises:
        InvalidArgument: A value cannot be used; the message says which.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        schema: str = "awa",
        settings: Settings | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.schema = Schema(schema)
        if settings is not None and not isinstance(settings, Settings):
            raise InvalidArgument(f"settings is a {type(settings).__name__}: pass awa_cron.Settings(…)")
        self.settings = settings or Settings()
        self._dsn = None if dsn is None else _dsn(dsn)
        self._clock = clock
        self._database: Database | None = None

    def connect_to(self, dsn: str) -> None:
        """Set the connection string, before the client is entered."""
        if self._database is not None:
            raise InvalidArgument("the client is connected already")
        self._dsn = _dsn(dsn)

    async def __aenter__(self) -> Self:
        if self._database is not None:
            raise InvalidArgument("the client is entered already")
        if self._dsn is None:
            raise InvalidArgument("no connection string: pass one to Client(dsn), or give `awa-cron run` --dsn")
        database = Database(
            self._dsn, self.schema, self.settings, pool_size=min(20, 3 + self.settings.concurrency // 2)
        )
        try:
            await database.open()
        except DatabaseError as error:
            raise unreached(self._dsn, error.__cause__) or error from error.__cause__
        self._database = database
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        database = self._connected()
        self._database = None
        await database.close()

    def _connected(self) -> Database:
        if self._database is None:
            raise InvalidArgument("not connected: use `async with client:`")
        return self._database

    def _now(self) -> datetime | None:
        return None if self._clock is None else self._clock()


def _dsn(dsn: object) -> str:
    if not isinstance(dsn, str) or not dsn.startswith(("postgresql://", "postgres://")):
        raise InvalidArgument(f"the connection string must begin with postgresql://, not {str(dsn)[:12]!r}")
    return dsn


def found(outcome: Found | None, name: str) -> Found:
    """Return what was found.

    Raises:
        ScheduleNotFound: It is None.
    """
    if outcome is None:
        raise ScheduleNotFound(name)
    return outcome


def label_of(by: str | None) -> str | None:
    """Return a label for the history, as it is stored.

    Raises:
        InvalidSchedule: It is no label.
    """
    return None if by is None else registration.label(by, "by")
