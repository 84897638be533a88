"""Every step of a state graph on Postgres, from its state put in place, and every refusal beside it.

Two processes share the states, each with a database of its own. Quick runs take the small graphs whole and a sample
of the others; ``AWA_CRON_ASSURANCE_LEVEL=full`` takes everything.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import reduce

import pytest

from awa_cron.sql import Schema
from tests import postgres
from tests.model import ledger
from tests.model.graphs import EXPRESSIONS, LARGE, SMALL, Unasked, attempts, explore, level
from tests.model.replay import Tally, replay
from tests.model.spec_model import Model
from tests.model.worlds import Worlds

FULL = level() == "full"

PROCESSES = int(os.environ.get("AWA_CRON_ASSURANCE_PROCESSES", min(2, os.cpu_count() or 1)))

EVERY = {
    "catch_up, three instants, two a pass": 1,
    "triggers": 1,
    "clock slips": 1,
    "faulty evaluator": 1,
    "coalesce": 20,
    "two schedules": 20,
    "coalesce, triggers": 50,
    "catch_up, triggers": 50,
}
"""A quick run takes each so-and-so-many-th state, in the order of exploration."""


CONFIGURATIONS: dict[str, Model] = {**SMALL, **LARGE}


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


def share_of(model: Model, dsn: str, every: int, first: int = 0, schema: Schema | None = None) -> Tally:
    """Replay each so-and-so-many-th state."""

    async def run() -> Tally:
        async with Worlds(dsn, model, EXPRESSIONS, schema) as worlds:
            chosen = (each for number, each in enumerate(explore(model)) if number % every == first)
            return await replay(worlds, ((state, list(attempts(model, state, tries))) for state, tries in chosen))

    return asyncio.run(run())


def share(name: str, dsn: str, every: int, first: int) -> Tally:
    """The same, by a name that can be handed to another process."""
    return share_of(CONFIGURATIONS[name], dsn, every, first)


@pytest.mark.timeout(3600 if FULL else 180)
@pytest.mark.parametrize("name", list(CONFIGURATIONS if FULL else EVERY))
def test_every_step_and_every_refusal_is_that_of_the_spec(
    server_dsn: str, databases: postgres.Databases, processes: ProcessPoolExecutor, name: str
) -> None:
    every = 1 if FULL else EVERY[name]
    copies = [databases.take() for _ in range(PROCESSES)]
    started = time.monotonic()
    shares = [
        processes.submit(share, name, postgres.on_database(server_dsn, copy), every * PROCESSES, first * every)
        for first, copy in enumerate(copies)
    ]
    tally = reduce(Tally.__add__, (each.result() for each in shares))
    seconds = time.monotonic() - started
    for copy in copies:
        databases.give_back(copy)
    ledger.record(
        "edges",
        configuration=name,
        every=every,
        states=tally.states,
        edges=tally.edges,
        disabled=tally.disabled,
        unasked=tally.unasked.total(),
        **{f"unasked_{reason.name.lower()}": tally.unasked[reason] for reason in Unasked},
        seconds=round(seconds, 1),
        edges_per_second=round(tally.edges / seconds),
    )
    assert tally.states > 0
