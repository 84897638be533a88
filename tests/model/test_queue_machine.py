"""The queue's machine on the model alone, and in lock-step with Postgres."""

from __future__ import annotations

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model import ledger
from tests.model.queue_machine import STEPS, QueueMachine, on_postgres

# Hypothesis' own settings for machines drop these too; replacing them has to say it again.
MACHINE = settings(deadline=None, stateful_step_count=25)


def test_the_model_keeps_every_property() -> None:
    run_state_machine_as_test(QueueMachine, settings=MACHINE)


def test_postgres_goes_in_lock_step_with_the_model(dsn: str) -> None:
    before = STEPS.total()
    with on_postgres(dsn) as machine:
        run_state_machine_as_test(machine, settings=MACHINE)
    ledger.record("queue machine", steps=STEPS.total() - before, actions=len(STEPS))
