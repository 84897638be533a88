"""What a process can tell of itself and of its server: time, memory, how long its event loop was held up."""

from __future__ import annotations

import asyncio
import gc
import resource
import statistics
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg

NAP_S = 0.005


class Watchdog:
    """Sleeps a little, again and again; what it oversleeps, somebody else has had the event loop."""

    def __init__(self) -> None:
        self.worst_s = 0.0

    async def watch(self) -> None:
        """Until cancelled."""
        while True:
            started = time.perf_counter()
            await asyncio.sleep(NAP_S)
            self.worst_s = max(self.worst_s, time.perf_counter() - started - NAP_S)


@asynccontextmanager
async def watching() -> AsyncIterator[Watchdog]:
    """Watch the event loop."""
    dog = Watchdog()
    task = asyncio.create_task(dog.watch(), name="watchdog")
    try:
        yield dog
    finally:
        task.cancel()


def freeze() -> None:
    """Keep the garbage collector from what is there already, as `awa-cron run` does with what it has imported."""
    gc.freeze()


class Elapsed:
    """Seconds of a block, on the clock and on the processor."""

    wall_s = 0.0
    cpu_s = 0.0


@contextmanager
def elapsed() -> Iterator[Elapsed]:
    """Measure a block."""
    found = Elapsed()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield found
    finally:
        found.wall_s, found.cpu_s = time.perf_counter() - wall, time.process_time() - cpu


async def server_cpu_s(connection: asyncpg.Connection[asyncpg.Record]) -> float | None:
    """Return what the processes of this database's sessions have used; None when they are on another machine."""
    pids = await connection.fetch(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    used = [_cpu_s(row["pid"]) for row in pids]
    return None if not used or None in used else sum(each for each in used if each is not None)


def _cpu_s(pid: int) -> float | None:
    process = Path(f"/proc/{pid}")
    try:
        if "postgres" not in (process / "comm").read_text():
            return None
        return int((process / "schedstat").read_text().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def memory_mb() -> float | None:
    """Return what this process holds in memory now; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize() / 2**20


def peak_memory_mb() -> float:
    """Return the most that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def percentile(values: Sequence[float], part: float) -> float:
    """Return the value below which a part of them lies, from 0 to 1."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def median(values: Sequence[float]) -> float:
    """Return the middle one."""
    return statistics.median(values)
