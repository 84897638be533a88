"""Every exception that awa_cron raises on purpose.

AwaCronError
├── InvalidSchedule (ValueError)      a definition refused at registration
│   ├── InvalidCronExpression
│   └── UnknownTimezone
├── InvalidArgument (ValueError)      any other value handed to a public function
├── ScheduleNotFound                  an operator named a schedule that has no row
├── DeadJobNotFound                   an operator named a job that is not dead
├── AttemptCancelled                  raised in a handler that asked whether to go on, and is to stop
├── InvalidArgs (ValueError)          a job's arguments cannot be read, or do not fit the type of its handler
├── StoredScheduleInvalid             a row of cron_jobs that cannot be evaluated
├── LeadershipLost                    this instance no longer holds the leader's lock
├── SchemaMismatch                    the schema is not ours, not migrated, or too new
└── DatabaseError                     the driver's or server's error is its __cause__

A lost race is never an exception: the actions return it.
"""

from __future__ import annotations


class AwaCronError(Exception):
    """Base of all errors raised by awa_cron."""


class InvalidSchedule(AwaCronError, ValueError):
    """A schedule was refused at registration; the message names the field, the value and the remedy."""


class InvalidCronExpression(InvalidSchedule):
    """A cron expression outside the dialect, or one that never fires."""


class UnknownTimezone(InvalidSchedule):
    """Not the name of an IANA time zone."""


class InvalidArgument(AwaCronError, ValueError):
    """A value handed to a public function is not usable; the message says which and why."""


class ScheduleNotFound(AwaCronError):
    """No schedule of that name is stored."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"no schedule named {name!r}: a name is stored at the first sync of the process that registers it"
        )
        self.name = name


class DeadJobNotFound(AwaCronError):
    """No dead job has this id, or it has no attempts left to be given."""


class AttemptCancelled(AwaCronError):
    """This attempt is to stop: its job was cancelled or taken away, its time is up, or its worker stops."""


class InvalidArgs(AwaCronError, ValueError):
    """Arguments that cannot be read, or do not fit the type that the handler of their kind takes."""


class StoredScheduleInvalid(AwaCronError):
    """A stored row cannot be evaluated, for instance because it was written by hand."""


class LeadershipLost(AwaCronError):
    """The session that held the leader's lock is gone, or no longer holds it."""


class SchemaMismatch(AwaCronError):
    """The database's schema is not the one this version works with."""


class DatabaseError(AwaCronError):
    """The database could not do what was asked; the driver's error is the cause."""
