"""The protocol of ``spec/AwaQueue.tla`` in Python: one pure function per action.

Names and order are the spec's, in snake_case. An action returns the next state, or None where the spec does not
enable it. Where the database's answer may get lost on its way, ``heard`` says whether it arrives.

``queue_properties.py`` checks the spec's properties on states and steps; ``test_queue_model.py`` shows that this
model and the spec have the same states and steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tests.model.spec_state import Table

WAITING = frozenset({"scheduled", "available", "retryable"})
FINAL = frozenset({"completed", "failed", "cancelled", "purged"})
OUTCOMES = ("finish", "fail", "snooze", "cancel_own")
"""What a worker may say of an attempt."""


@dataclass(frozen=True, slots=True, order=True)
class Offer:
    """What code may give a schedule or a job made by hand."""

    queue: str
    max_attempts: int


@dataclass(frozen=True, slots=True)
class Row:
    """A schedule's row, as far as it matters to jobs; ``last`` counts the fires that became jobs."""

    queue: str
    max_attempts: int
    last: int
    paused: bool

    @property
    def offer(self) -> Offer:
        return Offer(self.queue, self.max_attempts)


@dataclass(frozen=True, slots=True)
class Job:
    """A job's row; of a purged one it is what it was."""

    cron_name: str | None
    queue: str
    state: str
    attempt: int
    max_attempts: int
    owner: str | None


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """What a worker remembers of a claim: the number of the job, from 1, and the attempt."""

    job: int
    attempt: int


@dataclass(frozen=True, slots=True)
class State:
    """The variables of the spec."""

    rows: Table[str, Row | None]
    queue_paused: Table[str, bool]
    jobs: tuple[Job, ...]
    worker: Table[str, str]
    holds: Table[str, frozenset[Claim]]

    def job(self, j: int) -> Job:
        """Return a job by its number."""
        return self.jobs[j - 1]

    @property
    def numbers(self) -> range:
        """The numbers of the jobs."""
        return range(1, len(self.jobs) + 1)

    def with_job(self, j: int, job: Job) -> State:
        """Return this state with one job changed."""
        return replace(self, jobs=(*self.jobs[: j - 1], job, *self.jobs[j:]))


Step = tuple[str, tuple[object, ...], State | None]


@dataclass(frozen=True)
class QueueModel:
    """The constants of the spec, and its actions."""

    workers: tuple[str, ...]
    schedules: tuple[str, ...]
    queues: tuple[str, ...]
    offers: Mapping[str, tuple[Offer, ...]]
    capacity: int
    max_jobs: int
    attempt_limit: int
    fresh_attempts: int

    @property
    def offered(self) -> tuple[Offer, ...]:
        """All that is offered to anybody."""
        return tuple(sorted({offer for offers in self.offers.values() for offer in offers}))

    def init(self) -> State:
        """Return the initial state: nothing registered, no jobs, every worker up."""
        return State(
            rows=Table((s, None) for s in self.schedules),
            queue_paused=Table((q, False) for q in self.queues),
            jobs=(),
            worker=Table((w, "up") for w in self.workers),
            holds=Table((w, frozenset[Claim]()) for w in self.workers),
        )

    # The guards.

    def still_waiting(self, job: Job) -> bool:
        """StillWaiting."""
        return job.state in WAITING

    def queue_unpaused(self, state: State, job: Job) -> bool:
        """QueueUnpaused."""
        return not state.queue_paused[job.queue]

    def still_running(self, job: Job) -> bool:
        """StillRunning."""
        return job.state == "running"

    def same_attempt(self, job: Job, claim: Claim) -> bool:
        """SameAttempt."""
        return job.attempt == claim.attempt

    def same_owner(self, job: Job, w: str) -> bool:
        """SameOwner."""
        return job.owner == w

    def owns(self, state: State, w: str, claim: Claim) -> bool:
        """Tell whether the row is still the worker's."""
        job = state.job(claim.job)
        return self.still_running(job) and self.same_attempt(job, claim) and self.same_owner(job, w)

    def silent(self, state: State, j: int) -> bool:
        """Silent: nobody renews the job."""
        w = state.job(j).owner
        assert w is not None
        return not (state.worker[w] == "up" and Claim(j, state.job(j).attempt) in state.holds[w])

    def cancels(self, job: Job, s: str, running: bool) -> bool:
        """Tell whether a cancellation takes the job."""
        return job.cron_name == s and (job.state in WAITING or (running and job.state == "running"))

    def after_failure(self, job: Job) -> str:
        """Return the state of a job whose attempt has failed."""
        return "retryable" if job.attempt < job.max_attempts else "failed"

    # The system.

    def has_room(self, state: State, w: str) -> bool:
        """HasRoom."""
        return len(state.holds[w]) < self.capacity

    def claim(self, state: State, w: str, j: int, heard: bool = True) -> State | None:
        """Claim."""
        if not (j in state.numbers and state.worker[w] == "up" and self.has_room(state, w)):
            return None
        job = state.job(j)
        if not (self.still_waiting(job) and self.queue_unpaused(state, job)):
            return None
        claimed = replace(job, state="running", attempt=job.attempt + 1, owner=w)
        then = state.with_job(j, claimed)
        held = state.holds[w] | {Claim(j, claimed.attempt)} if heard else state.holds[w]
        return replace(then, holds=state.holds.but(w, held))

    def finish(self, state: State, w: str, claim: Claim, heard: bool = True) -> State | None:
        """Finish."""
        return self._settle(state, w, claim, heard, "completed")

    def fail(self, state: State, w: str, claim: Claim, heard: bool = True) -> State | None:
        """Fail."""
        became = self.after_failure(state.job(claim.job)) if claim.job in state.numbers else ""
        return self._settle(state, w, claim, heard, became)

    def snooze(self, state: State, w: str, claim: Claim, heard: bool = True) -> State | None:
        """Snooze."""
        if claim.job not in state.numbers or state.job(claim.job).max_attempts >= self.attempt_limit:
            return None
        return self._settle(state, w, claim, heard, "scheduled", more=1)

    def cancel_own(self, state: State, w: str, claim: Claim, heard: bool = True) -> State | None:
        """CancelOwn."""
        return self._settle(state, w, claim, heard, "cancelled")

    def settle_too_late(self, state: State, w: str, claim: Claim) -> State | None:
        """SettleTooLate."""
        if state.worker[w] != "up" or claim not in state.holds[w] or self.owns(state, w, claim):
            return None
        return self._forgets(state, w, claim)

    def rescue(self, state: State, j: int) -> State | None:
        """Rescue."""
        if j not in state.numbers or "up" not in state.worker.values():
            return None
        job = state.job(j)
        if job.state != "running" or not self.silent(state, j):
            return None
        return state.with_job(j, replace(job, state=self.after_failure(job)))

    def _settle(  # noqa: PLR0917
        self, state: State, w: str, claim: Claim, heard: bool, became: str, more: int = 0
    ) -> State | None:
        if state.worker[w] != "up" or claim not in state.holds[w] or not self.owns(state, w, claim):
            return None
        job = state.job(claim.job)
        then = state.with_job(claim.job, replace(job, state=became, max_attempts=job.max_attempts + more))
        return self._forgets(then, w, claim) if heard else then

    def _forgets(self, state: State, w: str, claim: Claim) -> State:
        return replace(state, holds=state.holds.but(w, state.holds[w] - {claim}))

    # The environment.

    def enqueue(self, state: State, s: str) -> State | None:
        """Enqueue."""
        row = state.rows[s]
        if row is None or row.paused or len(state.jobs) >= self.max_jobs:
            return None
        then = replace(state, rows=state.rows.but(s, replace(row, last=row.last + 1)))
        return self._with_new(then, s, row.offer)

    def trigger(self, state: State, s: str) -> State | None:
        """Trigger."""
        row = state.rows[s]
        if row is None or len(state.jobs) >= self.max_jobs:
            return None
        return self._with_new(state, s, row.offer)

    def submit(self, state: State, offer: Offer) -> State | None:
        """Submit."""
        return None if len(state.jobs) >= self.max_jobs else self._with_new(state, None, offer)

    def _with_new(self, state: State, name: str | None, offer: Offer) -> State:
        new = Job(name, offer.queue, "available", 0, offer.max_attempts, None)
        return replace(state, jobs=(*state.jobs, new))

    def sync(self, state: State, s: str, offer: Offer) -> State | None:
        """Sync."""
        row = state.rows[s]
        if row is None:
            new = Row(offer.queue, offer.max_attempts, 0, paused=False)
        else:
            new = replace(row, queue=offer.queue, max_attempts=offer.max_attempts)
        return None if new == row else replace(state, rows=state.rows.but(s, new))

    def remove(self, state: State, s: str) -> State | None:
        """Remove."""
        return None if state.rows[s] is None else replace(state, rows=state.rows.but(s, None))

    def pause(self, state: State, s: str) -> State | None:
        """Pause."""
        row = state.rows[s]
        if row is None or row.paused:
            return None
        return replace(state, rows=state.rows.but(s, replace(row, paused=True)))

    def resume(self, state: State, s: str) -> State | None:
        """Resume."""
        row = state.rows[s]
        if row is None or not row.paused:
            return None
        return replace(state, rows=state.rows.but(s, replace(row, paused=False)))

    def pause_queue(self, state: State, q: str) -> State | None:
        """PauseQueue."""
        if state.queue_paused[q]:
            return None
        return replace(state, queue_paused=state.queue_paused.but(q, True))

    def resume_queue(self, state: State, q: str) -> State | None:
        """ResumeQueue."""
        if not state.queue_paused[q]:
            return None
        return replace(state, queue_paused=state.queue_paused.but(q, False))

    def cancel_jobs(self, state: State, s: str, running: bool) -> State | None:
        """CancelJobs."""
        if not any(self.cancels(job, s, running) for job in state.jobs):
            return None
        jobs = (
            replace(job, state="cancelled") if self.cancels(job, s, running) else job for job in state.jobs
        )  # fmt: skip
        return replace(state, jobs=tuple(jobs))

    def retry_dead(self, state: State, j: int) -> State | None:
        """RetryDead."""
        if j not in state.numbers:
            return None
        job = state.job(j)
        if job.state != "failed" or job.attempt + self.fresh_attempts > self.attempt_limit:
            return None
        return state.with_job(
            j, replace(job, state="available", max_attempts=job.attempt + self.fresh_attempts)
        )  # fmt: skip

    def purge_dead(self, state: State, j: int) -> State | None:
        """PurgeDead."""
        if j not in state.numbers or state.job(j).state != "failed":
            return None
        return state.with_job(j, replace(state.job(j), state="purged"))

    def purge_finished(self, state: State, j: int) -> State | None:
        """PurgeFinished."""
        if j not in state.numbers or state.job(j).state not in {"completed", "cancelled"}:
            return None
        return state.with_job(j, replace(state.job(j), state="purged"))

    def freeze_worker(self, state: State, w: str) -> State | None:
        """FreezeWorker."""
        return self._with_worker(state, w, {"up"}, "frozen")

    def thaw_worker(self, state: State, w: str) -> State | None:
        """ThawWorker."""
        return self._with_worker(state, w, {"frozen"}, "up")

    def crash_worker(self, state: State, w: str) -> State | None:
        """CrashWorker."""
        then = self._with_worker(state, w, {"up", "frozen"}, "down")
        return None if then is None else replace(then, holds=then.holds.but(w, frozenset()))

    def recover_worker(self, state: State, w: str) -> State | None:
        """RecoverWorker."""
        return self._with_worker(state, w, {"down"}, "up")

    def _with_worker(self, state: State, w: str, from_: set[str], to: str) -> State | None:
        return replace(state, worker=state.worker.but(w, to)) if state.worker[w] in from_ else None

    # Next.

    def attempts(self, state: State) -> Iterator[Step]:
        """Yield every action with every argument and what it leads to; None where it is not enabled."""
        for action, arguments in itertools.chain(self._of_workers(state), self._of_jobs(state), self._of_names()):
            yield action, arguments, getattr(self, action)(state, *arguments)

    def _of_workers(self, state: State) -> Iterator[tuple[str, tuple[object, ...]]]:
        for w in self.workers:
            for heard in (True, False):
                yield from (("claim", (w, j, heard)) for j in state.numbers)
                for claim in sorted(state.holds[w]):
                    yield from ((outcome, (w, claim, heard)) for outcome in OUTCOMES)
            yield from (("settle_too_late", (w, claim)) for claim in sorted(state.holds[w]))
            yield from (
                (fault, (w,)) for fault in ("freeze_worker", "thaw_worker", "crash_worker", "recover_worker")
            )

    def _of_jobs(self, state: State) -> Iterator[tuple[str, tuple[object, ...]]]:
        for j in state.numbers:
            yield from ((action, (j,)) for action in ("rescue", "retry_dead", "purge_dead", "purge_finished"))

    def _of_names(self) -> Iterator[tuple[str, tuple[object, ...]]]:
        for s in self.schedules:
            yield from ((action, (s,)) for action in ("enqueue", "trigger", "remove", "pause", "resume"))
            yield from (("sync", (s, offer)) for offer in self.offers[s])
            yield from (("cancel_jobs", (s, running)) for running in (False, True))
        yield from (("submit", (offer,)) for offer in self.offered)
        yield from ((action, (q,)) for q in self.queues for action in ("pause_queue", "resume_queue"))

    def steps(self, state: State) -> Iterator[tuple[str, tuple[object, ...], State]]:
        """Yield the steps that the state enables: the spec's Next."""
        for action, arguments, then in self.attempts(state):
            if then is not None:
                yield action, arguments, then
