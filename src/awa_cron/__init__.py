"""Periodic jobs for Postgres that cannot lose a fire or make it twice.

The protocol is specified in TLA+ (``spec/AwaCron.tla``); ``awa_cron.actions`` performs its actions by the same
names on a real database, and ``Client`` runs them.
"""

from awa_cron.client import Client
from awa_cron.cronexpr import due_fires, next_fires, previous_fires
from awa_cron.errors import (
    AttemptCancelled,
    AwaCronError,
    DatabaseError,
    DeadJobNotFound,
    InvalidArgs,
    InvalidArgument,
    InvalidCronExpression,
    InvalidSchedule,
    LeadershipLost,
    ScheduleNotFound,
    SchemaMismatch,
    StoredScheduleInvalid,
    UnknownTimezone,
)
from awa_cron.insight.reasons import Explanation, JobFate, Reason
from awa_cron.insight.resuming import ResumePreview
from awa_cron.insight.views import Condition, JobView, LeaderView, ScheduleView
from awa_cron.model import (
    Cancelled,
    DeadJob,
    Event,
    Job,
    JobState,
    MissedFirePolicy,
    Queue,
    Schedule,
    StoredSchedule,
)
from awa_cron.outcomes import Cancel, Cancellation, RetryAfter, Snooze
from awa_cron.preview import ComingFire, Oddity, coming_fires
from awa_cron.settings import Settings
from awa_cron.verify import Account, Finding, Verdict

__all__ = [
    "Account",
    "AttemptCancelled",
    "AwaCronError",
    "Cancel",
    "Cancellation",
    "Cancelled",
    "Client",
    "ComingFire",
    "Condition",
    "DatabaseError",
    "DeadJob",
    "DeadJobNotFound",
    "Event",
    "Explanation",
    "Finding",
    "InvalidArgs",
    "InvalidArgument",
    "InvalidCronExpression",
    "InvalidSchedule",
    "Job",
    "JobFate",
    "JobState",
    "JobView",
    "LeaderView",
    "LeadershipLost",
    "MissedFirePolicy",
    "Oddity",
    "Queue",
    "Reason",
    "ResumePreview",
    "RetryAfter",
    "Schedule",
    "ScheduleNotFound",
    "ScheduleView",
    "SchemaMismatch",
    "Settings",
    "Snooze",
    "StoredSchedule",
    "StoredScheduleInvalid",
    "UnknownTimezone",
    "Verdict",
    "coming_fires",
    "due_fires",
    "next_fires",
    "previous_fires",
]
