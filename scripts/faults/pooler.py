"""A real PgBouncer in transaction mode, where the machine has one."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from faults import CannotRunError
from faults.server import Database

PROGRAM = "pgbouncer"
MISSING = "there is no pgbouncer here (Debian: apt-get install pgbouncer)"

CONFIGURATION = """\
[databases]
{name} = {target}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 20
ignore_startup_parameters = extra_float_digits
logfile = {log}
"""


def installed() -> bool:
    """Tell whether there is one."""
    return program() is not None


def program() -> str | None:
    """Return its path; Debian's is not on everybody's."""
    return shutil.which(PROGRAM) or shutil.which(PROGRAM, path="/usr/sbin:/usr/local/sbin")


@asynccontextmanager
async def a_pooler(database: Database, directory: Path, mode: str = "transaction") -> AsyncIterator[str]:
    """Run one in front of a database, and give the connection string through it.

    Raises:
        CannotRunError: It is missing, or does not start.
    """
    path = program()
    if path is None:
        raise CannotRunError(MISSING)
    port = _free_port()
    folder = directory / f"pgbouncer_{port}"
    folder.mkdir()
    parts = urlsplit(database.dsn)
    user = parts.username or "postgres"
    host = parse_qs(parts.query).get("host", [parts.hostname or "127.0.0.1"])[0]
    password = f" password={parts.password}" if parts.password else ""
    target = f"host={host} port={parts.port or 5432} user={user}{password}"
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        CONFIGURATION.format(name=database.name, target=target, port=port, mode=mode, log=folder / "log")
    )
    # It refuses to run as root, and an embedded server's socket lies in a folder of another user.
    other_user = _give(folder, host) if os.geteuid() == 0 else None
    process = subprocess.Popen(  # noqa: ASYNC220 (it goes on beside us)
        [path, str(settings)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        user=other_user,
        start_new_session=True,
    )
    try:
        await _listens(port, process, folder / "log")
        yield f"postgresql://{user}@127.0.0.1:{port}/{database.name}?sslmode=disable"
    finally:
        process.kill()
        process.wait()


async def _listens(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(100):
        if process.poll() is not None:
            break
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return
    raise CannotRunError(f"pgbouncer does not start: see {log}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _give(folder: Path, host: str) -> int:
    """Give the folder to the owner of the server's socket, or to nobody; return who that is."""
    owner = Path(host).stat().st_uid if host.startswith("/") else pwd.getpwnam("nobody").pw_uid
    os.chown(folder, owner, -1)
    for above in folder.parents:
        if (mode := above.stat().st_mode) & 0o011 != 0o011:
            above.chmod(mode | 0o011)
    return owner
