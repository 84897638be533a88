"""Periodic jobs for Postgres that cannot lose a fire or make it twice.

The protocol is specified in TLA+ (``spec/AwaCron.tla``); ``awa_cron.actions`` performs its actions by the same
names on a real database, and ``Client`` runs them.
"""

from awa_cron.client import Client
from awa_cron.cronexpr import due_fires, next_fires, previous_fires
from awa_cron.errors import (
    AwaCronError,
    DatabaseError,
    InvalidArgument,
    InvalidCronExpression,
    InvalidSchedule,
    LeadershipLost,
    ScheduleNotFound,
    SchemaMismatch,
    StoredScheduleInvalid,
    UnknownTimezone,
)
from awa_cron.model import Event, Job, JobState, MissedFirePolicy, Schedule, StoredSchedule
from awa_cron.settings import Settings
from awa_cron.verify import Account, Finding, Verdict

__all__ = [
    "Account",
    "AwaCronError",
    "Client",
    "DatabaseError",
    "Event",
    "Finding",
    "InvalidArgument",
    "InvalidCronExpression",
    "InvalidSchedule",
    "Job",
    "JobState",
    "LeadershipLost",
    "MissedFirePolicy",
    "Schedule",
    "ScheduleNotFound",
    "SchemaMismatch",
    "Settings",
    "StoredSchedule",
    "StoredScheduleInvalid",
    "UnknownTimezone",
    "Verdict",
    "due_fires",
    "next_fires",
    "previous_fires",
]
