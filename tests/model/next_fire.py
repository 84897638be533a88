"""Next fires as rows of the database have them, held against the model's definitions.

Spec: NextNeverLate of AwaCronNext. A row's next fire is derived, and so no variable of the model's state.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from tests.model.spec_state import Row


def first_after(fires_at: Callable[[int], bool], t: int) -> int:
    """Return the first instant after ``t`` at which a definition fires. Those of the machines never end."""
    return next(f for f in itertools.count(t + 1) if fires_at(f))


def derived_next(fires_at: Callable[[int], bool], row: Row) -> int:
    """Return the row's first fire that counts."""
    return first_after(fires_at, row.anchor if row.last is None else max(row.anchor, row.last))


def check_never_late(fires_at: Callable[[int], bool], row: Row, next_fire: int | None) -> None:
    """Check what is stored: unknown, exact, or early.

    Raises:
        AssertionError: A pass would miss a fire.
    """
    derived = derived_next(fires_at, row)
    assert next_fire is None or next_fire <= derived, f"NextNeverLate: {next_fire} for {derived}, {row}"
