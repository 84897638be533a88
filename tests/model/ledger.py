"""Numbers that a run of the tests hands on to ``scripts/assure``, a line of JSON each."""

from __future__ import annotations

import json
import os
from pathlib import Path

VARIABLE = "AWA_CRON_ASSURANCE"
"""Names the file; without it nothing is kept."""

Number = int | float | str


def kept() -> bool:
    """Tell whether anybody wants the numbers."""
    return bool(os.environ.get(VARIABLE))


def record(section: str, **numbers: Number) -> None:
    """Append what was measured to the file, if there is one."""
    if kept():
        with Path(os.environ[VARIABLE]).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"section": section, **numbers}) + "\n")


def read(path: Path) -> list[dict[str, Number]]:
    """Return what was recorded, in that order; nothing where there is no file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
