"""The wire of the fault harness does what it says: otherwise its faults would be none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from faults.wire import Wire

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def arrives(reader: asyncio.StreamReader, within_s: float = 5.0) -> bytes:
    async with asyncio.timeout(within_s):
        return await reader.read(100)


class Laid:
    """A client and a server that are connected by a wire."""

    def __init__(self, wire: Wire, client: Ends, server: Ends) -> None:
        self.wire = wire
        self.client_reads, self.client = client
        self.server_reads, self.server = server


@asynccontextmanager
async def laid() -> AsyncIterator[Laid]:
    accepted: asyncio.Queue[Ends] = asyncio.Queue()
    listening = await asyncio.start_server(
        lambda reader, writer: accepted.put_nowait((reader, writer)), "127.0.0.1", 0
    )
    port = listening.sockets[0].getsockname()[1]
    wire = Wire(f"postgresql://127.0.0.1:{port}/x")
    async with wire.laid():
        client = await asyncio.open_connection("127.0.0.1", wire.port)
        ends = Laid(wire, client, await accepted.get())
        try:
            ends.client.write(b"hello")
            assert b"hello" == await arrives(ends.server_reads)
            yield ends
        finally:
            for writer in (ends.client, ends.server):
                writer.transport.abort()
            listening.close()


async def nothing_arrives(reader: asyncio.StreamReader) -> None:
    with pytest.raises(TimeoutError):
        await arrives(reader, 0.2)


async def test_it_passes_data_and_ends() -> None:
    async with laid() as ends:
        ends.client.write(b"question")
        assert b"question" == await arrives(ends.server_reads)
        ends.server.write(b"answer")
        assert b"answer" == await arrives(ends.client_reads)
        ends.server.close()
        assert b"" == await arrives(ends.client_reads)


async def test_silent_it_holds_data_and_ends_back_and_delivers_them_later() -> None:
    async with laid() as ends:
        ends.wire.fall_silent()
        ends.client.write(b"question")
        ends.client.close()
        await nothing_arrives(ends.server_reads)
        ends.wire.speak()
        assert b"question" == await arrives(ends.server_reads)
        assert b"" == await arrives(ends.server_reads)


async def test_silent_in_one_direction_it_passes_the_other() -> None:
    async with laid() as ends:
        ends.wire.fall_silent("to_client")
        ends.client.write(b"question")
        assert b"question" == await arrives(ends.server_reads)
        ends.server.write(b"answer")
        await nothing_arrives(ends.client_reads)


async def test_slow_in_one_direction_it_takes_its_time() -> None:
    async with laid() as ends:
        time = asyncio.get_running_loop().time
        ends.wire.slow_down(0.3, "to_server")
        began = time()
        ends.client.write(b"question")
        assert b"question" == await arrives(ends.server_reads)
        assert time() - began >= 0.3
        began = time()
        ends.server.write(b"answer")
        assert b"answer" == await arrives(ends.client_reads)
        assert time() - began < 0.3


async def test_a_forgotten_client_is_gone_and_the_server_does_not_know() -> None:
    async with laid() as ends:
        assert 1 == ends.wire.forget_clients()
        assert b"" == await arrives(ends.client_reads)
        ends.server.write(b"answer")
        await nothing_arrives(ends.server_reads)
        ends.wire.cut(half_open_only=True)
        assert b"" == await arrives(ends.server_reads)


async def test_a_forgotten_server_is_gone_and_the_client_does_not_know() -> None:
    async with laid() as ends:
        assert 1 == ends.wire.forget_servers()
        assert b"" == await arrives(ends.server_reads)
        ends.client.write(b"question")
        await nothing_arrives(ends.client_reads)
        ends.wire.cut(half_open_only=True)
        assert b"" == await arrives(ends.client_reads)
