"""SIGTERM and SIGINT: the first asks for a graceful end, the second ends the process at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
LAST_CHANCE_S = 1.0
THREADS = "awa_cron job"
"""How the names of threads begin in which handlers, or parts of them, run."""


class StoppedEarly(BaseException):
    """A signal came while nothing was running yet."""


class GracefulStop:
    """Turns signals into a cancellation.

    Args:
        last_words: Called before the process ends at once, so that nothing it started outlives it.
    """

    def __init__(self, last_words: Callable[[], None]) -> None:
        self._last_words = last_words
        self._asked = False
        self._cancel: Callable[[], None] | None = None

    def install(self) -> None:
        """Take over the signals. Handlers of the interpreter, not of the loop: a busy loop must not delay them."""
        for each in SIGNALS:
            signal.signal(each, self._received)

    def run(self, main: Coroutine[None, None, None]) -> None:
        """Run a coroutine until it ends or a signal has cancelled it."""

        async def cancellable() -> None:
            task = asyncio.current_task()
            loop = asyncio.get_running_loop()
            assert task is not None
            pool = ThreadPoolExecutor(thread_name_prefix=THREADS)  # that of asyncio.to_thread
            loop.set_default_executor(pool)

            def cancel() -> None:
                loop.call_soon_threadsafe(task.cancel)

            self._cancel = cancel
            try:
                await main
            finally:
                if self._asked and (await _handlers_stay() or _threads_stay(pool)):
                    # The loop and the interpreter would wait for them for ever.
                    log.warning("a handler does not stop, and is left behind")
                    self._last_words()
                    end(0)

        try:
            asyncio.run(cancellable())
        except asyncio.CancelledError:
            if not self._asked:
                raise

    def _received(self, number: int, _frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if self._asked:
            log.warning("ending at once", extra={"signal": name})
            self._last_words()
            end(128 + number)
        self._asked = True
        log.info("stopping; a second signal ends at once", extra={"signal": name})
        if self._cancel is None:
            raise StoppedEarly
        self._cancel()


def end(status: int) -> NoReturn:
    """End the process without waiting for its threads."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(status)


async def _handlers_stay() -> bool:
    """Tell whether an async handler goes on though it was cancelled, again and again."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for each in others:
        each.cancel()
    if not others:
        return False
    _, stay = await asyncio.wait(others, timeout=LAST_CHANCE_S)
    return bool(stay)


def _threads_stay(pool: ThreadPoolExecutor) -> bool:
    """Tell whether a sync handler, or what an async one has given to a thread, outlived its time."""
    pool.shutdown(wait=False, cancel_futures=True)
    return any(_busy(thread) for thread in threading.enumerate() if thread.name.startswith(THREADS))


def _busy(thread: threading.Thread) -> bool:
    # An idle thread of a pool that has been shut down ends by itself within moments.
    thread.join(timeout=0.2)
    return thread.is_alive()
