"""What scripts/bench measures: this library, its peers, and the bare SQL that any solution must execute."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class CannotMeasureError(Exception):
    """A subject is missing, or cannot do a case; the message says why."""
