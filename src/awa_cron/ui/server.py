"""The page's own server: a socket, uvicorn on it, and an end without loose ends."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from awa_cron.errors import InvalidArgument
from awa_cron.ui.app import create_app
from awa_cron.ui.desk import Desk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from awa_cron.ui.security import Rules

LAST_ANSWERS_S = 3


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens there.

    Raises:
        InvalidArgument: Somebody else does, or this machine has no such address.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise InvalidArgument(f"--host {host!r} cannot be used: {error.strerror or error}") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise InvalidArgument(
                f"port {port} of {host} is taken: give another with --port, or --port 0 for any that is free"
            ) from error
        raise InvalidArgument(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
    return listening


class _Server(uvicorn.Server):
    """Stops on SIGINT and SIGTERM, and leaves it to the caller what comes then."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, self.handle_exit, each, None)
        try:
            yield
        finally:
            for each in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(each)


async def serve(
    listening: socket.socket, dsn: str, schema: str, rules: Rules, *, login: str, ready: Callable[[], None]
) -> None:
    """Answer requests until told to stop.

    Args:
        listening: From ``bound``; closed in the end.
        dsn: The database.
        schema: The schema in it.
        rules: Who may do what.
        login: What the history calls whoever has not said otherwise.
        ready: Called when the first request can come.
    """
    app = create_app(Desk(dsn, schema), rules, login)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # an address may hold the token
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=LAST_ANSWERS_S,
    )
    server = _Server(config)
    with listening:
        ready()  # it listens already: whoever comes now waits a moment
        await server.serve(sockets=[listening])
