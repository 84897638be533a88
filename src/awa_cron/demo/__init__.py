"""The demonstration: schedules on a real Postgres while leaders are killed and frozen, and the accounts after it.

``app`` is an ordinary module that uses awa_cron; ``run`` tells the story with processes of it; ``account`` decides,
from what was recorded, whether anything was lost or doubled.
"""
