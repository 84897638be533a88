"""Where concurrent transactions begin: states of the database, what stale parties have read before, and clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.model.parties import PROTOCOL, Scene
from tests.model.serial_orders import Reading
from tests.model.spec_state import Row, State, Table


def state(
    rows: Mapping[str, Row | None], jobs: Mapping[str, tuple[int, ...]], floor: Mapping[str, int] | None = None
) -> State:
    """Return a state with these rows, one job for each of these instants, and these floors."""
    return replace(
        PROTOCOL.init(),
        rows=Table(rows),
        jobs=Table((name, Table((fire, 1) for fire in jobs.get(name, ()))) for name in rows),
        floor=Table({name: (floor or {}).get(name, 0) for name in rows}),
    )


def reading(before: State, now: int) -> Reading:
    """Return what a pass freezes that reads a state at an instant."""
    found = next(PROTOCOL.readings(replace(before, now=now)))
    return {name: frozen for name, frozen in found.items() if frozen is not None}


def passes(fresh: Reading, stale: Reading) -> Mapping[str, Reading]:
    return {"enqueue": fresh, "stale enqueue": stale}


NOTHING = state({"digest": None, "ledger": None}, {})
NEW = state({"digest": Row("each", None, 0, False), "ledger": Row("each", None, 0, False)}, {})
RUNNING = state(
    {"digest": Row("each", None, 0, False), "ledger": Row("each", 1, 0, False)},
    {"ledger": (1,)},
)
PAUSED = state(
    {"digest": Row("each", None, 0, True), "ledger": Row("each", 1, 0, True)},
    {"ledger": (1,)},
)
AHEAD = state(
    {"digest": Row("each", 3, 0, False), "ledger": Row("each", 3, 0, False)},
    {"digest": (3,), "ledger": (1, 2, 3)},
)
REMOVED = state(
    {"digest": None, "ledger": Row("each", 1, 0, False)},
    {"digest": (1, 3), "ledger": (1,)},
    {"digest": 3},
)
REBORN = state(
    {"digest": Row("each", None, 3, False), "ledger": Row("each", None, 3, False)},
    {"digest": (1, 3), "ledger": (1, 2, 3)},
    {"digest": 3, "ledger": 3},
)

SCENES = (
    Scene(
        name="fires are due",
        start=RUNNING,
        earlier=NOTHING,
        passes=passes(reading(RUNNING, 3), reading(NEW, 2)),
        clocks=(3, 3, 3),
        target="ledger",
    ),
    Scene(
        name="paused, the clock goes on",
        start=PAUSED,
        earlier=RUNNING,
        passes=passes(reading(RUNNING, 3), reading(NEW, 2)),
        clocks=(3, 4, 5),
        target="digest",
    ),
    Scene(
        name="removed, the clock has stepped back",
        start=REMOVED,
        earlier=RUNNING,
        passes=passes(reading(state({**AHEAD.rows, "ledger": REMOVED.rows["ledger"]}, {}), 4), reading(RUNNING, 3)),
        clocks=(2, 2, 2),
        target="digest",
    ),
    Scene(
        name="ahead of a clock that steps back and forth",
        start=AHEAD,
        earlier=NOTHING,
        passes=passes(reading(AHEAD, 5), reading(RUNNING, 3)),
        clocks=(2, 5, 3),
        target="ledger",
    ),
    Scene(
        name="removed and registered again",
        start=REBORN,
        earlier=NOTHING,
        passes=passes(reading(REBORN, 5), reading(RUNNING, 3)),
        clocks=(5, 5, 5),
        target="digest",
    ),
)
