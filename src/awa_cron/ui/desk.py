"""The client behind the page, entered as soon as the database allows, and the reader in front of it."""

from __future__ import annotations

import asyncio
import dataclasses
import zoneinfo
from typing import TYPE_CHECKING

from awa_cron import cronexpr
from awa_cron.client import Client
from awa_cron.errors import AwaCronError, DatabaseError, UnknownTimezone
from awa_cron.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from awa_cron.model import StoredSchedule

SETTINGS = Settings(statement_timeout_s=15.0)
"""A reader does not wait longer for an answer."""
ZONE = "awa_cron_zone"
"""A cookie; the script sets it too."""
LISTED_FOR = 10
AGAIN_AFTER_S = 1.0
"""A database that cannot be reached is asked this often at most, however many pages are open."""


class Desk:
    """One client for all requests.

    The page can be started before the database, or before its schema, and then says what is missing.

    Args:
        dsn: A Postgres connection string.
        schema: The schema that ``awa-cron migrate`` made.
    """

    def __init__(self, dsn: str, schema: str) -> None:
        self._client = Client(dsn, schema=schema, settings=SETTINGS)
        self._entered = False
        self._lock = asyncio.Lock()
        self._failed: tuple[float, AwaCronError] | None = None
        self._listed: tuple[float, list[StoredSchedule]] = (0.0, [])

    async def client(self) -> Client:
        """Return the entered client.

        Raises:
            DatabaseError: The database cannot be reached.
            SchemaMismatch: It has no schema of ours, or another version's.
        """
        async with self._lock:
            if not self._entered:
                await self._enter()
        return self._client

    async def listed(self) -> list[StoredSchedule]:
        """Return all schedules, to choose from; of ten thousand, they may be some seconds old.

        They are read again after ten times as long as reading them took, so that many readers of many schedules
        leave the server time for other things.
        """
        client = await self.client()
        async with self._lock:
            began = asyncio.get_running_loop().time()
            until, listed = self._listed
            if began >= until:
                listed = await client.list_schedules()
                ended = asyncio.get_running_loop().time()
                self._listed = (ended + LISTED_FOR * (ended - began), listed)
        return listed

    def forget(self) -> None:
        """Read everything again: something has changed."""
        self._listed = (0.0, [])

    async def close(self) -> None:
        """Leave the client."""
        if self._entered:
            self._entered = False
            await self._client.__aexit__(None, None, None)

    async def _enter(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._failed is not None and now < self._failed[0] + AGAIN_AFTER_S:
            raise type(self._failed[1])(*self._failed[1].args)
        try:
            await self._client.__aenter__()
        except AwaCronError as error:
            self._failed = (now, error)
            raise
        except (OSError, TimeoutError) as error:
            raise DatabaseError(f"cannot connect: {error}") from error
        self._entered = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reader:
    """Whoever looks at the page.

    Attributes:
        zone: Their time zone, as their browser or they themselves named it.
        zone_known: Whether they did.
        label: What the history shall call them.
    """

    zone: zoneinfo.ZoneInfo
    zone_known: bool
    label: str

    @classmethod
    def of(cls, cookies: Mapping[str, str], label: str) -> Reader:
        """Read what earlier requests left; anything unusable counts as nothing."""
        try:
            return cls(zone=cronexpr.zone(cookies[ZONE]), zone_known=True, label=label)
        except (KeyError, UnknownTimezone):
            return cls(zone=zoneinfo.ZoneInfo("UTC"), zone_known=False, label=label)
