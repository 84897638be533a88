"""Every step of a state graph on Postgres, from its state put in place, and every refusal beside it.

Two processes share the states, each with a database of its own. A quick run takes three graphs whole and samples of
others; ``AWA_CRON_ASSURANCE_LEVEL=full`` takes everything.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Container, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import reduce

import pytest

from awa_cron.sql import Schema
from tests import postgres
from tests.model import ledger
from tests.model.graphs import EXPRESSIONS, LARGE, SMALL, Attempt, Unasked, attempts, explore, level
from tests.model.replay import Tally, replay
from tests.model.spec_model import Model
from tests.model.spec_state import State
from tests.model.test_broken_statements import VARIANTS, Broken, Edit, replacing, without
from tests.model.worlds import Worlds

FULL = level() == "full"

PROCESSES = int(os.environ.get("AWA_CRON_ASSURANCE_PROCESSES", min(2, os.cpu_count() or 1)))

EVERY = {
    "catch_up, three instants, two a pass": 4,
    "triggers": 1,
    "clock slips": 1,
    "faulty evaluator": 1,
    "coalesce": 20,
    "two schedules": 20,
    "coalesce, triggers": 50,
    "catch_up, triggers": 50,
}
"""Of a quick run: each so-and-so-many-th state, in the order of exploration."""

EVERY_IN_FULL = {"two schedules, two instances": 8, "clock slips, catch_up": 4}
"""Of a full run: the two largest take half an hour by themselves. All others have every state put in place."""


CONFIGURATIONS: dict[str, Model] = {**SMALL, **LARGE}


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


def share_of(
    model: Model,
    dsn: str,
    every: int = 1,
    first: int = 0,
    *,
    schema: Schema | None = None,
    only: Container[str] | None = None,
) -> tuple[Counter[str], Tally]:
    """Replay each so-and-so-many-th state; some actions only, if they are given.

    Returns:
        How many states and edges were to be replayed, and what was.
    """
    due = Counter[str]()

    def asked() -> Iterator[tuple[State, list[Attempt | Unasked]]]:
        for number, (state, tries) in enumerate(explore(model)):
            due["reachable"] += 1
            if number % every == first:
                due["states"] += 1
                due["edges"] += len({(action, after) for action, _, after in tries if after is not None})
                made = [each for each in attempts(model, state, tries) if only is None or wanted(each, only)]
                if made:
                    yield state, made

    async def run() -> Tally:
        async with Worlds(dsn, model, EXPRESSIONS, schema) as worlds:
            return await replay(worlds, asked())

    return due, asyncio.run(run())


def wanted(tried: Attempt | Unasked, only: Container[str]) -> bool:
    return isinstance(tried, Attempt) and tried.action in only


def share(name: str, dsn: str, every: int, first: int) -> tuple[Counter[str], Tally]:
    """The same, by a name that can be handed to another process."""
    return share_of(CONFIGURATIONS[name], dsn, every, first)


@pytest.mark.timeout(3600 if FULL else 180)
@pytest.mark.parametrize("name", list(CONFIGURATIONS if FULL else EVERY))
def test_every_step_and_every_refusal_is_that_of_the_spec(
    server_dsn: str, databases: postgres.Databases, processes: ProcessPoolExecutor, name: str
) -> None:
    every = EVERY_IN_FULL.get(name, 1) if FULL else EVERY[name]
    copies = [databases.take() for _ in range(PROCESSES)]
    started = time.monotonic()
    shares = [
        processes.submit(share, name, postgres.on_database(server_dsn, copy), every * PROCESSES, first * every)
        for first, copy in enumerate(copies)
    ]
    done = [each.result() for each in shares]
    seconds = time.monotonic() - started
    for copy in copies:
        databases.give_back(copy)
    tally = reduce(Tally.__add__, (tally for _, tally in done))
    reachable = done[0][0]["reachable"]
    assert tally.states == sum(due["states"] for due, _ in done) == len(range(0, reachable, every))
    assert tally.edges == sum(due["edges"] for due, _ in done)
    ledger.record(
        "edges",
        configuration=name,
        reachable=reachable,
        every=every,
        states=tally.states,
        edges=tally.edges,
        calls=tally.calls,
        disabled=tally.disabled,
        unasked=tally.unasked.total(),
        **{f"unasked_{reason.name.lower()}": tally.unasked[reason] for reason in Unasked},
        seconds=round(seconds, 1),
        edges_per_second=round(tally.edges / seconds),
        processes=PROCESSES,
    )


GUARDS = {
    "LastAsRead": "clock slips",
    "DefinedAsRead": "clock slips",
    "Unpaused": "triggers",
    "Advances": "faulty evaluator",
    "AfterAnchor": "faulty evaluator",
    "AlreadyDue": "clock slips",
}
"""Each guard of the conditional write, and a graph in which it is the only one that stands in the way."""


@dataclass(frozen=True)
class Fault:
    """A statement that is broken, and a graph in which its steps show it."""

    statement: str
    edit: Edit
    configuration: str = "triggers"


FAULTS = {
    **{f"No{guard}": Fault("atomic_enqueue", without(guard), graph) for guard, graph in GUARDS.items()},
    "AcquireTakesNoLock": Fault(
        "acquire_leader", replacing("pg_try_advisory_lock($1::bigint)", "($1::bigint IS NOT NULL)")
    ),
    "AnyHolderWillDo": Fault(
        "ping_leader", replacing("          AND l.pid = pg_backend_pid()  -- HoldsLock\n", "")
    ),
    "LoseKeepsTheLock": Fault(
        "lose_leader", replacing("pg_advisory_unlock($1::bigint)", "($1::bigint IS NOT NULL)")
    ),
    "PauseAgain": Fault("pause", without("Unpaused")),
    "ResumeTheUnpaused": Fault("resume", without("Paused")),
    "RemoveForgets": Fault("remove", replacing("$3::text, r.last_enqueued_at", "$3::text, NULL::timestamptz")),
}
THEIR_GRAPHS = {"NoFloor": "clock slips"}
if FULL:
    FAULTS |= {v.name: Fault(v.statement, v.edit, THEIR_GRAPHS.get(v.name, "triggers")) for v in VARIANTS}


SURPRISE = r"(?s)^(\w+\(.*\), (en|dis)abled,|another world's action).*\n(led to|says)|^NextNeverLate: "


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_statement_takes_a_step_that_is_none_of_the_spec(dsn: str, name: str) -> None:
    fault = FAULTS[name]
    only = {fault.statement, "cas_fail"} if fault.statement == "atomic_enqueue" else {fault.statement}

    with pytest.raises(AssertionError, match=SURPRISE):
        share_of(CONFIGURATIONS[fault.configuration], dsn, schema=Broken(fault.statement, fault.edit), only=only)
