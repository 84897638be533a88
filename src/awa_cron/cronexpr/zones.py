"""IANA time zones by name, and the instants at which a zone's clock changes.

Names and rules come from the installed `tzdata` package alone, never from the host: every instance of a
deployment then computes the same fires, whatever its operating system ships.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Final
from zoneinfo import ZoneInfo

from awa_cron.errors import UnknownTimezone

LONGEST_SHOWN: Final = 60


def zone(name: str) -> ZoneInfo:
    """The time zone of that name.

    Args:
        name: a member of `zoneinfo.available_timezones()` as `tzdata` gives it, case-sensitive. Not valid are
            ``localtime``, ``Factory`` and names under ``posix`` and ``right/``, which depend on the host.

    Raises:
        UnknownTimezone: naming the value and the names closest to it.
    """
    return _load(_string(name))


def _string(value: object) -> str:
    if isinstance(value, str):
        return value
    kind = type(value).__name__
    raise UnknownTimezone(f"timezone {value!a} is a {kind}; pass the name of a zone such as 'Europe/Berlin'")


@cache
def zone_names() -> frozenset[str]:
    """All names that `zone` accepts."""
    listed = files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
    return frozenset(
        name for name in listed if name not in {"localtime", "Factory"} and not name.startswith(("posix", "right/"))
    )


@cache
def _load(name: str) -> ZoneInfo:
    if name not in zone_names():
        raise UnknownTimezone(_unknown(name))
    with files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as rules:
        return ZoneInfo.from_file(rules, key=name)


def _unknown(name: str) -> str:
    start = name[:LONGEST_SHOWN]
    spelled = {known.lower(): known for known in sorted(zone_names())}
    close = [spelled[match] for match in get_close_matches(start.strip().lower(), spelled, n=3)]
    if re.search(r"[+-]\d", start):
        remedy = "write a fixed offset as 'Etc/GMT-3' (that is UTC+3), or name a zone such as 'Europe/Berlin'"
    elif close:
        remedy = f"did you mean {' or '.join(repr(each) for each in close)}?"
    else:
        remedy = "write the name of an IANA zone such as 'Europe/Berlin'"
    cut = f"... ({len(name)} characters)" if name != start else ""
    return f"timezone {start!a}{cut} is not known (case and blanks count); {remedy}"


def clock_change(tz: ZoneInfo, early: datetime, late: datetime) -> datetime | None:
    """The first instant after `early`, up to `late`, whose UTC offset is not that of `early`.

    Args:
        tz: the zone.
        early: an aware UTC datetime of whole seconds.
        late: the same, so soon after `early` that the clock changes at most once between them.

    Returns:
        None when both have the same offset.
    """
    before = early.astimezone(tz).utcoffset()
    if late.astimezone(tz).utcoffset() == before:
        return None
    unchanged, changed = 0, int((late - early).total_seconds())
    while changed - unchanged > 1:
        middle = (unchanged + changed) // 2
        if (early + timedelta(seconds=middle)).astimezone(tz).utcoffset() == before:
            unchanged = middle
        else:
            changed = middle
    return early + timedelta(seconds=changed)
