"""The protocol of ``spec/AwaCron.tla`` in Python: one pure function per action.

Names and order are the spec's, in snake_case. An action returns the next state, or None where the spec does not
enable it. Instants are plain integers and a definition is a predicate over them, so a model may also run without a
last instant (``max_time=None``), as the machine that drives a real database does.

``spec_properties.py`` checks the spec's properties on states and steps; ``test_spec_model.py`` shows that this
model and the spec have the same states and steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tests.model.spec_state import Fires, Frozen, Policy, Row, State, Step, Table


def after(fire: int, last: int | None) -> bool:
    """Tell whether ``fire`` comes after ``last``; everything comes after None."""
    return last is None or fire > last


def with_jobs(count: Table[int, int], fires: Fires) -> Table[int, int]:
    """Add a job for each fire."""
    return Table({**count, **{fire: count.get(fire, 0) + 1 for fire in fires}})


def frozen_of(row: Row, fires: Fires) -> Frozen:
    """Freeze fires together with the row as it is."""
    return Frozen(row.definition, row.anchor, row.last, fires)


def marked(row: Row, fires: Fires) -> Row:
    """Move ``last`` to the newest of ``fires``, if there are any."""
    return replace(row, last=fires[-1]) if fires else row


@dataclass(frozen=True)
class Model:
    """The constants of the spec, and its actions.

    Attributes:
        definitions: Per definition, whether it fires at an instant.
        pass_limit: How many fires of a catch-up schedule one pass brings.
        max_time: The last instant; None for no end.
        max_triggers: How often each schedule may be triggered; None for no end.
        clock_may_slip: Whether ``advance_clock`` may also jump.
        faulty_evaluator: Whether ``read_cron_state`` may be handed arbitrary fires.
    """

    instances: tuple[str, ...]
    schedules: tuple[str, ...]
    definitions: Mapping[str, Callable[[int], bool]]
    policies: Mapping[str, Policy]
    pass_limit: int
    max_time: int | None = None
    max_triggers: int | None = None
    clock_may_slip: bool = False
    faulty_evaluator: bool = False

    def init(self) -> State:
        """Return the initial state: nothing registered, everybody up, nobody leads."""
        return State(
            now=0,
            rows=Table((s, None) for s in self.schedules),
            jobs=Table((s, Table[int, int]()) for s in self.schedules),
            triggered=Table((s, 0) for s in self.schedules),
            floor=Table((s, 0) for s in self.schedules),
            lock=None,
            up=Table((i, True) for i in self.instances),
            believes=Table((i, False) for i in self.instances),
            snapshot=Table((i, None) for i in self.instances),
        )

    # The evaluator.

    def due(self, row: Row, t: int) -> Fires:
        """Return the row's fires up to ``t``, oldest first."""
        fires_at = self.definitions[row.definition]
        since = row.anchor if row.last is None else max(row.anchor, row.last)
        return tuple(f for f in range(since + 1, t + 1) if fires_at(f))

    def coalesced(self, due: Fires) -> Fires:
        """Take the latest."""
        return due[-1:]

    def caught_up(self, due: Fires) -> Fires:
        """Take the oldest, up to the limit."""
        return due[: self.pass_limit]

    def chosen(self, s: str, row: Row, t: int) -> Fires:
        """Return the fires that a pass takes by the schedule's policy."""
        due = self.due(row, t)
        return self.coalesced(due) if self.policies[s] == "coalesce" else self.caught_up(due)

    # The guards of the conditional write.

    def last_as_read(self, row: Row, frozen: Frozen) -> bool:
        """LastAsRead."""
        return row.last == frozen.expected

    def defined_as_read(self, row: Row, frozen: Frozen) -> bool:
        """DefinedAsRead."""
        return row.definition == frozen.definition and row.anchor == frozen.anchor

    def unpaused(self, row: Row) -> bool:
        """Unpaused."""
        return not row.paused

    def advances(self, row: Row, frozen: Frozen) -> bool:
        """Advances."""
        return after(frozen.fires[0], row.last)

    def after_anchor(self, row: Row, frozen: Frozen) -> bool:
        """AfterAnchor."""
        return frozen.fires[0] > row.anchor

    def already_due(self, frozen: Frozen, now: int) -> bool:
        """AlreadyDue."""
        return frozen.fires[-1] <= now

    def passes(self, row: Row, frozen: Frozen, now: int) -> bool:
        """Tell whether the row lets the frozen fires become jobs."""
        return (
            self.last_as_read(row, frozen)
            and self.defined_as_read(row, frozen)
            and self.unpaused(row)
            and self.advances(row, frozen)
            and self.after_anchor(row, frozen)
            and self.already_due(frozen, now)
        )

    def winners(self, state: State, i: str) -> dict[str, Fires]:
        """Return what the instance's write would enqueue now, per schedule."""
        won = {}
        for s, frozen in (state.snapshot[i] or {}).items():
            row = state.rows[s]
            if row is not None and frozen is not None and self.passes(row, frozen, state.now):
                won[s] = frozen.fires
        return won

    # What the actions write.

    def anchor_on_insert(self, state: State, s: str) -> int:
        """Return the anchor of a new row: the clock, or the last fire of earlier rows."""
        return max(state.now, state.floor[s])

    def inserted_row(self, state: State, s: str, d: str) -> Row:
        """Return the row of a schedule that has none."""
        return Row(definition=d, last=None, anchor=self.anchor_on_insert(state, s), paused=False)

    def settled_fires(self, s: str, row: Row, now: int) -> Fires:
        """Return the fires that an edit of the row turns into jobs first."""
        return () if row.paused else self.chosen(s, row, now)

    def anchor_on_edit(self, row: Row, now: int) -> int:
        """Return the anchor of an edited row: the clock, and never further back than it was."""
        return max(now, row.anchor)

    def edited_row(self, s: str, row: Row, d: str, now: int) -> Row:
        """Return the row under its new definition."""
        settled = marked(row, self.settled_fires(s, row, now))
        return replace(settled, definition=d, anchor=self.anchor_on_edit(row, now))

    def upserted(self, state: State, s: str, row: Row) -> Table[str, Row | None]:
        """Write one row."""
        return state.rows.but(s, row)

    def paused_row(self, row: Row) -> Row:
        """Return the row, paused."""
        return replace(row, paused=True)

    def floor_on_remove(self, state: State, s: str) -> int:
        """Return the floor that a removal leaves behind."""
        row = state.rows[s]
        return state.floor[s] if row is None or row.last is None else max(state.floor[s], row.last)

    def step_down(self, state: State, i: str) -> State:
        """Let the instance believe no longer, and forget its pass."""
        return replace(state, believes=state.believes.but(i, False), snapshot=state.snapshot.but(i, None))

    # The system.

    def acquire_leader(self, state: State, i: str) -> State | None:
        """AcquireLeader."""
        if not (state.up[i] and not state.believes[i] and state.lock is None):
            return None
        return replace(state, lock=i, believes=state.believes.but(i, True))

    def ping_leader(self, state: State, i: str) -> State | None:
        """PingLeader."""
        if not (state.up[i] and state.believes[i] and state.lock != i):
            return None
        return self.step_down(state, i)

    def evaluations(self, state: State, s: str) -> list[Frozen | None]:
        """Return what the evaluator may make of a schedule."""
        row = state.rows[s]
        if row is None or row.paused:
            return [None]
        if self.faulty_evaluator:
            assert self.max_time is not None, "arbitrary fires need a last instant"
            instants = range(self.max_time + 1)
            lengths = range(1, self.pass_limit + 1)
            some = itertools.chain.from_iterable(itertools.combinations(instants, n) for n in lengths)
            return [None, *(frozen_of(row, fires) for fires in some)]
        fires = self.chosen(s, row, state.now)
        return [frozen_of(row, fires) if fires else None]

    def readings(self, state: State) -> Iterator[Table[str, Frozen | None]]:
        """Yield what a read may freeze; exactly one thing, or nothing, if the evaluator is sound."""
        for choice in itertools.product(*(self.evaluations(state, s) for s in self.schedules)):
            if any(frozen is not None for frozen in choice):
                yield Table(zip(self.schedules, choice, strict=True))

    def read_cron_state(self, state: State, i: str, read: Table[str, Frozen | None] | None = None) -> State | None:
        """ReadCronState; ``read`` says which of the readings, where the evaluator is faulty."""
        if not (state.up[i] and state.believes[i] and state.snapshot[i] is None):
            return None
        possible = list(self.readings(state))
        if read is None and possible:
            read = possible[0]
        if read is None or read not in possible:
            return None
        return replace(state, snapshot=state.snapshot.but(i, read))

    def atomic_enqueue(self, state: State, i: str) -> State | None:
        """AtomicEnqueue."""
        won = self.winners(state, i)
        if not (state.up[i] and state.snapshot[i] is not None and won):
            return None
        rows, jobs = state.rows, state.jobs
        for s, fires in won.items():
            row = rows[s]
            assert row is not None
            rows = rows.but(s, marked(row, fires))
            jobs = jobs.but(s, with_jobs(jobs[s], fires))
        return replace(state, rows=rows, jobs=jobs, snapshot=state.snapshot.but(i, None))

    def cas_fail(self, state: State, i: str) -> State | None:
        """CASFail."""
        if not (state.up[i] and state.snapshot[i] is not None and not self.winners(state, i)):
            return None
        return replace(state, snapshot=state.snapshot.but(i, None))

    # The environment.

    def advance_clock(self, state: State, to: int | None = None) -> State | None:
        """AdvanceClock: by one instant, or, where the clock may slip, to any other."""
        if to is None or to == state.now + 1:
            to = state.now + 1
        elif not self.clock_may_slip or to < 0 or to == state.now:
            return None
        if self.max_time is not None and to > self.max_time:
            return None
        return replace(state, now=to)

    def lose_leader(self, state: State, i: str) -> State | None:
        """LoseLeader."""
        if not (state.believes[i] and state.lock == i):
            return None
        return self.step_down(replace(state, lock=None), i)

    def drop_session(self, state: State, i: str) -> State | None:
        """DropSession."""
        return replace(state, lock=None) if state.lock == i else None

    def crash(self, state: State, i: str) -> State | None:
        """Crash."""
        if not state.up[i]:
            return None
        lock = None if state.lock == i else state.lock
        return self.step_down(replace(state, up=state.up.but(i, False), lock=lock), i)

    def recover(self, state: State, i: str) -> State | None:
        """Recover."""
        return None if state.up[i] else replace(state, up=state.up.but(i, True))

    def pause(self, state: State, s: str) -> State | None:
        """Pause."""
        row = state.rows[s]
        if row is None or row.paused:
            return None
        return replace(state, rows=state.rows.but(s, self.paused_row(row)))

    def resume(self, state: State, s: str) -> State | None:
        """Resume."""
        row = state.rows[s]
        if row is None or not row.paused:
            return None
        return replace(state, rows=state.rows.but(s, replace(row, paused=False)))

    def may_trigger(self, state: State, s: str) -> bool:
        """Tell whether the bound on triggers leaves one more."""
        return self.max_triggers is None or state.triggered[s] < self.max_triggers

    def trigger(self, state: State, s: str) -> State | None:
        """Trigger."""
        if state.rows[s] is None or not self.may_trigger(state, s):
            return None
        return replace(state, triggered=state.triggered.but(s, state.triggered[s] + 1))

    def sync(self, state: State, s: str, d: str) -> State | None:
        """Sync."""
        row = state.rows[s]
        if row is None:
            return replace(state, rows=self.upserted(state, s, self.inserted_row(state, s, d)))
        if row.definition == d:
            return None
        settled = self.settled_fires(s, row, state.now)
        return replace(
            state,
            rows=self.upserted(state, s, self.edited_row(s, row, d, state.now)),
            jobs=state.jobs.but(s, with_jobs(state.jobs[s], settled)),
        )

    def remove(self, state: State, s: str) -> State | None:
        """Remove."""
        if state.rows[s] is None:
            return None
        floor = state.floor.but(s, self.floor_on_remove(state, s))
        return replace(state, rows=state.rows.but(s, None), floor=floor)

    # Next.

    def attempts(self, state: State) -> Iterator[tuple[str, tuple[object, ...], State | None]]:
        """Yield every action with every argument and what it leads to; None where it is not enabled."""
        for i in self.instances:
            yield "acquire_leader", (i,), self.acquire_leader(state, i)
            yield "ping_leader", (i,), self.ping_leader(state, i)
            for read in self.readings(state):
                yield "read_cron_state", (i, read), self.read_cron_state(state, i, read)
            yield "atomic_enqueue", (i,), self.atomic_enqueue(state, i)
            yield "cas_fail", (i,), self.cas_fail(state, i)
            yield "lose_leader", (i,), self.lose_leader(state, i)
            yield "drop_session", (i,), self.drop_session(state, i)
            yield "crash", (i,), self.crash(state, i)
            yield "recover", (i,), self.recover(state, i)
        yield "advance_clock", (), self.advance_clock(state)
        if self.clock_may_slip:
            # Where there is no last instant, the jumps that are offered are short.
            near = range(max(0, state.now - 3), state.now + 4)
            for to in near if self.max_time is None else range(self.max_time + 1):
                yield "advance_clock", (to,), self.advance_clock(state, to)
        for s in self.schedules:
            yield "pause", (s,), self.pause(state, s)
            yield "resume", (s,), self.resume(state, s)
            yield "trigger", (s,), self.trigger(state, s)
            for d in self.definitions:
                yield "sync", (s, d), self.sync(state, s, d)
            yield "remove", (s,), self.remove(state, s)

    def steps(self, state: State) -> Iterator[Step]:
        """Yield the steps that the state enables: the spec's Next."""
        for action, arguments, then in self.attempts(state):
            if then is not None:
                yield Step(action, arguments, then)
