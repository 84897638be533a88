"""What the checks behind the promises share: where things are, and how to say that one can't run."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec"


class CannotRunError(Exception):
    """A tool is missing, or files contradict each other; the message says what to do."""
