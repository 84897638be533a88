"""The Hypothesis machine: a rule for every action of the spec, on the model alone or in lock-step with Postgres.

After each step the properties of the spec are checked on the state that was reached; on Postgres that is the state
read back from the database, and it must be the model's too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from awa_cron.sql import Schema
from tests.model.cluster import Cluster
from tests.model.coverage import Edge, seen
from tests.model.spec_machine import Call, ModelStep, SpecMachine, awaited, rule_of
from tests.model.spec_model import Model
from tests.model.spec_properties import invariants, step_checks
from tests.model.spec_state import State

EXPRESSIONS = {"each": "* * * * *", "even": "*/2 * * * *", "odd": "1-59/2 * * * *"}

PROTOCOL = Model(
    instances=("a", "b", "c"),
    schedules=("digest", "ledger", "report"),
    definitions={"each": lambda _: True, "even": lambda t: t % 2 == 0, "odd": lambda t: t % 2 == 1},
    policies={"digest": "coalesce", "ledger": "catch_up", "report": "coalesce"},
    pass_limit=2,
    clock_may_slip=True,
)

DEPLOYMENTS = {
    "web": {"digest": "each", "ledger": "odd"},
    "web, next release": {"digest": "odd", "report": "even"},
    "billing": {"ledger": "each", "report": "each"},
}
"""What each deployment registers: a part of the schedules, one shared with another that wants it otherwise."""

SYSTEM = ("acquire_leader", "ping_leader", "read_cron_state", "atomic_enqueue", "cas_fail")

PATIENCE = 3
"""How many steps of the environment may follow each other before the system or the clock has to move."""

STEPS: Counter[str] = Counter()
"""Calls made on Postgres in this run of the tests, by action."""

EDGES: set[Edge] = set()
"""Edges of the spec that the machine has taken on Postgres in this run of the tests."""


class ProtocolMachine(SpecMachine[State]):
    """Takes the model through its actions."""

    model: ClassVar[Model] = PROTOCOL
    free = SYSTEM
    most_patience = PATIENCE

    advance_clock = rule_of("advance_clock")
    acquire_leader = rule_of("acquire_leader")
    ping_leader = rule_of("ping_leader")
    read_cron_state = rule_of("read_cron_state")
    atomic_enqueue = rule_of("atomic_enqueue")
    cas_fail = rule_of("cas_fail")
    lose_leader = rule_of("lose_leader")
    drop_session = rule_of("drop_session")
    crash = rule_of("crash")
    recover = rule_of("recover")
    pause = rule_of("pause")
    resume = rule_of("resume")
    trigger = rule_of("trigger")
    sync = rule_of("sync")
    remove = rule_of("remove")

    @initialize(
        registered=st.fixed_dictionaries({s: st.sampled_from([None, *EXPRESSIONS]) for s in PROTOCOL.schedules})
    )
    def start(self, registered: dict[str, str | None]) -> None:
        """Begin, usually with some schedules registered: without one nothing much can happen."""
        self.open()
        for s, definition in registered.items():
            if definition is not None:
                self.perform("sync", s, definition)

    @precondition(lambda self: self.patience > 0)
    @rule(deployment=st.sampled_from(sorted(DEPLOYMENTS)))
    def deploy(self, deployment: str) -> None:
        """A deployment syncs all that it registers: a Sync for each schedule that differs, in one call."""
        registered = DEPLOYMENTS[deployment]
        steps = [(s, d) for s, d in registered.items() if (s, d) in self.enabled.get("sync", [])]
        self.take([("sync", step) for step in steps], self.call("deploy", registered))

    @rule(data=st.data(), minutes=st.sampled_from([0, 1, 1, 1, 4]), steps=st.integers(1, 9))
    def time_passes(self, data: st.DataObject, minutes: int, steps: int) -> None:
        """The clock advances and the system goes on; rules drawn evenly seldom get as far as an enqueue."""
        self.patience = PATIENCE
        for _ in range(minutes):
            self.perform("advance_clock")
        for _ in range(steps):
            possible = [(action, args) for action in SYSTEM for args in self.enabled.get(action, [])]
            if possible:
                action, arguments = data.draw(st.sampled_from(possible))
                self.perform(action, *arguments)

    @precondition(lambda self: any(self.state.snapshot.values()))
    @rule(data=st.data(), interventions=st.integers(1, 3))
    def something_happens_between_read_and_write(self, data: st.DataObject, interventions: int) -> None:
        """An instance has read; operators, deployments or another leader act on what it read; then it writes."""
        i, read = data.draw(st.sampled_from([(i, read) for i, read in self.state.snapshot.items() if read]))
        for _ in range(interventions):
            s = data.draw(st.sampled_from([s for s, frozen in read.items() if frozen is not None]))
            possible = [
                (action, args)
                for action in ("pause", "resume", "sync", "remove", "drop_session", *SYSTEM)
                for args in self.enabled.get(action, [])
                if args[0] not in self.state.rows or args[0] == s
                if args[0] != i or action == "drop_session"
            ]
            if possible:
                action, arguments = data.draw(st.sampled_from(possible))
                self.perform(action, *arguments)
        self.perform("atomic_enqueue" if (i,) in self.enabled.get("atomic_enqueue", []) else "cas_fail", i)

    def check(self, before: State, step: ModelStep, then: State) -> None:
        invariants(self.model, then, self.only)
        step_checks(self.model, before, step[0], then, self.only)

    def next(self, before: State, action: str, arguments: tuple[object, ...]) -> State:
        if action not in SYSTEM:
            self.patience -= 1
        return super().next(before, action, arguments)


class PostgresMachine(ProtocolMachine):
    """The same, with every action performed on a real database by sessions of their own; see `on_postgres`."""

    runner: ClassVar[asyncio.Runner]
    cluster: ClassVar[Cluster]

    def next(self, before: State, action: str, arguments: tuple[object, ...]) -> State:
        EDGES.update(seen(self.model, before, action, arguments))
        return super().next(before, action, arguments)

    def open(self) -> None:
        self.runner.run(self.cluster.reset())
        assert self.observed(0) == self.model.init()

    @precondition(lambda self: any(self.state.snapshot.values()) and self.patience > 0)
    @rule(data=st.data())
    def crash_in_its_transaction(self, data: st.DataObject) -> None:
        """A crash between the enqueue and its commit is a crash: nothing of the enqueue stays."""
        busy = [(i,) for i, read in self.state.snapshot.items() if read is not None]
        self.perform("crash", *data.draw(st.sampled_from(busy)), in_transaction=True)

    @precondition(lambda self: bool(self.refused()))
    @rule(data=st.data())
    def attempt_the_disabled(self, data: st.DataObject) -> None:
        """What the spec does not enable changes nothing, even if it is asked for."""
        action, arguments = data.draw(st.sampled_from(self.refused()))
        self.runner.run(getattr(self.cluster, action)(self.state.now, *arguments))
        reached = self.observed(self.state.now)
        assert self.state == reached, f"{action}{arguments} is disabled, and changed something"

    @precondition(lambda self: bool(self.cluster.noting))
    @rule(data=st.data())
    def note_next(self, data: st.DataObject) -> None:
        """NoteNext of AwaCronNext: next fires are written back, whatever has happened since the read."""
        self.runner.run(self.cluster.note_next(data.draw(st.sampled_from(self.cluster.noting))))
        STEPS["note_next"] += 1
        assert self.state == self.observed(self.state.now), "note_next has changed something"

    def refused(self) -> list[ModelStep]:
        """Return the disabled actions that somebody could ask for all the same."""
        state = self.state

        def can_be_asked(action: str, who: Any) -> bool:
            match action:
                case "pause" | "resume" | "trigger" | "remove" | "sync":
                    return True
                case "acquire_leader":
                    return state.up[who] and not state.believes[who]
                case "ping_leader":
                    return state.up[who] and state.believes[who]
                case "read_cron_state":  # finds nothing due, and perhaps next fires to be noted
                    return state.up[who] and state.believes[who] and state.snapshot[who] is None
                case _:
                    return False

        return [(action, args) for action, args in self.disabled if can_be_asked(action, args[0] if args else None)]

    def call(self, action: str, *arguments: object, **how: object) -> Call | None:
        STEPS[action] += 1
        if action == "advance_clock":
            return None  # the next call brings the clock with it
        return partial(getattr(self.cluster, action), self.state.now, *arguments, **how)

    def reach(self, then: State, call: Call | None) -> State:
        if call is not None:
            self.runner.run(awaited(call))
        return self.observed(then.now)

    def observed(self, now: int) -> State:
        state = self.runner.run(self.cluster.observe(now))
        if currently_in_test_context():
            note(f"observed: {state}")
        return state


@contextmanager
def on_postgres(dsn: str, schema: Schema | None = None, only: str | None = None) -> Iterator[type[PostgresMachine]]:
    """Give a machine for one database; its examples share the sessions that survive them."""
    model = PostgresMachine.model
    cluster = Cluster(
        dsn,
        instances=list(model.instances),
        policies=model.policies,
        definitions=model.definitions,
        expressions=EXPRESSIONS,
        pass_limit=model.pass_limit,
        schema=schema,
    )
    with asyncio.Runner() as runner:
        runner.run(cluster.open())
        try:
            yield type(
                "MachineOnPostgres", (PostgresMachine,), {"runner": runner, "cluster": cluster, "only": only}
            )
        finally:
            runner.run(cluster.close())
