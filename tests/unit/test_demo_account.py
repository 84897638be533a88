"""The demo's accounts can fail: each kind of wrong is seen, each good reason is taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from awa_cron.demo.account import Account, Pass, Pause, QueuedJob, Run, account
from awa_cron.model import MissedFirePolicy

COALESCE, CATCH_UP = MissedFirePolicy.COALESCE, MissedFirePolicy.CATCH_UP


def at(second: float) -> datetime:
    return datetime(2026, 1, 1, 12, 0, tzinfo=UTC) + timedelta(seconds=second)


def one_pass(second: int, *fires: int, name: str = "s") -> Pass:
    """A pass just after a second, which enqueued these instants, by default the second itself."""
    return Pass(clock=at(second + 0.01), fires={name: tuple(map(at, fires or (second,)))})


def balance(
    *,
    due: range,
    jobs: list[int],
    ran: list[int] | None = None,
    passes: list[Pass] | None = None,
    pauses: list[Pause] | None = None,
    policy: MissedFirePolicy = COALESCE,
) -> Account:
    """Balance a schedule whose job for second n has the id 100 + its place."""
    queued = [
        QueuedJob(id=100 + i, fire=at(second), attempts=1, created_at=at(second + 0.01))
        for i, second in enumerate(jobs)
    ]
    runs = [Run(job_id=job.id, fire=job.fire, finished=True) for job in queued]
    if ran is not None:
        runs = [run for run in runs if run.fire in set(map(at, ran))]
    return account(
        "s",
        policy=policy,
        due=[at(second) for second in due],
        jobs=queued,
        runs=runs,
        passes=[one_pass(second) for second in jobs] if passes is None else passes,
        pauses=pauses or [],
    )


@pytest.mark.parametrize("policy", [COALESCE, CATCH_UP])
def test_a_job_for_every_instant_balances(policy: MissedFirePolicy) -> None:
    result = balance(due=range(5), jobs=[0, 1, 2, 3, 4], policy=policy)
    assert (result.due, result.enqueued, result.executed, result.balances) == (5, 5, 5, True)


def test_instants_before_the_first_pass_of_a_new_leader_are_coalesced() -> None:
    result = balance(due=range(6), jobs=[0, 4, 5])
    assert (result.coalesced, result.lost, result.balances) == (3, (), True)


def test_an_instant_that_a_pass_had_before_its_eyes_and_passed_over_is_lost() -> None:
    passes = [one_pass(0), one_pass(1, name="other"), one_pass(2)]
    result = balance(due=range(3), jobs=[0, 2], passes=passes)
    assert (result.lost, result.coalesced, result.balances) == ((at(1),), 0, False)


def test_a_pass_that_had_looked_earlier_proves_nothing() -> None:
    slow = Pass(clock=at(1.2), fires={"other": (at(0),)})
    result = balance(due=range(3), jobs=[0, 2], passes=[one_pass(0), slow, one_pass(2)])
    assert (result.coalesced, result.lost) == (1, ())


def test_instants_of_a_pause_are_explained_although_passes_went_on() -> None:
    passes = [one_pass(0), *(one_pass(second, name="other") for second in (1, 2, 3)), one_pass(4)]
    pauses = [Pause(start=at(0.5), end=at(3.5))]
    result = balance(due=range(5), jobs=[0, 4], passes=passes, pauses=pauses)
    assert (result.paused, result.coalesced, result.lost) == (3, 0, ())


def test_a_pause_excuses_nothing_that_was_passed_over_before_it() -> None:
    passes = [one_pass(0), one_pass(1, name="other"), one_pass(4)]
    result = balance(due=range(5), jobs=[0, 4], passes=passes, pauses=[Pause(start=at(1.5), end=at(3.5))])
    assert result.lost == (at(1),)


def test_a_catch_up_schedule_has_no_excuse() -> None:
    result = balance(due=range(4), jobs=[0, 3], policy=CATCH_UP)
    assert (result.lost, result.balances) == ((at(1), at(2)), False)


def test_the_last_instants_are_lost_when_no_later_job_stands_for_them() -> None:
    assert balance(due=range(4), jobs=[0, 1]).lost == (at(2), at(3))


def test_an_instant_whose_job_never_ran_to_its_end_is_lost() -> None:
    result = balance(due=range(3), jobs=[0, 1, 2], ran=[0, 2])
    assert (result.executed, result.lost, result.balances) == (2, (at(1),), False)


def test_two_jobs_for_an_instant_are_a_duplicate() -> None:
    result = balance(due=range(3), jobs=[0, 1, 1, 2])
    assert (result.duplicated, result.enqueued, result.balances) == ((at(1),), 3, False)


def test_a_job_that_is_not_due_is_stray() -> None:
    result = balance(due=range(1, 3), jobs=[0, 1, 2])
    assert (result.stray, result.balances) == ((at(0),), False)


@pytest.mark.parametrize(("attempts", "duplicated"), [(2, ()), (1, (at(0),))])
def test_a_second_run_is_honest_only_as_a_second_attempt(attempts: int, duplicated: tuple[datetime, ...]) -> None:
    result = account(
        "s",
        policy=COALESCE,
        due=[at(0)],
        jobs=[QueuedJob(id=1, fire=at(0), attempts=attempts, created_at=at(0.01))],
        runs=[Run(job_id=1, fire=at(0), finished=False), Run(job_id=1, fire=at(0), finished=True)],
        passes=[one_pass(0)],
        pauses=[],
    )
    assert (result.repeated, result.executed, result.duplicated) == (1, 1, duplicated)


def test_a_triggered_job_is_counted_apart_and_must_run() -> None:
    def triggered(*, finished: bool) -> Account:
        return account(
            "s",
            policy=COALESCE,
            due=[],
            jobs=[QueuedJob(id=7, fire=None, attempts=1, created_at=at(0))],
            runs=[Run(job_id=7, fire=None, finished=finished)],
            passes=[],
            pauses=[],
        )

    assert (triggered(finished=True).triggered, triggered(finished=True).balances) == (1, True)
    assert triggered(finished=False).unfinished_triggers == (7,)
    assert not triggered(finished=False).balances
