"""Says at the end of a run how far the machine went on Postgres."""

from __future__ import annotations

import pytest

from tests.model.machine import STEPS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if STEPS:
        taken = ", ".join(f"{action} {count}" for action, count in STEPS.most_common())
        terminalreporter.write_line(f"steps of the machine on Postgres: {STEPS.total()} ({taken})")
