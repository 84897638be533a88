"""Lines of the log, as text."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from awa_cron.cli.logs import TextFormatter


def test_control_characters_do_not_reach_the_terminal() -> None:
    hostile = "\x1b[31mred\x9b2J\x7f\r\nnext\u202e"
    record = logging.LogRecord("awa\x1bcron", logging.INFO, "f", 1, "%s", (hostile,), None)
    record.__dict__ |= {"error": hostile, "key\x1b": "v"}
    record.exc_info = (ValueError, ValueError(hostile), None)
    first, *traceback = TextFormatter().format(record).split("\n")
    assert all(line.isprintable() for line in (first, *traceback))
    assert r"\x1b[31mred\x9b2J\x7f\r\nnext\u202e" in first
    assert [r"ValueError: \x1b[31mred\x9b2J\x7f\r", r"next\u202e"] == traceback


@pytest.mark.parametrize(("level", "said"), [("info", False), ("debug", True)])
def test_tracebacks_of_the_drivers_pool_are_for_who_debugs(level: str, said: bool) -> None:
    program = (
        f"import logging; from awa_cron.cli import logs; logs.configure('text', {level!r});"
        "logging.getLogger('asyncpg.pool').warning('no floor', exc_info=OSError('gone'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert said is ("no floor" in done.stderr)
