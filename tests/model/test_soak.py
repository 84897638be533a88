"""Random walks on Postgres for as long as one likes: ``scripts/soak 600``."""

from __future__ import annotations

import os
import subprocess
import time

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from assurance import ROOT
from tests.model.machine import on_postgres

SECONDS = float(os.environ.get("AWA_CRON_SOAK_SECONDS", "0"))


@pytest.mark.skipif(SECONDS <= 0, reason="scripts/soak says for how long")
@pytest.mark.timeout(SECONDS + 600)
def test_random_walks_go_in_lock_step_with_the_model(dsn: str) -> None:
    """Long programs, other ones each time; a failure is shrunk and printed with what reproduces it."""
    walk = settings(
        deadline=None, max_examples=10, stateful_step_count=200, derandomize=False, print_blob=True, database=None
    )
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with on_postgres(dsn) as machine:
            run_state_machine_as_test(machine, settings=walk)


@pytest.mark.parametrize("arguments", [[], ["0"], ["000"], ["-5"], ["1.5"], ["soon"], [""], ["1", "2"]])
def test_what_is_no_number_of_seconds_is_told_at_once(arguments: list[str]) -> None:
    told = subprocess.run([ROOT / "scripts" / "soak", *arguments], capture_output=True, text=True, check=False)
    assert (2, "", True) == (told.returncode, told.stdout, told.stderr.startswith("scripts/soak: ")), told.stderr
