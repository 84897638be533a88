"""Values on the command line that more than one verb reads."""

from __future__ import annotations

from datetime import UTC, datetime

from awa_cron.errors import InvalidArgument

EXAMPLE = "2026-03-29T00:00Z"


def time_of(option: str, text: str) -> datetime:
    """Return the instant that an option names.

    Raises:
        InvalidArgument: It is not ISO 8601, or has no offset.
    """
    value = local_or_instant(option, text)
    if value.tzinfo is None:
        raise InvalidArgument(
            f"{option} is {text!r}, which has no time zone: add Z for UTC, or an offset, as in {EXAMPLE} or "
            "2026-03-29T02:00+02:00"
        )
    return value.astimezone(UTC)


def local_or_instant(option: str, text: str) -> datetime:
    """Return a time, which may lack an offset.

    Raises:
        InvalidArgument: It is not ISO 8601, or so near the ends of time that it has no time in UTC.
    """
    try:
        value = datetime.fromisoformat(text)
        if value.tzinfo is not None:
            value.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidArgument(f"{option} is {text!r}: give ISO 8601 with an offset, {EXAMPLE}") from None
    return value
