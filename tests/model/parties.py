"""What a party of a transaction does, on a session that waits for its cue before each statement."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import asyncpg

from awa_cron import actions, registration
from awa_cron.errors import DatabaseError
from awa_cron.model import FrozenFires, ScheduleState
from awa_cron.sql import Schema
from tests.model.cluster import instant
from tests.model.next_fire import first_after
from tests.model.serial_orders import NOBODY, Account, Deed, Level, Loss, Names, Reading, Transaction
from tests.model.spec_model import Model
from tests.model.spec_state import Frozen, State

EXPRESSIONS = {"each": "* * * * *", "even": "*/2 * * * *", "odd": "1-59/2 * * * *"}
PROTOCOL = Model(
    instances=("a",),
    schedules=("digest", "ledger"),
    definitions={"each": lambda _: True, "even": lambda t: t % 2 == 0, "odd": lambda t: t % 2 == 1},
    policies={"digest": "coalesce", "ledger": "catch_up"},
    pass_limit=2,
)
SCHEDULES = {
    (name, definition): registration.schedule(name, expression, kind="model", missed_fire_policy=policy)
    for name, policy in PROTOCOL.policies.items()
    for definition, expression in EXPRESSIONS.items()
}

Does = Literal["enqueue", "stale enqueue", "pause", "resume", "trigger", "sync", "stale sync", "remove and sync"]
Ends = Literal["commit", "rollback", "alone"]

DEFINITIONS = ("odd", "even", "odd")
"""What the first, second and third party register, if they sync."""

LOOK = "SELECT 'from here on this transaction sees no commit of others'"
AT_ONCE = ("enqueue", "pause", "resume", "trigger", "remove")
"""Steps that are transactions of their own where there is none around them."""
ONLY_LOOK = ("look", "read", "trigger")
"""Steps that lock nothing and see only what is committed; what they write nobody looks at."""


@dataclass(frozen=True)
class Party:
    """What a transaction does, and how it ends; ``alone`` is a statement without a transaction around it."""

    does: Does
    ends: Ends = "commit"

    def __str__(self) -> str:
        return self.does if self.ends == "commit" else f"{self.does} ({self.ends})"

    def commits(self, step: str) -> bool:
        """Tell whether others see what the step has written."""
        return step == "commit" or (self.ends == "alone" and step in AT_ONCE)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where the parties begin.

    Attributes:
        start: The state that they find.
        earlier: The state that a stale sync has read.
        passes: What an enqueue and a stale enqueue bring.
        clocks: Each party's clock.
        target: The schedule that operators act upon; passes and syncs are about both.
    """

    name: str
    start: State
    earlier: State
    passes: Mapping[str, Reading]
    clocks: tuple[int, int, int]
    target: str


class RolledBack(Exception):
    """A party has given up just before its commit."""


@dataclass(kw_only=True)
class Shared:
    """What the parties on one stage share.

    Attributes:
        schema: Where the tables are; tests hand in one with broken statements.
        early: Whether a transaction takes its snapshot in a step before the one that acts; not at READ COMMITTED.
        steps: What each statement is called that waits for a cue.
        counts: Steps that waited, and errors of the server by SQLSTATE.
        moment: How many steps have begun.
        moved: Set whenever a party has come to its next step, or to its end.
    """

    level: Level
    schema: Schema
    early: bool = True
    steps: dict[str, str] = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    moment: int = 0
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        names = {name: name for name in ("pause", "resume", "trigger", "remove")} | {
            "atomic_enqueue": "enqueue",
            "queries/differing_definitions": "read",
            "queries/hold_sync_lock": "lock",
            "sync": "write",
        }
        self.steps = {self.schema.statement(file): name for file, name in names.items()}
        self.steps |= {LOOK: "look", "COMMIT;": "commit"}


class Session(asyncpg.Connection):
    """A real session; while it plays a part, its statements wait for their cues."""

    part: Part | None = None

    async def fetch(self, query: str, *args: Any, **kwargs: Any) -> Any:
        run = functools.partial(super().fetch, query, *args, **kwargs)
        return await (run() if self.part is None else self.part.statement(query, run))

    async def execute(self, query: str, *args: Any, **kwargs: Any) -> Any:
        gives_up = self.part is not None and query == "COMMIT;" and self.part.party.ends == "rollback"
        run = functools.partial(super().execute, "ROLLBACK;" if gives_up else query, *args, **kwargs)
        answer = await (run() if self.part is None else self.part.statement(query, run))
        if gives_up:
            raise RolledBack
        return answer


class Part:
    """A party on the stage.

    Attributes:
        next: The step that waits for its cue; None while one is under way, and at the end.
        under_way: The last step that was begun.
        began: When each step was last begun.
        holds: The schedules whose rows this transaction holds.
        held: The schedules whose rows others held as each step was begun.
        waits: Whether the step under way was waiting for a lock when the others were settled.
    """

    def __init__(self, shared: Shared, session: Session, scene: Scene, index: int, party: Party) -> None:
        self.party, self.clock, self.definition = party, scene.clocks[index], DEFINITIONS[index]
        self.account = Account()
        self.next: str | None = None
        self.under_way = ""
        self.began: dict[str, int] = {}
        self.holds = NOBODY
        self.held: dict[str, Names] = {}
        self.waits = False
        self._shared, self._session, self._scene = shared, session, scene
        self._absent = NOBODY
        self._error: str | None = None
        self._deeds: list[Deed] | None = None
        self._session.part = self
        self.task = asyncio.create_task(self._play())
        self.task.add_done_callback(lambda _: shared.moved.set())

    @property
    def role(self) -> tuple[Party, int, str]:
        """What it does; two parties of one role may change places."""
        return self.party, self.clock, self.definition if "sync" in self.party.does else ""

    @property
    def pid(self) -> int:
        return self._session.get_server_pid()

    def cue(self, moment: int, held: Names) -> str:
        """Let the next step begin."""
        assert self.next is not None
        self.under_way, self.next = self.next, None
        self.began[self.under_way], self.held[self.under_way] = moment, held
        self._cue.set_result(None)
        return self.under_way

    async def statement(self, query: str, run: Callable[[], Awaitable[Any]]) -> Any:
        """Wait for the cue, if this is a step; then perform it, and note what it holds."""
        step = self._shared.steps.get(query)
        if step is None:
            return await run()
        self.next = "rollback" if step == "commit" and self.party.ends == "rollback" else step
        self._cue = asyncio.get_running_loop().create_future()
        self._shared.moved.set()
        await self._cue
        if not self._session.is_in_transaction():
            self._error = None
        try:
            found = await run()
        except asyncpg.PostgresError as error:
            self._error, self.holds = error.sqlstate, NOBODY
            self._shared.counts[error.sqlstate] += 1
            raise
        if not self._session.is_in_transaction() or step == "commit":
            self.holds = NOBODY
        elif step == "enqueue":
            self.holds |= self._reading.keys() - self.held[step]
        elif step == "write":
            self.holds |= {row["name"] for row in found}
        elif step in {"pause", "resume", "remove"} and found:
            self.holds |= {self._scene.target}
        if step == "read":
            self._absent = frozenset(row["defined_name"] for row in found if row["row_version"] is None)
        return found

    def wait(self) -> None:
        """Note that the step under way waits for a lock."""
        inserts = self.under_way == "write" and not self._absent.isdisjoint(self.held["write"])
        self.account.waits.append("insert" if inserts else self.under_way)

    @property
    def _reading(self) -> Reading:
        return self._scene.passes[self.party.does]

    async def _play(self) -> None:
        with contextlib.suppress(RolledBack):
            match self.party.does:
                case "enqueue" | "stale enqueue":
                    await self._transaction(frozenset(self._reading), self._enqueue)
                case "sync" | "stale sync":
                    await self._sync(dict.fromkeys(PROTOCOL.schedules, self.definition))
                case "remove and sync":
                    target = self._scene.target
                    remove = functools.partial(self._operate, "remove")
                    again = functools.partial(self._sync, {target: "each"})
                    if self._shared.level == "read_committed" and self.party.ends != "alone":
                        await self._transaction(frozenset({target}), remove, again)
                    elif await self._transaction(frozenset({target}), remove):
                        await again()
                case operation:
                    await self._transaction(
                        frozenset({self._scene.target}), functools.partial(self._operate, operation)
                    )

    async def _transaction(self, names: Names, *acts: Callable[[], Awaitable[None]]) -> bool:
        """Perform acts in a transaction; tell whether it was committed."""
        self._deeds = []
        self.began.clear()
        try:
            if self.party.ends == "alone":
                for act in acts:
                    await act()
            else:
                async with self._session.transaction(isolation=self._shared.level):
                    if self._shared.early and self._shared.level != "read_committed":
                        await self._session.execute(LOOK)
                    for act in acts:
                        await act()
        except (DatabaseError, asyncpg.PostgresError):
            if self.party.ends == "alone" or self._error not in actions.LOST_RACE:
                raise
        deeds, self._deeds = self._deeds, None
        began, ended = next(iter(self.began.values())), self._shared.moment
        if self._error is None:
            self.account.transactions.append(Transaction(deeds=tuple(deeds), began=began, ended=ended))
        else:
            self.account.losses.append(Loss(reason=self._error, names=names, since=began, until=ended))
        return self._error is None

    def _did(self, deed: Deed) -> None:
        assert self._deeds is not None
        self._deeds.append(deed)

    async def _enqueue(self) -> None:
        batch = [frozen_fires(name, frozen) for name, frozen in self._reading.items()]
        told = await actions.atomic_enqueue(
            self._session, self._shared.schema, batch, actor="pass", clock=instant(self.clock)
        )
        jobs = {name: len(job_ids) for name, job_ids in told.items()}
        self._did(
            Deed(action="enqueue", clock=self.clock, told=jobs, reading=self._reading, held=self.held["enqueue"])
        )

    async def _operate(self, operation: str) -> None:
        perform = getattr(actions, operation)
        told = await perform(
            self._session, self._shared.schema, self._scene.target, by="operator", clock=instant(self.clock)
        )
        if operation == "trigger":
            told = told is not None
        self._did(Deed(action=operation, clock=self.clock, told=told, name=self._scene.target))

    async def _sync(self, definitions: Mapping[str, str]) -> None:
        result = await actions.sync(
            self._session,
            self._shared.schema,
            [SCHEDULES[entry] for entry in definitions.items()],
            actor="deployment",
            pass_limit=PROTOCOL.pass_limit,
            clock=instant(self.clock),
        )
        read, written = self.began["read"], self.began.get("write", self.began["read"])
        reason = self._error or "sync"
        for name in result.lost:
            self.account.losses.append(
                Loss(reason=reason, names=frozenset({name}), since=read, until=written, held=self.held["write"])
            )
        told = {outcome.name: (outcome.change, len(outcome.job_ids)) for outcome in result.outcomes}
        for name in definitions.keys() - result.lost:
            deed = Deed(
                action="sync", clock=self.clock, told=told.get(name), name=name, definition=definitions[name]
            )
            if self._deeds is not None:
                self._deeds.append(deed)
            else:
                began, ended = (written, self._shared.moment) if name in told else (read, read)
                self.account.transactions.append(Transaction(deeds=(deed,), began=began, ended=ended))


def frozen_fires(name: str, frozen: Frozen) -> FrozenFires:
    """Return what a pass carries that has read and frozen this."""
    return FrozenFires(
        read=ScheduleState(
            name=name,
            cron_expr=SCHEDULES[name, frozen.definition].cron_expr,
            timezone="UTC",
            missed_fire_policy=PROTOCOL.policies[name],
            last_enqueued_at=None if frozen.expected is None else instant(frozen.expected),
            anchored_at=instant(frozen.anchor),
            paused_at=None,
        ),
        fires=tuple(map(instant, frozen.fires)),
        next_fire_at=instant(first_after(PROTOCOL.definitions[frozen.definition], frozen.fires[-1])),
    )
