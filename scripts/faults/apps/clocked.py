"""A module whose instance uses a clock of its own, that the harness steps: the seconds are in a file."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import awa_cron
from faults.apps.releases import CLOCKED, EACH_SECOND

_OFFSET = Path(os.environ["FAULTS_CLOCK"])


def clock() -> datetime:
    """Return the time as this instance sees it."""
    return datetime.now(UTC) + timedelta(seconds=float(_OFFSET.read_text()))


client = awa_cron.Client(settings=CLOCKED, clock=clock)
client.periodic("clocked_coalesce", EACH_SECOND, kind="work")
client.periodic("clocked_catch_up", EACH_SECOND, kind="work", missed_fire_policy="catch_up")
