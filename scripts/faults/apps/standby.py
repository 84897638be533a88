"""A schedule that fires each second, and settings that the harness gives."""

from __future__ import annotations

import json
import os

import awa_cron

client = awa_cron.Client(settings=awa_cron.Settings(**json.loads(os.environ["FAULTS_SETTINGS"])))
client.periodic("beat", "* * * * * *", kind="work")
