"""The story: three workers on a real Postgres, an operator, a killed leader, a frozen one, and the accounts."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import asyncpg

from awa_cron import embedded, migrate
from awa_cron.client import Client
from awa_cron.demo.app import client as registered
from awa_cron.demo.explained import explained
from awa_cron.demo.observe import OWN_TABLE, Observer
from awa_cron.demo.view import View
from awa_cron.demo.workers import Worker, Workers
from awa_cron.errors import AwaCronError
from awa_cron.sql import Schema

if TYPE_CHECKING:
    from types import FrameType

WORKERS = 3
PAUSED, TRIGGERED = "inbox", "nightly_backup"
LEASE_S = registered.settings.leader_idle_timeout_s

Found = TypeVar("Found")


class StoryFailed(Exception):
    """Something that the story waits for did not happen."""


def main() -> int:
    """Play the story.

    Returns:
        The exit status: 0 when everything balances, 1 when not, 130 when interrupted.
    """
    with View() as view, _interruptible():
        try:
            with tempfile.TemporaryDirectory(prefix="awa_cron_demo_", ignore_cleanup_errors=True) as name:
                view.tell("Starting PostgreSQL, a real one out of a wheel, in a temporary directory.")
                with (
                    embedded.server(Path(name) / "postgres") as dsn,
                    Workers(dsn, Path(name)) as workers,
                ):
                    return asyncio.run(_play(view, workers, dsn))
        except KeyboardInterrupt:
            view.tell("Interrupted.", "The workers and the server are stopped, the directory is removed.")
            return 130
        except (StoryFailed, AwaCronError) as error:
            view.tell(f"The demo cannot go on: {error}", style="bold red")
            return 1


async def _play(view: View, workers: Workers, dsn: str) -> int:
    connection = await asyncpg.connect(dsn)
    await migrate.migrate(connection, Schema())
    await connection.execute(OWN_TABLE)
    observer = Observer(connection)
    async with Client(dsn) as operator:
        refreshing = asyncio.create_task(_refresh(view, observer, workers))
        try:
            story = Story(view, workers, observer, operator)
            await story.play()
            until = await story.settle()
        finally:
            refreshing.cancel()
            await asyncio.wait([refreshing])
    view.end_live()
    return await story.balance(until)


async def _refresh(view: View, observer: Observer, workers: Workers) -> None:
    while True:
        view.show(await observer.status(), workers.all, await observer.leader())
        await asyncio.sleep(0.3)


class Story:
    """What happens, in order."""

    def __init__(self, view: View, workers: Workers, observer: Observer, operator: Client) -> None:
        self._view = view
        self._workers = workers
        self._observer = observer
        self._operator = operator
        self._began = 0.0
        self._takeovers: list[str] = []

    async def play(self) -> None:
        """Start the workers, and let things happen to them for half a minute."""
        await self._opening()
        await self._at(5)
        await self._pause()
        await self._at(8)
        await self._trigger()
        await self._at(10)
        await self._kill_the_leader()
        await self._at(16)
        await self._resume()
        await self._at(17)
        replacement = self._workers.start()
        self._view.tell(f"A replacement starts: {replacement}.", "It syncs its schedules and stands by.")
        await self._at(20)
        await self._freeze_the_leader()
        await self._at(32)

    async def settle(self) -> datetime:
        """Choose the end, wait until all that was due before it is enqueued, then pause all and let jobs end.

        Returns:
            The end.
        """
        await self._mid_second()
        until = await self._observer.now()
        self._view.tell("The end: everything due by now must become a job, and every job must run.")
        try:
            await _eventually(self._none_overdue(until), 10)
        except TimeoutError:
            behind = ", ".join(await self._observer.overdue(until))
            self._view.tell(f"Still not enqueued after 10 s: {behind}.", style="bold red")
        for status in await self._observer.status():
            await self._operator.pause(status.name, by="demo, the end")
        try:
            await _eventually(self._all_settled, 15)
        except TimeoutError:
            self._view.tell(f"{await self._observer.unsettled()} jobs have not run after 15 s.", style="bold red")
        return until

    async def balance(self, until: datetime) -> int:
        """Stop the workers, print the accounts, and return the exit status."""
        statuses = await asyncio.to_thread(self._workers.stop)
        rude = [f"{worker} ({status})" for worker, status in statuses.items() if status != 0]
        if rude:
            self._view.tell(f"Did not stop politely: {', '.join(rude)}.", style="bold red")
        accounts = await self._observer.accounts(until)
        self._view.accounts(accounts)
        for line in self._takeovers:
            self._view.say(line)
        balanced = self._view.verdict(accounts)
        async with self._operator as client:
            verified = self._view.verified(await client.verify(jobs_kept=True))
            right = self._view.explained(await explained(client, accounts))
        return 0 if balanced and verified and right and not rude else 1

    async def _opening(self) -> None:
        for _ in range(WORKERS):
            self._workers.start()
        self._view.tell(
            f"Three workers start: {', '.join(f'{each} is pid {each.pid}' for each in self._workers.all)}.",
            "Each stores its six schedules; one of them will lead.",
        )
        leader = await self._leader()
        await _eventually(self._observer.status, 10)
        self._began = self._view.elapsed_s
        self._view.tell(
            f"{leader} leads.",
            "Its session holds an advisory lock; each second it enqueues what is due.",
        )

    async def _pause(self) -> None:
        await self._mid_second()
        await self._operator.pause(PAUSED, by="demo")
        self._view.tell(
            f"Schedule {PAUSED} is paused.", "From now on its instants pass without a job; the others go on."
        )

    async def _resume(self) -> None:
        await self._mid_second()
        await self._operator.resume(PAUSED, by="demo")
        self._view.tell(
            f"Schedule {PAUSED} is resumed.",
            "Its policy is coalesce: one job for the latest instant that it missed.",
        )

    async def _trigger(self) -> None:
        job = await self._operator.trigger(TRIGGERED, by="demo")
        self._view.tell(
            f"Schedule {TRIGGERED} is triggered: job {job.id}.",
            "Its own time is 03:00, and stays so; a trigger only adds a job.",
        )

    async def _kill_the_leader(self) -> None:
        leader = await self._leader()
        try:
            job, name = await _eventually(lambda: self._observer.running_on(leader.pid), 4)
            halfway = f"in the middle of job {job} ({name}), which another will run again."
        except TimeoutError:
            halfway = "between two jobs."
        await self._mid_second()
        at = await self._observer.now()
        leader.kill()
        self._view.tell(f"{leader}, the leader, is killed with SIGKILL,", halfway, "bold red")
        await self._takeover(leader, at, "killed", "The server saw the connection close and freed the lock.")

    async def _freeze_the_leader(self) -> None:
        leader = await self._leader()
        await self._mid_second()
        at = await self._observer.now()
        leader.freeze()
        self._view.tell(
            f"{leader}, the leader, is frozen with SIGSTOP.",
            f"It lives, believes that it leads, and holds the lock: nobody can enqueue. It has {LEASE_S:.0f} s.",
            "bold cyan",
        )
        await self._takeover(leader, at, "frozen", "The server ended the silent session, and with it the lock.")
        await asyncio.sleep(3)
        await self._mid_second()
        leader.thaw()
        self._view.tell(
            f"{leader} wakes up",
            "and goes on where it stood, as if it still led. What it knows is old: the guards hold it back.",
            "bold cyan",
        )
        try:
            record = await _eventually(lambda: _last(leader, "not leading"), 8)
        except TimeoutError:
            raise StoryFailed(f"{leader} did not notice that it no longer leads: {leader.last_words()}") from None
        self._view.tell(f"{leader} steps down:", f"{record.get('reason')}.")

    async def _takeover(self, old: Worker, at: datetime, how: str, why: str) -> None:
        new = await self._leader(other_than=old)
        taken = (await self._observer.takeovers())[-1].at
        gap_s = (taken - at).total_seconds()
        self._view.tell(f"{new} leads, {gap_s:.1f} s later.", why, "bold magenta")
        self._takeovers.append(
            f"Takeover: {old} {how} at {at:%H:%M:%S}.{at.microsecond // 100_000}, {new} led from "
            f"{taken:%H:%M:%S}.{taken.microsecond // 100_000}, after {gap_s:.1f} s."
        )

    async def _leader(self, other_than: Worker | None = None) -> Worker:
        async def found() -> Worker | None:
            worker = self._workers.with_pid(await self._observer.leader())
            return None if worker is other_than else worker

        try:
            return await _eventually(found, 20)
        except TimeoutError:
            words = "".join(worker.last_words() for worker in self._workers.all)
            raise StoryFailed(f"nobody leads after 20 s; the workers' last words:\n{words}") from None

    def _none_overdue(self, until: datetime) -> Callable[[], Awaitable[bool]]:
        async def none_overdue() -> bool:
            return not await self._observer.overdue(until)

        return none_overdue

    async def _all_settled(self) -> bool:
        return not await self._observer.unsettled()

    async def _at(self, second: float) -> None:
        """Wait until so many seconds after the first leader."""
        await asyncio.sleep(max(0.0, self._began + second - self._view.elapsed_s))

    async def _mid_second(self) -> None:
        """Wait for the middle of a second, when no pass is under way and no instant is near."""
        now = await self._observer.now()
        await asyncio.sleep((0.5 - now.microsecond / 1e6) % 1.0)


async def _eventually(probe: Callable[[], Awaitable[Found | None]], timeout_s: float) -> Found:
    """Return the first thing that a probe finds.

    Raises:
        TimeoutError: It found nothing in time.
    """
    async with asyncio.timeout(timeout_s):
        while not (found := await probe()):  # noqa: ASYNC110 (what it waits for is in another process)
            await asyncio.sleep(0.05)
        return found


async def _last(worker: Worker, message: str) -> dict[str, object] | None:
    records = worker.said(message)
    return records[-1] if records else None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Turn the first of the signals that end a program into KeyboardInterrupt, and let nothing disturb the end."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
