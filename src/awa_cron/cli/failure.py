"""Errors as one line on stderr and an exit status that tells a script what went wrong."""

from __future__ import annotations

import click

from awa_cron.errors import AwaCronError, DeadJobNotFound, InvalidArgument, InvalidSchedule, ScheduleNotFound


class Failed(click.ClickException):
    """What was asked could not be done."""

    exit_code = 1


class Misused(click.ClickException):
    """What was asked makes no sense."""

    exit_code = 2


class NotFound(click.ClickException):
    """What was named does not exist."""

    exit_code = 3


def status(error: AwaCronError) -> type[click.ClickException]:
    """Return what the command line makes of an error of the library."""
    match error:
        case ScheduleNotFound() | DeadJobNotFound():
            return NotFound
        case InvalidArgument() | InvalidSchedule():
            return Misused
        case _:
            return Failed
