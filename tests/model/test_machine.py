"""The machine on the model alone, in lock-step with Postgres, and against statements that are broken on purpose."""

from __future__ import annotations

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import ProtocolMachine, on_postgres

# Hypothesis' own settings for machines drop these too; replacing them has to say it again.
MACHINE = settings(deadline=None, stateful_step_count=60)


def test_the_model_keeps_every_property() -> None:
    run_state_machine_as_test(ProtocolMachine, settings=MACHINE)


def test_postgres_goes_in_lock_step_with_the_model(dsn: str) -> None:
    with on_postgres(dsn) as machine:
        run_state_machine_as_test(machine, settings=MACHINE)
