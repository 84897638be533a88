"""Values on the command line that more than one verb reads."""

from __future__ import annotations

from datetime import datetime

from awa_cron import model
from awa_cron.errors import InvalidArgument


def time_of(option: str, text: str) -> datetime:
    """Return the instant that an option names.

    Raises:
        InvalidArgument: It is not ISO 8601, or has no offset.
    """
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgument(f"{option} is {text!r}: give ISO 8601 with an offset, 2026-03-29T00:00Z") from None
    return model.aware(value, option)
