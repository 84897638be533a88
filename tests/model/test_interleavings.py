"""All orders of the statements of two concurrent transactions, and of three, at every isolation level.

Each run has to equal some order of actions that the spec allows: the criterion is in ``serial_orders.py``. Orders
that differ only by neighbouring steps that cannot notice each other count as one: ``commute`` in ``interleave.py``.
The quick profile takes all pairs in one scene and samples of the rest; ``AWA_CRON_ASSURANCE_LEVEL=full`` takes all
pairs in all scenes, with parties that read long ago, and triples in one.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement

import pytest

from tests.model import ledger
from tests.model.interleave import LEVELS, Stage
from tests.model.orders import until
from tests.model.parties import PROTOCOL, Does, Ends, Party, Scene
from tests.model.scenes import SCENES
from tests.model.serial_orders import DEADLOCK, MAY_WAIT, SERIALIZATION_FAILURE, Level, Run
from tests.model.test_broken_statements import Broken, Edit, replacing, without

FULL = os.environ.get("AWA_CRON_ASSURANCE_LEVEL", "quick") == "full"

PARTS: tuple[Does, ...] = (
    "enqueue",
    "stale enqueue",
    "pause",
    "resume",
    "trigger",
    "sync",
    "stale sync",
    "remove and sync",
)
OF_THREE: tuple[Does, ...] = ("enqueue", "pause", "resume", "sync", "remove and sync", "trigger")
BY_NAME = {scene.name: scene for scene in SCENES}
DUE = BY_NAME["fires are due"]

TOTAL: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def account() -> Iterator[None]:
    """Hand on how much was run."""
    began = time.monotonic()
    yield
    ledger.record(
        "interleavings",
        runs=TOTAL["runs"],
        blocked=TOTAL["waited"],
        serialization_failures=TOTAL[SERIALIZATION_FAILURE],
        deadlocks=TOTAL[DEADLOCK],
        strayed=TOTAL["strayed"],
        seconds=round(time.monotonic() - began, 1),
    )


def ends(does: Does) -> tuple[Ends, ...]:
    """Return how a party can end; a sync has a transaction of its own, always."""
    return ("commit", "rollback") if does in {"sync", "stale sync"} else ("commit", "rollback", "alone")


def pairs(level: Level) -> list[tuple[Party, ...]]:
    """Return what two parties may do."""
    parts = PARTS if FULL or level == "read_committed" else OF_THREE
    return list(combinations_with_replacement([Party(does, how) for does in parts for how in ends(does)], 2))


def triples() -> Iterator[tuple[Party, ...]]:
    """Yield what three parties may do, of which one may roll back."""
    for parts in combinations_with_replacement(OF_THREE, 3):
        cast = tuple(map(Party, parts))
        yield cast
        if FULL:
            yield from {
                each.does: (Party(each.does, "rollback"), *cast[:i], *cast[i + 1 :]) for i, each in enumerate(cast)
            }.values()


def told(run: Run, party: int) -> list[object]:
    return [deed.told for each in run.accounts[party].transactions for deed in each.deeds]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
@pytest.mark.parametrize("level", LEVELS)
async def test_two_transactions_do_what_some_order_of_actions_does(dsn: str, level: Level, scene: Scene) -> None:
    async with Stage(dsn, level) as stage:
        if FULL or scene is DUE:
            for cast in pairs(level):
                async for _ in stage.every_order(scene, cast):
                    pass
        else:
            for cast in pairs(level)[LEVELS.index(level) :: 3]:
                await stage.some_orders(scene, cast, 1)
        TOTAL.update(stage.counts)
    assert 0 == stage.counts[DEADLOCK]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("level", LEVELS)
async def test_three_transactions_do_what_some_order_of_actions_does(dsn: str, level: Level) -> None:
    """With snapshots as the statement itself takes them; pairs have older ones as well.

    There is only a sample where one rolls back, and where two remove and sync in two transactions each, which takes
    some thousand orders.
    """
    async with Stage(dsn, level, early=False) as stage:
        for cast in triples():
            many = level != "read_committed" and [party.does for party in cast].count("remove and sync") > 1
            if not FULL:
                await stage.some_orders(DUE, cast, 1)
            elif many or cast[0].ends == "rollback":
                await stage.some_orders(DUE, cast, 5 if cast[0].ends == "rollback" else 100)
            else:
                async for _ in stage.every_order(DUE, cast):
                    pass
        TOTAL.update(stage.counts)
    assert 0 == stage.counts[DEADLOCK]


@pytest.mark.parametrize("level", LEVELS)
async def test_of_two_passes_one_brings_the_jobs_and_the_other_none(dsn: str, level: Level) -> None:
    everything = {"digest": 1, "ledger": 2}
    async with Stage(dsn, level) as stage:
        async for run in stage.every_order(DUE, [Party("enqueue"), Party("enqueue")]):
            assert everything in told(run, 0) + told(run, 1)
            assert {1: 1, 2: 1, 3: 1} == dict(run.observed.jobs["ledger"])
            assert {3: 1} == dict(run.observed.jobs["digest"])
            assert [[], []] == [account.waits for account in run.accounts], "the second gets none at once"


@pytest.mark.parametrize("level", LEVELS)
async def test_an_open_pause_holds_its_schedule_back_and_no_other(dsn: str, level: Level) -> None:
    cast = [Party("pause", "rollback"), Party("enqueue"), Party("enqueue")]
    async with Stage(dsn, level) as stage:
        run = await stage.run(
            DUE, cast, until((0, "pause"), (1, "enqueue"), (1, "commit"), (0, "rollback"), (2, "enqueue"))
        )
    assert [{"digest": 1}] == told(run, 1), "at once, without its target"
    assert [] == run.accounts[1].waits
    assert [{"ledger": 2}] == told(run, 2), "the next pass, when the pause was rolled back"


@pytest.mark.parametrize("level", LEVELS)
async def test_a_pass_read_before_a_removal_brings_nothing_after_it(dsn: str, level: Level) -> None:
    async with Stage(dsn, level) as stage:
        async for run in stage.every_order(DUE, [Party("remove and sync", "alone"), Party("enqueue", "alone")]):
            if run.steps.index((0, "remove")) < run.steps.index((1, "enqueue")):
                assert [{"digest": 1}] == told(run, 1), "the target's anchor has moved, or it is gone"
                assert {1: 1} == dict(run.observed.jobs["ledger"])


@pytest.mark.parametrize("level", ["repeatable_read", "serializable"])
@pytest.mark.parametrize("operation", ["pause", "resume", "trigger"])
async def test_an_operator_outside_of_a_transaction_never_loses(dsn: str, level: Level, operation: Does) -> None:
    async with Stage(dsn, level) as stage:
        for does in OF_THREE:
            async for run in stage.every_order(DUE, [Party(operation, "alone"), Party(does)]):
                assert [] == run.accounts[0].losses
                assert 1 == len(told(run, 0))


@pytest.mark.parametrize("level", LEVELS)
async def test_an_insert_does_not_wait_for_who_holds_a_row_that_has_come_into_being_since_its_read(
    dsn: str, level: Level
) -> None:
    """It holds the sync lock meanwhile, so every other sync and removal would wait with it."""
    async with Stage(dsn, level) as stage:
        cast = [Party("pause"), Party("stale sync")]
        run = await stage.run(DUE, cast, until((0, "pause"), (1, "write"), (0, "commit")))
    assert not run.accounts[1].waits
    assert PROTOCOL.schedules == tuple(sorted(name for loss in run.accounts[1].losses for name in loss.names))


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
async def test_a_scene_is_what_its_name_says(dsn: str, scene: Scene) -> None:
    async with Stage(dsn, "read_committed") as stage:
        run = await stage.run(scene, [], lambda options: options[0])
    assert (scene.start.rows, scene.start.jobs) == (run.observed.rows, run.observed.jobs)
    assert scene.start.floor == run.observed.floor
    assert set(PROTOCOL.schedules) >= scene.passes["enqueue"].keys() >= {scene.target}


@dataclass(frozen=True)
class Variant:
    """A broken statement, the criterion that must notice, and the parties that show it."""

    name: str
    criterion: str
    statement: str
    edit: Edit
    scene: str
    parts: tuple[Does, ...]
    level: Level = "read_committed"
    sync: Edit = str


def row_before_lock(text: str) -> str:
    """Let a removal delete first, and take the sync lock afterwards."""
    text = replacing("    USING serial\n", "")(text)
    lock = "serial AS MATERIALIZED (\n    SELECT pg_advisory_xact_lock($2::bigint)\n), "
    text = replacing(lock, "")(text)
    return replacing("FROM removed AS r, clock", "FROM removed AS r, clock, pg_advisory_xact_lock($2::bigint)")(
        text
    )


AHEAD = "ahead of a clock that steps back and forth"
VARIANTS = [
    Variant(
        "NoCAS",
        "NoDuplicateFire",
        "atomic_enqueue",
        without("LastAsRead", "Advances"),
        DUE.name,
        ("enqueue", "enqueue"),
    ),
    Variant(
        "NoLastAsRead",
        "SerialOrder",
        "atomic_enqueue",
        without("LastAsRead"),
        DUE.name,
        ("stale enqueue", "enqueue"),
    ),
    Variant(
        "NoDefinedAsRead",
        "SerialOrder",
        "atomic_enqueue",
        without("DefinedAsRead"),
        AHEAD,
        ("sync", "enqueue"),
    ),
    Variant(
        "NoPauseGuard",
        "SerialOrder",
        "atomic_enqueue",
        without("Unpaused"),
        DUE.name,
        ("pause", "enqueue"),
    ),
    Variant(
        "EnqueueWaits",
        "NobodyWaitsForARow",
        "atomic_enqueue",
        replacing("FOR NO KEY UPDATE OF c SKIP LOCKED", "FOR NO KEY UPDATE OF c"),
        DUE.name,
        ("pause", "enqueue"),
    ),
    Variant(
        "SyncWaits",
        "NobodyWaitsForARow",
        "sync",
        replacing("OF c SKIP LOCKED", "OF c"),
        DUE.name,
        ("pause", "sync"),
    ),
    Variant(
        "PauseSkipsHeldRow",
        "SerialOrder",
        "pause",
        replacing("FOR NO KEY UPDATE", "FOR NO KEY UPDATE SKIP LOCKED"),
        DUE.name,
        ("enqueue", "pause"),
    ),
    Variant(
        "TriggerLocksRow",
        "LostForAReason",
        "trigger",
        replacing("WHERE c.name = $1::text\n", "WHERE c.name = $1::text FOR NO KEY UPDATE\n"),
        DUE.name,
        ("trigger", "sync"),
    ),
    Variant(
        "RemoveLocksRowFirstAndInsertWaits",
        "NoDeadlock",
        "remove",
        row_before_lock,
        DUE.name,
        ("stale sync", "remove and sync"),
        sync=replacing("AND NOT EXISTS (SELECT", "OR EXISTS (SELECT WHERE false) AND NOT EXISTS (SELECT"),
    ),
    Variant(
        "NoAsRead",
        "SerialOrder",
        "sync",
        replacing("c.xmin::text = d.row_version ", "true "),
        "paused, the clock goes on",
        ("sync", "resume"),
    ),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
async def test_a_broken_statement_does_what_no_order_of_actions_does(dsn: str, variant: Variant) -> None:
    scene, cast = BY_NAME[variant.scene], [Party(does) for does in variant.parts]
    async with Stage(dsn, variant.level) as stage:
        async for _ in stage.every_order(scene, cast):
            pass
    broken = Broken("sync", variant.sync, **{variant.statement: variant.edit})
    async with Stage(dsn, variant.level, broken) as stage:
        if variant.criterion != "NobodyWaitsForARow":
            # Without the sync lock inserts meet; that they wait for each other is not the point.
            stage.may_wait = (*MAY_WAIT, "insert", "write")
        with pytest.raises(AssertionError, match=variant.criterion):
            async for _ in stage.every_order(scene, cast):
                pass


@pytest.mark.parametrize("level", LEVELS)
async def test_an_enqueue_that_waits_would_still_bring_what_some_order_does(dsn: str, level: Level) -> None:
    """Passing over held rows is for speed and against deadlocks; what comes out does not depend on it."""
    waits = replacing("FOR NO KEY UPDATE OF c SKIP LOCKED", "FOR NO KEY UPDATE OF c")
    async with Stage(dsn, level, Broken("atomic_enqueue", waits)) as stage:
        stage.may_wait = (*MAY_WAIT, "enqueue")
        for does in PARTS:
            async for _ in stage.every_order(DUE, [Party("enqueue"), Party(does)]):
                pass
        assert stage.counts["waited"]
