"""Instances: processes that run ``awa-cron run``, started again when they end, as any service is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from faults import ROOT

STOP_TIMEOUT_S = 15.0
RESTART_AFTER_S = 0.5


class Instance:
    """One of them.

    Args:
        name: How the log of the run calls it.
        module: MODULE:CLIENT.
        dsn: Its database, through its own wire.
        directory: Where its output goes.
        options: Further ones for ``awa-cron run``.
        variables: Further ones of its environment.
    """

    def __init__(self, name: str, module: str, dsn: str, directory: Path, *options: str, **variables: str) -> None:
        self.name = name
        self.module = module
        self.wanted = False
        self.starts = 0
        self.ended: Counter[int] = Counter()
        """Exit statuses of ends that nobody asked for."""
        self._output = directory / f"{name}.log"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "scripts")]),
            "AWA_CRON_DSN": dsn,
            **variables,
        }

    def __str__(self) -> str:
        return self.name

    @property
    def pid(self) -> int | None:
        """The process that runs now, which is also a part of its name in the event log."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start it, and keep it running from now on."""
        self.wanted = True
        if self.pid is not None:
            return
        self.starts += 1
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "awa_cron", "run", self.module, "--log-format", "json", *self._options],
                env=self._environment,
                cwd=self._output.parent,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.wanted = False
        self._send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(STOP_TIMEOUT_S)

    def freeze(self) -> None:
        """Stop it with SIGSTOP, as a paused virtual machine or a long swap does."""
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on where it stood."""
        self._send(signal.SIGCONT)

    async def stop(self) -> None:
        """Ask it to end, as a deployment does, and kill it when it does not."""
        self.wanted = False
        self._send(signal.SIGTERM)
        self._send(signal.SIGCONT)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while self.pid is not None and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        if self.pid is not None:
            self.ended[-1] += 1
            self.kill()

    async def supervise(self) -> None:
        """Start it again whenever it has ended though it is wanted."""
        while True:
            await asyncio.sleep(0.1)
            if self.wanted and self._process is not None and (status := self._process.poll()) is not None:
                self.ended[status] += 1
                await asyncio.sleep(RESTART_AFTER_S)
                if self.wanted:
                    self.start()

    def records(self, message: str) -> list[dict[str, Any]]:
        """Return the records of its log with this message."""
        found = []
        for line in self._lines():
            if message in line:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                if record.get("message") == message:
                    found.append(record)
        return found

    def crashes(self) -> list[str]:
        """Return what the interpreter itself printed: a traceback that nobody has caught."""
        lines = self._lines()
        return ["\n".join(lines[i : i + 40]) for i, line in enumerate(lines) if line.startswith("Traceback")]

    def last_words(self, lines: int = 5) -> str:
        """Return the end of its log."""
        return "\n".join(self._lines()[-lines:])

    def _lines(self) -> list[str]:
        if not self._output.exists():
            return []
        return self._output.read_text(encoding="utf-8", errors="replace").splitlines()

    def _send(self, number: signal.Signals) -> None:
        if (pid := self.pid) is not None:
            os.killpg(pid, number)
