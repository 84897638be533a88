"""Real instances under faults: what scripts/chaos and scripts/failover share."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class CannotRunError(Exception):
    """Something is missing, or does not come about; the message says what."""
