"""Walks from the initial state on Postgres that take every step of a state graph; nothing is put in place.

Many walks go side by side, every action commits, and each instance works in a session of its own. Sessions and
processes really end in some more, which the machine's cluster takes one after the other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from tests.model import ledger
from tests.model.cluster import Cluster
from tests.model.graphs import EXPRESSIONS, LARGE, SMALL, level, small, steps_of, walks
from tests.model.replay import walk
from tests.model.spec_model import Model
from tests.model.spec_state import State, Step
from tests.model.worlds import Worlds

FULL = level() == "full"

WALKED: dict[str, Model] = {"coalesce, one instant": small(max_time=1)}
"""More than 1,000 states."""
if FULL:
    WALKED |= {"triggers": SMALL["triggers"], "clock slips": SMALL["clock slips"]}
    WALKED |= {"catch_up, triggers": LARGE["catch_up, triggers"]}

SAMPLED = 1_000 if FULL else 100


def labelled(model: Model, found: Sequence[Sequence[Step]]) -> set[tuple[State, str, State]]:
    """Return the edges that walks take."""
    edges = set()
    for steps in found:
        before = model.init()
        for step in steps:
            edges.add((before, step.action, step.after))
            before = step.after
    return edges


@pytest.mark.timeout(3600 if FULL else 180)
@pytest.mark.parametrize("name", WALKED)
def test_walks_from_the_initial_state_take_every_step(dsn: str, name: str) -> None:
    model = WALKED[name]
    found = walks(model)
    every = {(before, step.action, step.after) for before, step in steps_of(model)}
    assert labelled(model, found) == every

    async def run() -> int:
        async with Worlds(dsn, model, EXPRESSIONS) as worlds:
            return await walk(worlds, model.init(), found)

    started = time.monotonic()
    taken = asyncio.run(run())
    seconds = time.monotonic() - started
    states = len({before for before, _, _ in every})
    assert states >= 1_000
    ledger.record(
        "paths",
        configuration=name,
        states=states,
        edges=len(every),
        walks=len(found),
        steps=taken,
        seconds=round(seconds, 1),
        steps_per_second=round(taken / seconds),
    )


@pytest.mark.timeout(3600 if FULL else 180)
def test_walks_where_sessions_really_end(dsn: str) -> None:
    """Those walks of a small model that end sessions most often, through the cluster."""
    model = small(("poll",), ("each",), max_time=1)
    endings = ("drop_session", "crash")
    by_endings = sorted(walks(model), key=lambda steps: sum(step.action in endings for step in steps), reverse=True)

    async def run() -> tuple[int, int]:
        cluster = Cluster(
            dsn,
            instances=list(model.instances),
            policies=model.policies,
            definitions=model.definitions,
            expressions=EXPRESSIONS,
            pass_limit=model.pass_limit,
        )
        await cluster.open()
        taken = ended = 0
        for steps in by_endings:
            if ended >= SAMPLED:
                break
            await cluster.reset()
            for step in steps:
                now = step.after.now
                if step.action != "advance_clock":
                    await getattr(cluster, step.action)(now, *step.arguments)
                assert step.after == await cluster.observe(now), f"{step.action}{step.arguments}"
                taken += 1
                ended += step.action in endings
        await cluster.close()
        return taken, ended

    started = time.monotonic()
    taken, ended = asyncio.run(run())
    seconds = time.monotonic() - started
    assert ended >= SAMPLED
    ledger.record("paths with sessions that end", steps=taken, ended=ended, seconds=round(seconds, 1))
