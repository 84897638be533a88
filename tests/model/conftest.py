"""Says at the end of a run how far the machine went on Postgres."""

from __future__ import annotations

import pytest

from tests.model import coverage, ledger
from tests.model.machine import EDGES, STEPS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if STEPS:
        taken = ", ".join(f"{action} {count}" for action, count in STEPS.most_common())
        terminalreporter.write_line(f"calls of the machine on Postgres: {STEPS.total()} ({taken})")
    if EDGES and ledger.kept():
        reachable = coverage.reachable()
        ledger.record("walks", calls=STEPS.total(), edges=len(EDGES & reachable), reachable=len(reachable))
        terminalreporter.write_line(f"edges of the spec, abstracted: {len(EDGES & reachable)} of {len(reachable)}")
