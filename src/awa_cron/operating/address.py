"""Where a connection string leads, for messages: hosts and ports, and never who connects with which password."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qs, unquote

import asyncpg

from awa_cron.errors import DatabaseError
from awa_cron.sql import told

DEFAULT_PORT: Final = "5432"
_HOST: Final = re.compile(r"(?P<name>\[[0-9A-Fa-f:.%]+\]|[^\[\]:]*)(?::(?P<port>\d+))?")


def address(dsn: str) -> str | None:
    """Return the hosts and ports of a connection string; None where it names none, or might mean something else.

    Args:
        dsn: As the driver takes it. If a password holds a ``/``, ``?`` or ``#`` that is not escaped, the driver
            ends the host there, and that may be part of the password: then nothing is said.
    """
    parts = re.fullmatch(r"[a-z]*://([^/?#]*)([/?#]?)(.*)", dsn, re.DOTALL)
    if parts is None:
        return None
    authority, mark, rest = parts.groups()
    _, at, places = authority.rpartition("@")
    if not at and "@" in rest:
        return None
    options = parse_qs(rest.partition("?")[2] if mark != "?" else rest)
    if not places:
        hosts = options.get("host", [""])[-1].split(",")
        ports = options.get("port", [DEFAULT_PORT])[-1].split(",")
        return (
            ", ".join(_joined(host, ports[min(n, len(ports) - 1)]) for n, host in enumerate(hosts) if host) or None
        )
    found = [_HOST.fullmatch(place) for place in places.split(",")]
    if not all(found):
        return None
    return ", ".join(_joined(unquote(each["name"]), each["port"] or DEFAULT_PORT) for each in found if each)


def unreached(dsn: str, cause: BaseException | None) -> DatabaseError | None:
    """Return why there is no connection, with the address; None if the server has answered, with a refusal."""
    if isinstance(cause, ValueError) and not isinstance(cause, asyncpg.InterfaceError):
        return DatabaseError(
            "cannot connect: the connection string cannot be read; write it as "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and in a password "
            "%2F for /, %3F for ?, %23 for #, %40 for @"
        )
    place = address(dsn)
    if place is None or not isinstance(cause, (OSError, TimeoutError, asyncpg.InterfaceError)):
        return None
    return DatabaseError(f"cannot connect to {place}: {told(cause)}")


def _joined(host: str, port: str) -> str:
    return f"{host}:{port}" if not host.startswith("/") else f"{host}, port {port}"
