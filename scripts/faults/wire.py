"""A TCP port in front of the server that can be slow, silent, or closed on one side only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

Way: TypeAlias = Literal["to_server", "to_client"]
WAYS: tuple[Way, ...] = ("to_server", "to_client")


class Link:
    """One connection through the wire: both of its ends."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client = client
        self.server = server
        self.half_open = False

    def abort(self) -> None:
        """Close both ends at once."""
        for end in (self.client, self.server):
            end.transport.abort()


class Wire:
    """What lies between one instance and the server. Everything can be changed while it is in use.

    Args:
        dsn: Where the server is, on TCP or a Unix socket.
    """

    def __init__(self, dsn: str) -> None:
        self._parts = urlsplit(dsn)
        self._folder = parse_qs(self._parts.query).get("host", [None])[0]
        self._links: set[Link] = set()
        self._open: dict[Way, asyncio.Event] = {way: asyncio.Event() for way in WAYS}
        self._delay_s = dict.fromkeys(WAYS, 0.0)
        self.port = 0
        self.speak()

    @asynccontextmanager
    async def laid(self) -> AsyncIterator[None]:
        """Listen, as long as the context."""
        listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = listening.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            listening.close()
            self.speak()
            self.slow_down(0)
            while self._links:
                self.cut()
                await asyncio.sleep(0.01)

    def dsn(self, database: str) -> str:
        """Return a connection string through this wire."""
        user = f"{quote(self._parts.username or 'postgres')}:{quote(self._parts.password or '')}"
        return urlunsplit(("postgresql", f"{user}@127.0.0.1:{self.port}", f"/{database}", "sslmode=disable", ""))

    def slow_down(self, seconds: float, *ways: Way) -> None:
        """Let each piece of data, and each end, take so long."""
        for way in ways or WAYS:
            self._delay_s[way] = seconds

    def fall_silent(self, *ways: Way) -> None:
        """Deliver nothing more, neither data nor ends; what is sent waits, as TCP makes it wait."""
        for way in ways or WAYS:
            self._open[way].clear()

    def speak(self) -> None:
        """Deliver again."""
        for way in WAYS:
            self._open[way].set()

    def forget_clients(self) -> int:
        """Close the clients' ends and tell the server nothing; return how many."""
        return self._half_open("client")

    def forget_servers(self) -> int:
        """Close the server's ends and tell the clients nothing; return how many."""
        return self._half_open("server")

    def cut(self, *, half_open_only: bool = False) -> None:
        """Close connections at both ends."""
        for link in list(self._links):
            if link.half_open or not half_open_only:
                link.abort()

    def _half_open(self, lost_end: Literal["client", "server"]) -> int:
        for link in self._links:
            link.half_open = True
            (link.client if lost_end == "client" else link.server).transport.abort()
        return len(self._links)

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        await self._open["to_server"].wait()
        try:
            inner, server = await self._connect()
        except OSError:
            client.transport.abort()
            return
        link = Link(client, server)
        self._links.add(link)
        try:
            await asyncio.gather(
                self._pump(link, reader, server, "to_server"), self._pump(link, inner, client, "to_client")
            )
        finally:
            self._links.discard(link)
            link.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        port = self._parts.port or 5432
        if self._folder is not None:
            return await asyncio.open_unix_connection(f"{self._folder}/.s.PGSQL.{port}")
        return await asyncio.open_connection(self._parts.hostname, port)

    async def _pass(self, way: Way) -> None:
        if delay_s := self._delay_s[way]:
            await asyncio.sleep(delay_s)
        await self._open[way].wait()

    async def _pump(self, link: Link, source: asyncio.StreamReader, target: asyncio.StreamWriter, way: Way) -> None:
        try:
            while data := await source.read(65536):
                await self._pass(way)
                if not link.half_open:  # else it is sent to nobody
                    target.write(data)
                    await target.drain()
            await self._pass(way)
        except OSError:
            pass
        if not link.half_open:
            target.close()
