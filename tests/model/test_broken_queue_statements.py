"""Statements of the queue broken on purpose, each caught by the property that it breaks."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from awa_cron.sql import Schema
from tests.model.queue_machine import PostgresQueueMachine, on_postgres
from tests.model.queue_model import Offer
from tests.model.test_broken_statements import Broken, Edit, replacing


@dataclass(frozen=True)
class Variant:
    """A broken statement, the property that must notice, and what leads there: Python that drives the machine."""

    name: str
    property: str
    statement: str
    edit: Edit
    steps: str


def blind(*guards: str) -> Edit:
    """Let the conditions with these labels hold whatever they compare; their parameters keep their types."""

    def edit(text: str) -> str:
        for guard in guards:
            text, changed = re.subn(
                rf"^  ( +)?AND (.*)  -- {guard}$", r"AND (\2) IS NOT NULL", text, flags=re.MULTILINE
            )
            assert changed == 1, f"{guard} labels {changed} conditions"
        return text

    return edit


def both(first: Edit, second: Edit) -> Edit:
    return lambda text: second(first(text))


A_JOB = "sync digest 2, enqueue digest, claim ann"
LATE = f"{A_JOB}, freeze_worker ann, rescue ben, claim ben, thaw_worker ann"

VARIANTS = [
    Variant("QueuePauseIgnoredByClaim", "ClaimsOnlyFromRunningQueue", "claim",
            replacing("q.paused_at IS NOT NULL", "q.paused_at IS NULL"),
            "sync digest 2, enqueue digest, pause_queue reports, claim! ann"),
    Variant("CronPauseBlocksClaim", "SameAsModel", "claim",
            replacing("j.run_at <= clock.now", "j.run_at <= clock.now AND NOT EXISTS (SELECT 1 FROM awa.cron_jobs"
                      " AS c WHERE c.name = j.metadata ->> 'cron_name' AND c.paused_at IS NOT NULL)"),
            "sync digest 2, enqueue digest, pause digest, claim ann"),
    Variant("ClaimTakesRunning", "ClaimsOnlyFromRunningQueue", "claim",
            lambda text: text.replace("'retryable')", "'retryable', 'running')"), f"{A_JOB}, claim! ben"),
    Variant("ClaimDoesNotCount", "AttemptsOnlyRise", "claim",
            replacing("attempt = j.attempt + 1", "attempt = greatest(j.attempt, 1)"),
            f"{A_JOB}, fail ann, claim ben"),
    Variant("FinishWithoutFence", "FencedFinalisation", "finish",
            blind("StillRunning", "SameAttempt", "SameOwner"), f"{LATE}, late finish ann"),
    Variant("FailWithoutFence", "FencedFinalisation", "fail",
            blind("StillRunning", "SameAttempt", "SameOwner"), f"{LATE}, late fail ann"),
    Variant("SnoozeWithoutFence", "FencedFinalisation", "snooze",
            blind("StillRunning", "SameAttempt", "SameOwner"), f"{LATE}, late snooze ann"),
    Variant("CancelOwnWithoutFence", "FencedFinalisation", "cancel_own",
            blind("StillRunning", "SameAttempt", "SameOwner"), f"{LATE}, late cancel_own ann"),
    Variant("FenceWithoutState", "FinalStaysFinal", "finish", blind("StillRunning"),
            f"{A_JOB}, cancel_jobs digest running, late finish ann"),
    Variant("FenceWithoutAttempt", "FencedFinalisation", "finish", blind("SameAttempt"),
            f"{A_JOB}, freeze_worker ann, rescue ben, thaw_worker ann, claim ann, late finish ann"),
    Variant("RescueTakesLiving", "SameAsModel", "rescue",
            replacing("j.heartbeat_at < clock.now -", "j.heartbeat_at <= clock.now - 0 *"), f"{A_JOB}, rescue ben"),
    Variant("HeartbeatWithoutFence", "SameAsModel", "heartbeat", blind("SameAttempt"),
            f"{A_JOB}, freeze_worker ann, rescue ben, thaw_worker ann, claim- ann, rescue ben"),
    Variant("RetryForever", "RetryBudget", "fail",
            replacing("SET state = CASE WHEN j.attempt < j.max_attempts", "SET state = CASE WHEN true"),
            "sync digest 1, enqueue digest, claim ann, fail ann"),
    Variant("DeadLetterTooEarly", "RetryBudget", "fail",
            replacing("SET state = CASE WHEN j.attempt < j.max_attempts",
                      "SET state = CASE WHEN j.attempt + 1 < j.max_attempts"), f"{A_JOB}, fail ann"),
    Variant("SilentJobCompleted", "CompletedByItsOwner", "rescue",
            replacing("SET state = CASE WHEN j.attempt < j.max_attempts THEN 'retryable' ELSE 'failed' END",
                      "SET state = 'completed'"), f"{A_JOB}, crash_worker ann, rescue ben"),
    Variant("SnoozeCountsAttempt", "BudgetIsTheJobsOwn", "snooze",
            replacing("max_attempts = j.max_attempts + 1", "max_attempts = j.max_attempts"),
            f"{A_JOB}, snooze ann"),
    Variant("SnoozeLowersTheAttempt", "AttemptsOnlyRise", "snooze",
            replacing("max_attempts = j.max_attempts + 1", "attempt = j.attempt - 1"), f"{A_JOB}, snooze ann"),
    Variant("CancelOwnIsTriedAgain", "OutcomeIsWritten", "cancel_own",
            replacing("state = 'cancelled'", "state = 'retryable'"), f"{A_JOB}, cancel_own ann"),
    Variant("CancelTakesAll", "CancelOnlyNamed", "cancel_jobs",
            replacing("AND j.metadata ->> 'cron_name' = $1::text\n      AND j.state", "AND j.state"),
            "sync digest 2, sync ledger 1, enqueue digest, enqueue ledger, cancel_jobs ledger waiting"),
    Variant("CancelTakesRunning", "CancelOnlyNamed", "cancel_jobs",
            replacing("f.state <> 'running' OR $2::boolean", "true OR $2::boolean"),
            f"{A_JOB}, enqueue digest, cancel_jobs digest waiting"),
    Variant("CancelTakesDead", "FinalStaysFinal", "cancel_jobs",
            replacing("'retryable', 'running')", "'retryable', 'running', 'failed')"),
            "sync digest 1, enqueue digest, claim ann, fail ann, enqueue digest, cancel_jobs digest waiting"),
    Variant("PauseCancelsJobs", "CronPauseLeavesJobs", "pause",
            replacing("), event AS (", "), cancelled AS (UPDATE awa.jobs SET state = 'cancelled'"
                      " WHERE metadata ->> 'cron_name' = $1), event AS ("),
            "sync digest 2, enqueue digest, pause digest"),
    Variant("PauseQueuePausesSchedules", "QueuePauseTouchesOnlyPause", "pause_queue",
            replacing("), event AS (", "), more AS (UPDATE awa.cron_jobs SET paused_at = now()"
                      " WHERE queue = $1), event AS ("), "sync digest 2, pause_queue reports"),
    Variant("ResumeQueueResumesAll", "QueuePauseTouchesOnlyPause", "resume_queue",
            both(replacing("q.queue = $1::text", "$1::text IS NOT NULL"),
                 replacing("pg_notify($3::text, r.queue)", "max($3::text)")),
            "pause_queue email, pause_queue reports, resume_queue email"),
    Variant("QueuePauseBlocksEnqueue", "SameAsModel", "atomic_enqueue",
            replacing("AND b.last_fire <= clock.now ", "AND NOT EXISTS (SELECT 1 FROM awa.queue_meta AS q"
                      " WHERE q.queue = c.queue AND q.paused_at IS NOT NULL) AND b.last_fire <= clock.now "),
            "sync digest 2, pause_queue reports, enqueue digest"),
    Variant("RetryDeadWithoutBudget", "RetryBudget", "retry_dead",
            replacing("max_attempts = j.attempt + $6::integer", "max_attempts = j.attempt + 0 * $6::integer"),
            "sync digest 1, enqueue digest, claim ann, fail ann, retry_dead 1"),
    Variant("RetryDeadLowersAttempt", "AttemptsOnlyRise", "retry_dead",
            replacing("max_attempts = j.attempt + $6::integer", "attempt = 0, max_attempts = $6::integer"),
            "sync digest 1, enqueue digest, claim ann, fail ann, retry_dead 1"),
    Variant("RetryDeadTakesCompleted", "FinalStaysFinal", "retry_dead",
            replacing("AND ($1::bigint[] IS NULL OR j.id = ANY ($1::bigint[]))", "OR j.state = 'completed' AND"
                      " ($1::bigint[] IS NOT NULL)"),
            "sync digest 1, enqueue digest, enqueue digest, claim ann, fail ann 1, finish ann 2, retry_dead 1"),
    Variant("PurgeTakesWaiting", "StatesFollowTheGraph", "purge_dead",
            replacing("AND ($1::bigint[] IS NULL OR j.id = ANY ($1::bigint[]))", "AND $1::bigint[] IS NOT NULL"
                      " OR j.state = 'available'"),
            "sync digest 1, enqueue digest, claim ann, fail ann, enqueue digest, purge_dead 1"),
    Variant("RetentionTakesWaiting", "StatesFollowTheGraph", "purge_finished",
            both(replacing("AND j.finalized_at < $1::timestamptz", "OR j.state = 'available'"),
                 replacing("LIMIT $3::bigint", "LIMIT 10 + $3::bigint")),
            "sync digest 1, enqueue digest, claim ann, finish ann, enqueue digest, purge_finished 1"),
    Variant("RetentionTakesRunning", "StatesFollowTheGraph", "purge_finished",
            both(replacing("AND j.finalized_at < $1::timestamptz", "OR j.state = 'running'"),
                 replacing("LIMIT $3::bigint", "LIMIT 10 + $3::bigint")),
            "sync digest 1, enqueue digest, claim ann, finish ann, enqueue digest, claim ann, purge_finished 1"),
    Variant("BudgetOfTheSchedule", "RetryBudget", "fail",
            replacing("SET state = CASE WHEN j.attempt < j.max_attempts", "SET state = CASE WHEN j.attempt <"
                      " (SELECT max(c.max_attempts) FROM awa.cron_jobs AS c)"),
            "sync digest 1, enqueue digest, claim ann, sync digest 2, fail ann"),
    Variant("SubmitTakesLabel", "JobsBeginFresh", "submit",
            replacing("$7::jsonb", "$7::jsonb || '{\"cron_name\": \"digest\"}'"), "sync digest 2, submit 1"),
]  # fmt: skip


def play(dsn: str, schema: Schema, steps: str, only: str | None = None) -> None:
    """Take the machine through steps of the model on a real database.

    ``claim!`` is one that the model does not enable, ``claim-`` one whose answer is lost, and ``late`` an outcome
    of a claim that the worker has lost; the number of a job says which of several is meant.
    """
    with on_postgres(dsn, schema, only) as on_a_database:
        machine = on_a_database()
        machine.open()
        for step in steps.split(", "):
            _perform(machine, *step.split())


def _perform(machine: PostgresQueueMachine, action: str, who: str, *more: str) -> None:
    state = machine.state
    match action:
        case "claim" | "claim-" | "claim!":
            room = machine.model.capacity - len(state.holds[who])
            taken = machine.claimed(who, None, room, heard=action != "claim-", possible=[])
            if action == "claim!":
                machine.unexpected("claim", *((who, j, True) for j in taken))
            else:
                assert taken, "SameAsModel: nothing was claimed"
                machine.take([("claim", (who, j, action != "claim-")) for j in taken], None)
        case "finish" | "fail" | "snooze" | "cancel_own":
            claims = [claim for claim in sorted(state.holds[who]) if not more or claim.job == int(more[0])]
            machine.perform(action, who, claims[0], True)
        case "late":
            outcome, who = who, more[0]
            (claim,) = [c for c in state.holds[who] if not machine.model.owns(state, who, c)]
            machine.take([("settle_too_late", (who, claim))], machine.too_late(outcome, who, claim))
        case "rescue":
            machine.take([("rescue", each) for each in machine.enabled.get("rescue", [])], machine.rescued(who))
        case "sync":
            (offer,) = [o for o in machine.model.offers[who] if o.max_attempts == int(more[0])]
            machine.perform("sync", who, offer)
        case "submit":
            machine.perform("submit", Offer("email", int(who)))
        case "cancel_jobs":
            machine.perform("cancel_jobs", who, more == ("running",))
        case "retry_dead" | "purge_dead" | "purge_finished":
            machine.perform(action, int(who))
        case _:
            machine.perform(action, who)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_broken_statement_is_caught_by_the_property_that_it_breaks(dsn: str, variant: Variant) -> None:
    play(dsn, Schema(), variant.steps)
    with pytest.raises(AssertionError, match=variant.property):
        play(dsn, Broken(variant.statement, variant.edit), variant.steps, only=variant.property)
