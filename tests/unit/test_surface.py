"""The names that users may rely on."""

from __future__ import annotations

import inspect

import awa_cron
from awa_cron import errors

PUBLIC = [
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


def test_the_public_names_are_these() -> None:
    assert PUBLIC == sorted(awa_cron.__all__)
    assert all(hasattr(awa_cron, name) for name in PUBLIC)


def test_every_public_name_has_a_docstring() -> None:
    assert [] == [name for name in PUBLIC if not inspect.getdoc(getattr(awa_cron, name))]


def test_every_error_is_one_of_ours_and_bad_values_are_value_errors() -> None:
    ours = {name: value for name, value in vars(errors).items() if inspect.isclass(value)}
    assert all(issubclass(value, errors.AwaCronError) for value in ours.values())
    value_errors = {name for name, value in ours.items() if issubclass(value, ValueError)}
    assert {
        "InvalidArgs",
        "InvalidArgument",
        "InvalidCronExpression",
        "InvalidSchedule",
        "UnknownTimezone",
    } == value_errors
    assert set(ours) <= set(PUBLIC), "an error that can be raised can be caught by its public name"


def test_a_clients_methods_are_these() -> None:
    methods = {name for name, _ in inspect.getmembers(awa_cron.Client) if not name.startswith("_")}
    promised = {
        "cancel_jobs",
        "enqueue",
        "explain",
        "get_jobs",
        "get_schedule",
        "history",
        "jobs_of",
        "leadership",
        "list_dead",
        "list_queues",
        "list_schedules",
        "pause",
        "overview",
        "pause_queue",
        "periodic",
        "preview_resume",
        "purge_dead",
        "remove",
        "resume",
        "resume_queue",
        "retry_dead",
        "run_forever",
        "task",
        "trigger",
        "view",
    }
    assert promised <= methods
