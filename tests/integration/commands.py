"""Runs the command line as users do: real processes, in a directory of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import awa_cron

SOURCE = Path(awa_cron.__file__).parent.parent


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "awa_cron", *arguments]


def environment(**variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWA_CRON")}
    return inherited | {"PYTHONPATH": str(SOURCE)} | variables


def run(
    *arguments: str, cwd: Path | None = None, timeout_s: float = 60, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a verb to its end."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        cwd=cwd,
        env=environment(**variables),
    )


@contextmanager
def running(*arguments: str, cwd: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Run a verb beside the test; whatever happens, it does not outlive it."""
    process = subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=environment(**variables),
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def eventually(condition: Callable[[], bool], what: str, timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.05)
