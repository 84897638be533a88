"""The first release."""

from __future__ import annotations

from faults.apps.releases import client as _client

client = _client(1)
