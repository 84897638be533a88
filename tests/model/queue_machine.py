"""The Hypothesis machine of the queue: a rule for every action of ``spec/AwaQueue.tla``, alone or with Postgres.

After each step the properties of the spec are checked on the state that was reached; on Postgres that is the state
read back from the database, and it must be the model's too. Which jobs a claim takes is the database's choice; the
model says whether it may.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from awa_cron.sql import Schema
from tests.model.queue_cluster import QueueCluster
from tests.model.queue_model import OUTCOMES, Claim, Offer, QueueModel, State
from tests.model.queue_properties import invariants, step_checks
from tests.model.spec_machine import Call, ModelStep, SpecMachine, awaited, rule_of

PROTOCOL = QueueModel(
    workers=("ann", "ben", "cem"),
    schedules=("digest", "ledger"),
    queues=("email", "reports"),
    offers={
        "digest": (Offer("email", 1), Offer("reports", 2)),
        "ledger": (Offer("email", 2), Offer("email", 1)),
    },
    capacity=2,
    max_jobs=10,
    attempt_limit=1000,
    fresh_attempts=1,
)

ASKABLE = (
    "sync",
    "remove",
    "pause",
    "resume",
    "pause_queue",
    "resume_queue",
    "cancel_jobs",
    "retry_dead",
    "purge_dead",
    "purge_finished",
)
"""What can be asked for at any time, even where the spec does not enable it."""

WORK = {
    "make": ("enqueue", "trigger", "submit"),
    "settle": OUTCOMES,
    "lose": ("freeze_worker", "crash_worker"),
    "return": ("thaw_worker", "recover_worker", "resume_queue", "retry_dead"),
}
"""Kinds of steps of a queue at work, beside claims, rescues and late outcomes; each kind is drawn as often."""

PATIENCE = 2
"""How many steps of the environment may follow each other before the queue works again."""

STEPS: Counter[str] = Counter()
"""Steps taken on Postgres in this run of the tests, by action."""


class QueueMachine(SpecMachine[State]):
    """Takes the model through its actions."""

    model: ClassVar[QueueModel] = PROTOCOL
    free = OUTCOMES
    most_patience = PATIENCE

    enqueue = rule_of("enqueue")
    trigger = rule_of("trigger")
    submit = rule_of("submit")
    sync = rule_of("sync")
    remove = rule_of("remove")
    pause = rule_of("pause")
    resume = rule_of("resume")
    pause_queue = rule_of("pause_queue")
    resume_queue = rule_of("resume_queue")
    cancel_jobs = rule_of("cancel_jobs")
    retry_dead = rule_of("retry_dead")
    purge_dead = rule_of("purge_dead")
    purge_finished = rule_of("purge_finished")
    finish = rule_of("finish")
    fail = rule_of("fail")
    snooze = rule_of("snooze")
    cancel_own = rule_of("cancel_own")
    freeze_worker = rule_of("freeze_worker")
    thaw_worker = rule_of("thaw_worker")
    crash_worker = rule_of("crash_worker")
    recover_worker = rule_of("recover_worker")

    @initialize(
        registered=st.fixed_dictionaries({s: st.sampled_from(PROTOCOL.offers[s]) for s in PROTOCOL.schedules})
    )
    def start(self, registered: dict[str, Offer]) -> None:
        """Begin with schedules registered, and a job of each: without one little can happen."""
        self.open()
        for s, offer in registered.items():
            self.perform("sync", s, offer)
            self.perform("enqueue", s)

    @rule(data=st.data(), steps=st.integers(3, 10))
    def work_goes_on(self, data: st.DataObject, steps: int) -> None:
        """Jobs are made, run, lost and rescued; rules drawn evenly seldom get as far as a second attempt."""
        self.patience = PATIENCE
        for _ in range(steps):
            kinds = {kind: [each for each in actions if each in self.enabled] for kind, actions in WORK.items()}
            others = ("claim", "rescue", "settle_too_late")
            kinds |= {each: [each] for each in others if each in self.enabled}
            kind = data.draw(st.sampled_from(sorted(kind for kind, actions in kinds.items() if actions)))
            action = data.draw(st.sampled_from(kinds[kind]))
            if action == "claim":
                self.claim_some(data, None, heard=data.draw(st.sampled_from([True, True, True, False])))
            elif action == "rescue":
                self.rescue_silent(data)
            elif action == "settle_too_late":
                self.say_too_late(data, data.draw(st.sampled_from(OUTCOMES)))
            else:
                self.perform(action, *data.draw(st.sampled_from(self.enabled[action])))

    @precondition(lambda self: bool(self.with_room()))
    @rule(
        data=st.data(), queue=st.sampled_from([None, *PROTOCOL.queues]), heard=st.sampled_from([True, True, False])
    )
    def claim(self, data: st.DataObject, queue: str | None, heard: bool) -> None:
        """A worker asks for as many jobs as it has room for, or fewer."""
        self.claim_some(data, queue, heard=heard)

    def claim_some(self, data: st.DataObject, queue: str | None, *, heard: bool) -> None:
        w = data.draw(st.sampled_from(self.with_room()))
        limit = data.draw(st.integers(1, self.model.capacity - len(self.state.holds[w])))
        possible = [
            j
            for j in self.state.numbers
            if self.model.claim(self.state, w, j) is not None and queue in {None, self.state.job(j).queue}
        ]
        taken = self.claimed(w, queue, limit, heard, possible)
        if self.only is None:
            assert len(taken) == min(limit, len(possible)), (
                f"of {possible} {w} was given {taken}, and asked for {limit}"
            )
        self.take([("claim", (w, j, heard)) for j in taken], None)

    @precondition(lambda self: "settle_too_late" in self.enabled)
    @rule(data=st.data(), outcome=st.sampled_from(OUTCOMES))
    def settle_too_late(self, data: st.DataObject, outcome: str) -> None:
        """A worker says how a job ended that is no longer its own, whatever it says."""
        self.say_too_late(data, outcome)

    def say_too_late(self, data: st.DataObject, outcome: str) -> None:
        w, claim = data.draw(st.sampled_from(self.enabled["settle_too_late"]))
        assert isinstance(w, str)
        assert isinstance(claim, Claim)
        self.take([("settle_too_late", (w, claim))], self.too_late(outcome, w, claim))

    @precondition(lambda self: bool(self.with_several()))
    @rule(data=st.data(), outcome=st.sampled_from(OUTCOMES))
    def settle_several(self, data: st.DataObject, outcome: str) -> None:
        """A worker says how all that it holds ended, in one statement: each is a step, or comes too late."""
        w = data.draw(st.sampled_from(self.with_several()))
        claims = sorted(self.state.holds[w])
        written = [claim for claim in claims if (w, claim, True) in self.enabled.get(outcome, [])]
        steps: list[ModelStep] = [
            (outcome, (w, claim, True)) if claim in written else ("settle_too_late", (w, claim))
            for claim in claims
            if claim in written or (w, claim) in self.enabled.get("settle_too_late", [])
        ]
        told = [claim for _, (_, claim, *_) in steps if isinstance(claim, Claim)]
        self.take(steps, self.settled(outcome, w, told, written))

    @precondition(lambda self: "up" in self.state.worker.values())
    @rule(data=st.data())
    def rescue(self, data: st.DataObject) -> None:
        """Some worker looks for silent jobs; each is a Rescue, all in one call."""
        self.rescue_silent(data)

    def rescue_silent(self, data: st.DataObject) -> None:
        by = data.draw(st.sampled_from([w for w, is_ in self.state.worker.items() if is_ == "up"]))
        self.take([("rescue", arguments) for arguments in self.enabled.get("rescue", [])], self.rescued(by))

    @precondition(lambda self: "up" in self.state.worker.values())
    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        """A worker renews what it believes it runs, and lets go of what it hears is lost."""
        w = data.draw(st.sampled_from([w for w, is_ in self.state.worker.items() if is_ == "up"]))
        lost = [arguments for arguments in self.enabled.get("settle_too_late", []) if arguments[0] == w]
        self.take([("settle_too_late", arguments) for arguments in lost], self.beaten(w))

    def with_room(self) -> list[str]:
        """Return the workers that may claim."""
        return [w for w, is_ in self.state.worker.items() if is_ == "up" and self.model.has_room(self.state, w)]

    def with_several(self) -> list[str]:
        """Return the workers that can say how more than one job ended."""
        return [w for w, is_ in self.state.worker.items() if is_ == "up" and len(self.state.holds[w]) > 1]

    def claimed(self, w: str, queue: str | None, limit: int, heard: bool, possible: list[int]) -> list[int]:  # noqa: ARG002
        """Return the jobs that a claim is given."""
        return possible[:limit]

    def too_late(self, outcome: str, w: str, claim: Claim) -> Call | None:  # noqa: ARG002
        return None

    def settled(self, outcome: str, w: str, claims: list[Claim], written: list[Claim]) -> Call | None:  # noqa: ARG002
        return None

    def rescued(self, by: str) -> Call | None:  # noqa: ARG002
        return None

    def beaten(self, w: str) -> Call | None:  # noqa: ARG002
        return None

    def perform_drawn(self, action: str, *arguments: object) -> None:
        self.patience -= action not in OUTCOMES
        self.perform(action, *arguments)

    def check(self, before: State, step: ModelStep, then: State) -> None:
        action, arguments = step
        invariants(self.model, then, self.only)
        step_checks(self.model, before, action, arguments, then, only=self.only)


class PostgresQueueMachine(QueueMachine):
    """The same, with every action performed on a real database by sessions of their own; see `on_postgres`."""

    runner: ClassVar[asyncio.Runner]
    cluster: ClassVar[QueueCluster]

    def open(self) -> None:
        self.runner.run(self.cluster.reset())
        assert self.observed() == self.model.init()

    @precondition(lambda self: "crash_worker" in self.enabled)
    @rule(data=st.data())
    def crash_in_its_transaction(self, data: st.DataObject) -> None:
        """A crash between statement and commit is a crash: nothing of the statements stays."""
        (w,) = data.draw(st.sampled_from(self.enabled["crash_worker"]))
        self.perform("crash_worker", w, in_transaction=True)

    @precondition(lambda self: bool(self.refused()))
    @rule(data=st.data())
    def attempt_the_disabled(self, data: st.DataObject) -> None:
        """What the spec does not enable changes nothing, even if it is asked for."""
        action, arguments = data.draw(st.sampled_from(self.refused()))
        self.runner.run(getattr(self.cluster, action)(*arguments))
        assert self.state == self.observed(), f"{action}{arguments} is disabled, and changed something"

    def unexpected(self, action: str, *steps: tuple[object, ...]) -> None:
        """Check what the database did though the model does not enable it."""
        reached = self.observed()
        for arguments in steps:
            self.check(self.state, (action, arguments), reached)
        assert self.state == reached, f"SameAsModel: {action}{steps} is disabled, and changed something"

    def refused(self) -> list[ModelStep]:
        """Return the disabled actions that somebody could ask for all the same."""
        full = len(self.state.jobs) == self.model.max_jobs  # the model's bound, not the database's

        def can_be_asked(action: str, first: Any) -> bool:
            if action == "enqueue":
                return self.state.rows[first] is not None and not full
            if action in {"submit", "trigger"}:
                return action == "trigger" and self.state.rows[first] is None
            return action in ASKABLE

        return [(action, arguments) for action, arguments in self.disabled if can_be_asked(action, arguments[0])]

    def claimed(self, w: str, queue: str | None, limit: int, heard: bool, possible: list[int]) -> list[int]:  # noqa: ARG002
        queues = None if queue is None else [queue]
        return self.runner.run(self.cluster.claim(w, queues, limit, heard))

    def call(self, action: str, *arguments: object, **how: object) -> Call:
        if action in OUTCOMES:
            return lambda: self.cluster.settle(action, *arguments)  # type: ignore[arg-type]
        performs = getattr(self.cluster, action)
        return lambda: performs(*arguments, **how)

    def too_late(self, outcome: str, w: str, claim: Claim) -> Call:
        async def say() -> None:
            written = await self.cluster.settle(outcome, w, claim)
            if self.only is None:
                assert not written, f"{w} said {outcome} of {claim} too late, and was told that it is written"

        return say

    def settled(self, outcome: str, w: str, claims: list[Claim], written: list[Claim]) -> Call:
        async def say() -> None:
            told = await self.cluster.settle_several(outcome, w, claims)
            if self.only is None:
                assert set(written) == told, f"of {claims} {w} was told that {told} are written"

        return say

    def rescued(self, by: str) -> Call:
        return lambda: self.cluster.rescue(by)

    def beaten(self, w: str) -> Call:
        return lambda: self.cluster.heartbeat(w, forget=True)

    def next(self, before: State, action: str, arguments: tuple[object, ...]) -> State:
        STEPS[action] += 1
        return super().next(before, action, arguments)

    def reach(self, then: State, call: Call | None) -> State:  # noqa: ARG002
        if call is not None:
            self.runner.run(awaited(call))
        return self.observed()

    def observed(self) -> State:
        state = self.runner.run(self.cluster.observe())
        if currently_in_test_context():
            note(f"observed: {state}")
        return state


@contextmanager
def on_postgres(
    dsn: str, schema: Schema | None = None, only: str | None = None
) -> Iterator[type[PostgresQueueMachine]]:
    """Give a machine for one database; its examples share the sessions that survive them."""
    cluster = QueueCluster(dsn, PostgresQueueMachine.model, schema)
    with asyncio.Runner() as runner:
        runner.run(cluster.open())
        try:
            names = {"runner": runner, "cluster": cluster, "only": only}
            yield type("QueueOnPostgres", (PostgresQueueMachine,), names)
        finally:
            runner.run(cluster.close())
