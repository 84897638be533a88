"""The statements, one file each, and the names that belong to one schema.

A file of this folder is an action of the spec; ``queries/`` only reads; ``migrations/`` makes the schema. The
files say ``awa.`` and can be pasted into psql as they are; another schema's name is put in its place on loading.
"""

from __future__ import annotations

import functools
import hashlib
import re
from importlib import resources
from typing import TypeAlias

import asyncpg

from awa_cron.errors import InvalidArgument

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
"""A session: its own connection, or one lent by a pool."""

DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""What using a session can raise. The third comes when the server ends the session just as it is used."""


POOLER = (
    "there is a transaction pooler in between, and neither session locks nor LISTEN survive it; connect to "
    "Postgres directly or in session mode"
)


def told(error: BaseException) -> str:
    """Return a driver's error in words. Some have no text; some advise what a user of this library cannot do."""
    if isinstance(error, (asyncpg.DuplicatePreparedStatementError, asyncpg.InvalidSQLStatementNameError)):
        return f"prepared statements are mixed up: {POOLER}"
    return str(error) or type(error).__name__


def refuses_content(error: BaseException | None) -> bool:
    """Tell whether the server refused the data of a statement, which another batch may not share.

    The classes: data exceptions, constraints, limits, and what a trigger of the user's raises.
    """
    return isinstance(error, asyncpg.PostgresError) and (error.sqlstate or "")[:2] in {"22", "23", "54", "P0"}


_FILES = resources.files(__name__)
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_IN_STATEMENT = re.compile(r"\bawa\.")


class Schema:
    """A Postgres schema that holds awa_cron's tables.

    Args:
        name: Lower-case letters, digits and underscores, at most 48 characters.

    Raises:
        InvalidArgument: Any other name.
    """

    def __init__(self, name: str = "awa") -> None:
        if not isinstance(name, str) or not _SCHEMA_NAME.fullmatch(name) or name.startswith("pg_"):
            raise InvalidArgument(
                f"schema is {name!r}: use lower-case letters, digits and underscores, at most 48, not "
                "beginning with a digit or pg_"
            )
        self.name = name
        self.leader_lock_key = _lock_key(name, "leader")
        """Advisory lock of the leader's session."""
        self.sync_lock_key = _lock_key(name, "sync")
        """Advisory lock of the transactions that add or remove schedules."""
        self.migrate_lock_key = _lock_key(name, "migrate")
        """Advisory lock of a migration."""
        self.jobs_channel = f"{name}:jobs"
        """NOTIFY channel; the payload is the queue that has new jobs."""
        self.cancel_channel = f"{name}:cancel"
        """NOTIFY channel; running jobs were cancelled, and their workers are to look."""

    def __repr__(self) -> str:
        return f"Schema({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and type(other) is type(self) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def statement(self, name: str) -> str:
        """Return the text of a statement: an action's name, or ``queries/…``."""
        return in_schema(read(f"{name}.sql"), self.name)

    def migrations(self) -> list[tuple[int, str, str]]:
        """Return (version, name, SQL) of every migration, oldest first."""
        found = sorted(entry.name for entry in (_FILES / "migrations").iterdir() if entry.name.endswith(".sql"))
        return [(int(name[:4]), name[5:-4], in_schema(read(f"migrations/{name}"), self.name)) for name in found]


@functools.cache
def read(path: str) -> str:
    """Return a file of this folder."""
    return (_FILES / path).read_text(encoding="utf-8")


@functools.cache
def in_schema(text: str, schema: str) -> str:
    """Put a schema's name in the place of ``awa``."""
    return _IN_STATEMENT.sub(f'"{schema}".', text)


def _lock_key(schema: str, purpose: str) -> int:
    """Return a signed 64-bit key that no other use of advisory locks is likely to share."""
    digest = hashlib.blake2b(f"awa_cron:{schema}:{purpose}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
