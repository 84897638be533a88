"""The worker processes: ``awa-cron run`` three times, each in a process group of its own, none of which stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

STOP_TIMEOUT_S = 10.0


class Worker:
    """One process that runs ``awa_cron.demo.app``.

    Args:
        number: How the story calls it.
        dsn: The database.
        directory: Where its log goes.
    """

    def __init__(self, number: int, dsn: str, directory: Path) -> None:
        self.number = number
        self.state = "running"
        """``running``, ``frozen``, ``killed``, or ``stopped``: what the story has made of it."""
        self._log = directory / f"worker_{number}.log"
        command = [sys.executable, "-m", "awa_cron", "run", "awa_cron.demo.app:client", "--log-format", "json"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603
                command,
                env=os.environ | {"AWA_CRON_DSN": dsn},
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # the viewer's Ctrl-C is for the demo, which then stops its workers
            )

    def __str__(self) -> str:
        return f"worker {self.number}"

    @property
    def pid(self) -> int:
        """The process's id, which is also part of its name in the event log."""
        return self._process.pid

    def alive(self) -> bool:
        """Tell whether the process exists, running or frozen."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it with SIGKILL: no handler, no goodbye."""
        self._send(signal.SIGKILL)
        self._process.wait(STOP_TIMEOUT_S)
        self.state = "killed"

    def freeze(self) -> None:
        """Stop it with SIGSTOP, as a paused virtual machine or a long swap does."""
        self._send(signal.SIGSTOP)
        self.state = "frozen"

    def thaw(self) -> None:
        """Let it go on where it stood."""
        self._send(signal.SIGCONT)
        self.state = "running"

    def ask_to_stop(self) -> None:
        """Send SIGTERM, to be handled once it runs."""
        self._send(signal.SIGTERM)
        self._send(signal.SIGCONT)

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status; None if it has not come in time."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self.state = "stopped"
        return status

    def said(self, message: str) -> list[dict[str, object]]:
        """Return the records of its log with this message."""
        found = []
        for line in self._log.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and record.get("message") == message:
                found.append(record)
        return found

    def last_words(self) -> str:
        """Return the end of its log, for when something went wrong."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:]

    def _send(self, number: signal.Signals) -> None:
        if self.alive():
            os.killpg(self.pid, number)


class Workers:
    """All workers of the demo. Leaving the context kills what still runs."""

    def __init__(self, dsn: str, directory: Path) -> None:
        self._dsn = dsn
        self._directory = directory
        self.all: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.all:
            if worker.alive():
                worker.kill()

    def start(self) -> Worker:
        """Start one more."""
        worker = Worker(len(self.all) + 1, self._dsn, self._directory)
        self.all.append(worker)
        return worker

    def with_pid(self, pid: int | None) -> Worker | None:
        """Return the worker of a process id."""
        return next((worker for worker in self.all if worker.pid == pid), None)

    def stop(self) -> dict[Worker, int | None]:
        """Ask all to stop, and wait.

        Returns:
            The exit status of each that the story has not killed; None for one that does not stop.
        """
        expected = [worker for worker in self.all if worker.state != "killed"]
        for worker in expected:
            worker.ask_to_stop()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        return {worker: worker.wait(max(0.0, deadline - time.monotonic())) for worker in expected}
