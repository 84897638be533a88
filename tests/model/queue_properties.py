"""The properties of ``spec/AwaQueue.tla``, checked on single states and single steps of a run.

They look only at the states before and after and at the step's name and arguments, so the states may as well have
been read from a real database. What the spec says with ENABLED is asked of the model, in the state as it was found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.model.properties import Invariant, StepProperty, check_all
from tests.model.queue_model import FINAL, WAITING, Claim, Job, QueueModel, Row, State

Arguments = tuple[object, ...]


def ended(job: Job) -> bool:
    return job.state in FINAL


def waits(job: Job) -> bool:
    return job.state in WAITING


def runs(job: Job) -> bool:
    return job.state == "running"


def current(state: State, w: str, claim: Claim) -> bool:
    job = state.job(claim.job)
    return runs(job) and job.attempt == claim.attempt and job.owner == w


def in_good_hands(state: State, j: int) -> bool:
    job = state.job(j)
    if not runs(job) or job.owner is None:
        return False
    return state.worker[job.owner] == "up" and Claim(j, job.attempt) in state.holds[job.owner]


def free_hands(model: QueueModel, state: State) -> list[str]:
    return [
        w for w in model.workers if state.worker[w] == "up" and len(state.holds[w]) < model.capacity
    ]  # fmt: skip


def changes(before: State, then: State) -> Iterator[tuple[int, Job, Job]]:
    """Yield the jobs that were there before and are another now."""
    for j in before.numbers:
        if j in then.numbers and before.job(j) != then.job(j):
            yield j, before.job(j), then.job(j)


def but(before: State, then: State, *fields: str) -> bool:
    """Tell whether a step changed nothing beside these variables."""
    return replace(before, **{field: getattr(then, field) for field in fields}) == then


def type_ok(model: QueueModel, state: State) -> Iterator[str]:
    for row in state.rows.values():
        if row is not None and not (row.queue in model.queues and 1 <= row.max_attempts <= model.attempt_limit):
            yield f"a row out of bounds: {row}"
    for job in state.jobs:
        in_bounds = 0 <= job.attempt <= model.attempt_limit and 1 <= job.max_attempts <= model.attempt_limit
        known = job.state in WAITING | FINAL | {"running"} and job.queue in model.queues
        if not (in_bounds and known) or job.cron_name not in {*model.schedules, None}:
            yield f"a job out of bounds: {job}"
    if set(state.worker.values()) - {"up", "frozen", "down"}:
        yield f"workers are {state.worker}"


def no_lost_job(model: QueueModel, state: State) -> Iterator[str]:
    for j in state.numbers:
        job = state.job(j)
        if ended(job):
            continue
        if waits(job):
            for w in free_hands(model, state):
                if not state.queue_paused[job.queue] and model.claim(state, w, j) is None:
                    yield f"job {j} waits, and {w} cannot claim it"
        elif not runs(job):
            yield f"job {j} is {job.state}"
        elif in_good_hands(state, j):
            assert job.owner is not None
            claim = Claim(j, job.attempt)
            if model.finish(state, job.owner, claim) is None or model.fail(state, job.owner, claim) is None:
                yield f"job {j} runs, and {job.owner} cannot say how it ended"
        elif "up" in state.worker.values() and model.rescue(state, j) is None:
            yield f"job {j} runs in nobody's hands, and cannot be rescued"


def one_owner(model: QueueModel, state: State) -> Iterator[str]:
    for w in model.workers:
        for claim in state.holds[w]:
            others = [v for v in model.workers if v != w and claim in state.holds[v]]
            if others:
                yield f"{w} and {others} hold {claim}"
            if claim.job not in state.numbers or claim.attempt > state.job(claim.job).attempt:
                yield f"{w} holds {claim}, which has not begun"
            elif claim.attempt == state.job(claim.job).attempt and state.job(claim.job).owner != w:
                yield f"{w} holds {claim}, whose owner is {state.job(claim.job).owner}"


def rescue_spares_the_living(model: QueueModel, state: State) -> Iterator[str]:
    for j in state.numbers:
        if in_good_hands(state, j) and model.rescue(state, j) is not None:
            yield f"job {j} is in good hands and can be rescued"


def workers_keep_to_themselves(model: QueueModel, state: State) -> Iterator[str]:
    for w, held in state.holds.items():
        if len(held) > model.capacity:
            yield f"{w} holds {len(held)} claims, and has room for {model.capacity}"
        if held and state.worker[w] == "down":
            yield f"{w} is down and holds {held}"


def retry_budget(_: QueueModel, state: State) -> Iterator[str]:
    for job in state.jobs:
        spent = job.attempt >= job.max_attempts
        if job.attempt > job.max_attempts or (waits(job) and spent) or (job.state == "failed" and not spent):
            yield f"{job}"


def trigger_ignores_pause(model: QueueModel, state: State) -> Iterator[str]:
    for s, row in state.rows.items():
        if row is not None and len(state.jobs) < model.max_jobs:
            then = model.trigger(state, s)
            if then is None or len(then.jobs) != len(state.jobs) + 1:
                yield f"{s} cannot be triggered"


def queue_pause_blocks_dispatch_only(model: QueueModel, state: State) -> Iterator[str]:
    room = len(state.jobs) < model.max_jobs
    for q in (q for q, paused in state.queue_paused.items() if paused):
        if room:
            yield from _makes_no_jobs(model, state, q)
        for j in (j for j in state.numbers if state.job(j).queue == q):
            job = state.job(j)
            if any(model.claim(state, w, j) is not None for w in model.workers):
                yield f"{q} is paused, and job {j} can be claimed"
            if not ended(job) and job.cron_name and model.cancel_jobs(state, job.cron_name, True) is None:
                yield f"{q} is paused, and job {j} cannot be cancelled"
            if in_good_hands(state, j):
                assert job.owner is not None
                claim = Claim(j, job.attempt)
                if model.finish(state, job.owner, claim) is None or model.fail(state, job.owner, claim) is None:
                    yield f"{q} is paused, and job {j} cannot end"


def _makes_no_jobs(model: QueueModel, state: State, q: str) -> Iterator[str]:
    for s, row in state.rows.items():
        if row is not None and row.queue == q:
            fires = row.paused or model.enqueue(state, s) is not None
            if not fires or model.trigger(state, s) is None:
                yield f"{q} is paused, and {s} makes no jobs"
    if any(model.submit(state, offer) is None for offer in model.offered):
        yield f"{q} is paused, and no job can be made by hand"


def pauses_independent(model: QueueModel, state: State) -> Iterator[str]:
    for s, row in state.rows.items():
        may = row is not None and not row.paused and len(state.jobs) < model.max_jobs
        if may != (model.enqueue(state, s) is not None):
            yield f"{s}: its fires become jobs: {not may}"
    free = free_hands(model, state)
    for j in state.numbers:
        job = state.job(j)
        for w in model.workers:
            may = w in free and waits(job) and not state.queue_paused[job.queue]
            if may != (model.claim(state, w, j) is not None):
                yield f"{w} can claim job {j}: {not may}"


def cancel_needs_only_the_label(model: QueueModel, state: State) -> Iterator[str]:
    for j in state.numbers:
        job = state.job(j)
        if job.cron_name is not None and (waits(job) or runs(job)):
            then = model.cancel_jobs(state, job.cron_name, runs(job))
            if then is None or then.job(j).state != "cancelled":
                yield f"job {j} of {job.cron_name} cannot be cancelled"


def operators_are_heard(model: QueueModel, state: State) -> Iterator[str]:
    for q, paused in state.queue_paused.items():
        if (model.resume_queue if paused else model.pause_queue)(state, q) is None:
            yield f"{q} cannot be paused or resumed"
    for j in (j for j in state.numbers if state.job(j).state == "failed"):
        limit = state.job(j).attempt + model.fresh_attempts > model.attempt_limit
        if (not limit and model.retry_dead(state, j) is None) or model.purge_dead(state, j) is None:
            yield f"job {j} is dead and cannot be put back or purged"
    yield from _deaf_to_schedules(model, state)


def _deaf_to_schedules(model: QueueModel, state: State) -> Iterator[str]:
    for s, row in state.rows.items():
        if row is not None:
            if (model.resume if row.paused else model.pause)(state, s) is None:
                yield f"{s} cannot be paused or resumed"
            if model.remove(state, s) is None:
                yield f"{s} cannot be removed"
        for offer in model.offers[s]:
            if (row is None or row.offer != offer) and model.sync(state, s, offer) is None:
                yield f"{s} cannot be given {offer}"


def workers_are_heard(model: QueueModel, state: State) -> Iterator[str]:
    free = free_hands(model, state)
    for w in (w for w in model.workers if state.worker[w] == "up"):
        for j in (j for j in state.numbers if waits(state.job(j))):
            if w in free and not state.queue_paused[state.job(j).queue]:
                then = model.claim(state, w, j)
                if then is None or Claim(j, state.job(j).attempt + 1) not in then.holds[w]:
                    yield f"{w} cannot claim job {j}"
        for claim in state.holds[w]:
            if not current(state, w, claim):
                outcomes = [model.settle_too_late(state, w, claim)]
            else:
                outcomes = [act(state, w, claim) for act in (model.finish, model.fail, model.cancel_own)]
                if state.job(claim.job).max_attempts < model.attempt_limit:
                    outcomes.append(model.snooze(state, w, claim))
            if any(then is None or claim in then.holds[w] for then in outcomes):
                yield f"{w} cannot say or hear how {claim} ended"


def jobs_stay(_: QueueModel, before: State, __: str, ___: Arguments, then: State) -> Iterator[str]:
    if len(then.jobs) - len(before.jobs) not in {0, 1}:
        yield f"{len(then.jobs) - len(before.jobs)} jobs more"
    for j, old, new in changes(before, then):
        if (old.cron_name, old.queue) != (new.cron_name, new.queue):
            yield f"job {j} became {new}"


def jobs_begin_fresh(
    model: QueueModel, before: State, action: str, arguments: Arguments, then: State
) -> Iterator[str]:
    if len(then.jobs) <= len(before.jobs):
        return
    *old, new = then.jobs
    right = [
        Job(s, row.queue, "available", 0, row.max_attempts, None)
        for s, row in before.rows.items()
        if row is not None
    ]
    if action == "submit":
        right = [
            Job(None, o.queue, "available", 0, o.max_attempts, None) for o in model.offered if (o,) == arguments
        ]
        if not but(before, then, "jobs"):
            yield f"a job by hand changed something else: {before} to {then}"
    if tuple(old) != before.jobs or new not in right:
        yield f"{new} began, beside {old}"


def states_follow_the_graph(_: QueueModel, before: State, __: str, ___: Arguments, then: State) -> Iterator[str]:
    for j, old, new in changes(before, then):
        if old.state != new.state and not (
            (waits(old) and new.state in {"running", "cancelled"})
            or (runs(old) and new.state in {"completed", "failed", "cancelled", "retryable", "scheduled"})
            or (old.state == "failed" and new.state in {"available", "purged"})
            or (old.state in {"completed", "cancelled"} and new.state == "purged")
        ):
            yield f"job {j} went from {old.state} to {new.state}"


def final_stays_final(
    _: QueueModel, before: State, action: str, arguments: Arguments, then: State
) -> Iterator[str]:
    for j, old, new in changes(before, then):
        of_the_dead = action in {"retry_dead", "purge_dead"} and old.state == "failed"
        by_retention = action == "purge_finished" and old.state in {"completed", "cancelled"}
        if ended(old) and not (arguments == (j,) and (of_the_dead or by_retention)):
            yield f"{action} changed job {j}, which had ended: {old} to {new}"


def claims_only_from_running_queue(
    model: QueueModel, before: State, _: str, __: Arguments, then: State
) -> Iterator[str]:
    for j, old, new in changes(before, then):
        if old.attempt != new.attempt and not (
            not before.queue_paused[old.queue]
            and waits(old)
            and runs(new)
            and new.owner in free_hands(model, before)
        ):
            yield f"job {j} began an attempt: {old} to {new}"


def attempts_only_rise(_: QueueModel, before: State, __: str, ___: Arguments, then: State) -> Iterator[str]:
    for j, old, new in changes(before, then):
        rise = 1 if not runs(old) and runs(new) else 0
        if new.attempt - old.attempt != rise or (rise == 0 and new.owner != old.owner):
            yield f"job {j}: {old} to {new}"


def fences_are_fresh(_: QueueModel, before: State, __: str, ___: Arguments, then: State) -> Iterator[str]:
    for j, old, new in changes(before, then):
        if not runs(old) and runs(new):
            held = [w for w, claims in before.holds.items() if Claim(j, new.attempt) in claims]
            if held:
                yield f"{held} held attempt {new.attempt} of job {j} before it began"


def fenced_finalisation(_: QueueModel, before: State, __: str, ___: Arguments, then: State) -> Iterator[str]:
    for w, held in before.holds.items():
        for claim in held - then.holds[w]:
            for j, old, new in changes(before, then):
                if j != claim.job or not current(before, w, claim):
                    yield f"{w} let go of {claim}, and job {j} went from {old} to {new}"


def outcome_is_written(
    _: QueueModel, before: State, action: str, arguments: Arguments, then: State
) -> Iterator[str]:
    for w, held in before.holds.items():
        for claim in held:
            job, state = before.job(claim.job), then.job(claim.job).state
            failed = "failed" if job.attempt == job.max_attempts else "retryable"
            said = {"finish": "completed", "snooze": "scheduled", "cancel_own": "cancelled", "fail": failed}
            if action in said and arguments[:2] == (w, claim) and state != said[action]:
                yield f"{w} said {action} of {claim}, and it is {state}"
            let_go = claim not in then.holds[w] and then.worker[w] != "down"
            if current(before, w, claim) and let_go and state == "running":
                yield f"{w} let go of {claim} without a word"


def completed_by_its_owner(_: QueueModel, before: State, __: str, ___: Arguments, then: State) -> Iterator[str]:
    for j, old, new in changes(before, then):
        if new.state == "completed" != old.state and not in_good_hands(before, j):
            yield f"job {j} was completed, by nobody who ran it"


def silent_workers_are_silent(_: QueueModel, before: State, __: str, ___: Arguments, then: State) -> Iterator[str]:
    for w, held in before.holds.items():
        if held != then.holds[w] and before.worker[w] != "up" and then.worker[w] != "down":
            yield f"{w} is {before.worker[w]} and learned something"
    if before.worker != then.worker and not but(before, then, "worker", "holds"):
        yield f"a fault changed rows: {before} to {then}"
    if "up" not in before.worker.values():
        for j, old, new in changes(before, then):
            if runs(old) and new.state not in {"running", "cancelled"}:
                yield f"nobody is up, and job {j} became {new.state}"


def budget_is_the_jobs_own(model: QueueModel, before: State, _: str, __: Arguments, then: State) -> Iterator[str]:
    for j, old, new in changes(before, then):
        more = 1 if runs(old) and new.state == "scheduled" else 0
        if ended(old) and waits(new):
            # A second life's attempts count from where the first one ended.
            more = model.fresh_attempts
        if new.max_attempts - old.max_attempts != more:
            yield f"job {j}: {old} to {new}"


def trigger_leaves_schedule(
    _: QueueModel, before: State, action: str, arguments: Arguments, then: State
) -> Iterator[str]:
    if action == "trigger":
        one_more = len(then.jobs) == len(before.jobs) + 1 and then.jobs[-1].cron_name == arguments[0]
        if not one_more or not but(before, then, "jobs"):
            yield f"a trigger led from {before} to {then}"


def kept(before: State, then: State) -> Iterator[tuple[str, Row, Row]]:
    """Yield the schedules that have a row before and after."""
    for s, old in before.rows.items():
        new = then.rows[s]
        if old is not None and new is not None:
            yield s, old, new


def fires_become_jobs(
    _: QueueModel, before: State, action: str, arguments: Arguments, then: State
) -> Iterator[str]:
    for s, old, new in kept(before, then):
        if (action == "enqueue" and arguments == (s,)) != (new.last != old.last):
            yield f"{action} of {arguments}: {s} went from {old} to {new}"
        if new.last != old.last:
            marked = replace(old, last=old.last + 1)
            one_more = len(then.jobs) == len(before.jobs) + 1 and then.jobs[-1].cron_name == s
            rows = before.rows.but(s, marked) == then.rows
            if old.paused or not one_more or not rows or not but(before, then, "rows", "jobs"):
                yield f"{s} fired: {before} to {then}"


def remove_leaves_jobs(_: QueueModel, before: State, __: str, ___: Arguments, then: State) -> Iterator[str]:
    for s, old in before.rows.items():
        if old is not None and then.rows[s] is None and before.rows.but(s, None) != then.rows:
            yield f"{s} took other rows along"
        if old is not None and then.rows[s] is None and not but(before, then, "rows"):
            yield f"{s} was removed, and more changed: {before} to {then}"


def register_starts_fresh(model: QueueModel, before: State, _: str, __: Arguments, then: State) -> Iterator[str]:
    for s, new in then.rows.items():
        if before.rows[s] is None and new is not None:
            fresh = [Row(o.queue, o.max_attempts, 0, paused=False) for o in model.offers[s]]
            if new not in fresh or before.rows.but(s, new) != then.rows or not but(before, then, "rows"):
                yield f"{s} was registered as {new}: {before} to {then}"


def edit_leaves_jobs(model: QueueModel, before: State, _: str, __: Arguments, then: State) -> Iterator[str]:
    for s, old, new in kept(before, then):
        if old.offer != new.offer:
            edited = replace(old, queue=new.queue, max_attempts=new.max_attempts)
            right = new.offer in model.offers[s] and before.rows.but(s, edited) == then.rows
            if not right or not but(before, then, "rows"):
                yield f"{s} was edited from {old} to {new}: {before} to {then}"


def cron_pause_leaves_jobs(_: QueueModel, before: State, __: str, ___: Arguments, then: State) -> Iterator[str]:
    for s, old, new in kept(before, then):
        if old.paused != new.paused:
            turned = before.rows.but(s, replace(old, paused=not old.paused))
            if turned != then.rows or not but(before, then, "rows"):
                yield f"the pause of {s} changed more: {before} to {then}"


def queue_pause_touches_only_pause(
    _: QueueModel, before: State, __: str, ___: Arguments, then: State
) -> Iterator[str]:
    for q, paused in before.queue_paused.items():
        if then.queue_paused[q] != paused:
            alone = before.queue_paused.but(q, not paused) == then.queue_paused
            if not alone or not but(before, then, "queue_paused"):
                yield f"the pause of {q} changed more: {before} to {then}"


def cancel_only_named(
    _: QueueModel, before: State, action: str, arguments: Arguments, then: State
) -> Iterator[str]:
    if action == "cancel_jobs":
        s, running = arguments
        for j in before.numbers:
            old = before.job(j)
            taken = old.cron_name == s and (waits(old) or (bool(running) and runs(old)))
            if then.job(j) != (replace(old, state="cancelled") if taken else old):
                yield f"{action} of {arguments}: job {j} went from {old} to {then.job(j)}"
    for j, old, new in changes(before, then):
        if new.state == "cancelled" != old.state:
            by_name = action == "cancel_jobs" and old.cron_name is not None and arguments[0] == old.cron_name
            own = action == "cancel_own" and in_good_hands(before, j)
            if not by_name and not (own and arguments[:2] == (old.owner, Claim(j, old.attempt))):
                yield f"{action} of {arguments} cancelled job {j}"


INVARIANTS = (
    Invariant("TypeOK", "spec", type_ok),
    Invariant("NoLostJob", "P27", no_lost_job),
    Invariant("OneOwner", "P27", one_owner),
    Invariant("RescueSparesTheLiving", "P27", rescue_spares_the_living),
    Invariant("WorkersKeepToThemselves", "P27", workers_keep_to_themselves),
    Invariant("RetryBudget", "P27", retry_budget),
    Invariant("TriggerIgnoresPause", "P21", trigger_ignores_pause),
    Invariant("QueuePauseBlocksDispatchOnly", "P24", queue_pause_blocks_dispatch_only),
    Invariant("PausesIndependent", "P25", pauses_independent),
    Invariant("CancelNeedsOnlyTheLabel", "P26", cancel_needs_only_the_label),
    Invariant("OperatorsAreHeard", "P22 to P25, P27", operators_are_heard),
    Invariant("WorkersAreHeard", "P27", workers_are_heard),
)

STEP_PROPERTIES = (
    StepProperty("JobsStay", "P22", jobs_stay),
    StepProperty("JobsBeginFresh", "P27", jobs_begin_fresh),
    StepProperty("StatesFollowTheGraph", "P27", states_follow_the_graph),
    StepProperty("FinalStaysFinal", "P27", final_stays_final),
    StepProperty("ClaimsOnlyFromRunningQueue", "P24", claims_only_from_running_queue),
    StepProperty("AttemptsOnlyRise", "P27", attempts_only_rise),
    StepProperty("FencesAreFresh", "P27", fences_are_fresh),
    StepProperty("FencedFinalisation", "P27", fenced_finalisation),
    StepProperty("OutcomeIsWritten", "P27", outcome_is_written),
    StepProperty("CompletedByItsOwner", "P27", completed_by_its_owner),
    StepProperty("SilentWorkersAreSilent", "P27", silent_workers_are_silent),
    StepProperty("BudgetIsTheJobsOwn", "P27", budget_is_the_jobs_own),
    StepProperty("TriggerLeavesSchedule", "P21", trigger_leaves_schedule),
    StepProperty("FiresBecomeJobs", "P13, P24", fires_become_jobs),
    StepProperty("RemoveLeavesJobs", "P22", remove_leaves_jobs),
    StepProperty("RegisterStartsFresh", "P22", register_starts_fresh),
    StepProperty("EditLeavesJobs", "P27", edit_leaves_jobs),
    StepProperty("CronPauseLeavesJobs", "P23", cron_pause_leaves_jobs),
    StepProperty("QueuePauseTouchesOnlyPause", "P24", queue_pause_touches_only_pause),
    StepProperty("CancelOnlyNamed", "P26", cancel_only_named),
)


def invariants(model: QueueModel, state: State, only: str | None = None) -> None:
    """Check every invariant, or only the one that is named.

    Raises:
        AssertionError: Naming property and promise.
    """
    check_all(INVARIANTS, model, state, only=only)


def step_checks(
    model: QueueModel, before: State, action: str, arguments: Arguments, then: State, *, only: str | None = None
) -> None:
    """Check every property of steps, or only the one that is named.

    Raises:
        AssertionError: Naming property and promise.
    """
    check_all(STEP_PROPERTIES, model, before, action, arguments, then, only=only, where=f"{action}: ")
