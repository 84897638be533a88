"""Times, spans and values as people read them."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from awa_cron.model import Event

UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
LONGEST_VALUE: Final = 2_000
NONE: Final = "–"  # noqa: RUF001 -- a dash as long as it looks


def finite(value: datetime | None) -> datetime | None:
    """Return a time, or None for what no clock shows: rows written by hand can hold infinity."""
    if value is None or value.tzinfo is None or not MINYEAR < value.year < MAXYEAR:
        return None
    return value


def moment(value: datetime | None, zone: ZoneInfo | None = None) -> str:
    """Return a time to the second, in UTC unless a zone is given; a dash for none."""
    if finite(value) is None:
        return _infinite(value)
    assert value is not None
    if zone is None:
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return value.astimezone(zone).strftime("%a %Y-%m-%d %H:%M:%S %Z")


def short(value: datetime | None, zone: ZoneInfo, now: datetime) -> str:
    """Return a time without what is the same as now."""
    if finite(value) is None:
        return _infinite(value)
    assert value is not None
    local, today = value.astimezone(zone), now.astimezone(zone)
    time = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    if local.date() == today.date():
        return time
    return f"{local:%a %d %b} {time}" if abs(local - today) < timedelta(days=300) else f"{local:%d %b %Y} {time}"


def hour(value: datetime, zone: ZoneInfo, now: datetime) -> str:
    """Return a time without its seconds, for an axis."""
    return short(value.replace(second=0, microsecond=0), zone, now)


def capital(sentence: str) -> str:
    """Return a sentence with a capital letter, and without its full stop."""
    return (sentence[:1].upper() + sentence[1:]).rstrip(".")


def reason(broken: str) -> str:
    """Return why a row is broken; that it is, and which, stands beside it."""
    _, found, rest = broken.partition(" cannot be evaluated: ")
    return printable(rest if found else broken)


def span(seconds: float) -> str:
    """Return a length of time, in its two largest units."""
    rest = abs(seconds)
    said: list[str] = []
    if rest < 1:
        return f"{rest * 1000:.0f} ms"
    for length, unit in UNITS:
        count, rest = divmod(rest, length)
        if count or said:
            said.append(f"{count:.0f} {unit}" if count else "")
        if len(said) == 2:
            break
    return " ".join(filter(None, said))


def ago(value: datetime | None, now: datetime) -> str:
    """Return how far a time is away."""
    if finite(value) is None:
        return "never" if value is None else _infinite(value)
    assert value is not None
    seconds = (value - now).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"in {span(seconds)}" if seconds > 0 else f"{span(seconds)} ago"


def iso(value: datetime) -> str:
    """Return a time for ``<time datetime>``."""
    return "" if finite(value) is None else value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def between(start: datetime | None, end: datetime | None) -> str:
    """Return how long something took, as far as that can be said."""
    if finite(start) is None or finite(end) is None:
        return "?"
    assert start is not None
    assert end is not None
    return span((end - start).total_seconds())


def printable(value: object) -> str:
    """Return text with its control and direction characters escaped: rows written by hand may hold any."""
    return "".join(
        each if unicodedata.category(each)[0] != "C" else each.encode("unicode_escape").decode()
        for each in str(value)
    )


def compact(value: object) -> str:
    """Return JSON, cut where it is very long."""
    text = json.dumps(value, ensure_ascii=False)
    return printable(text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + " …")


def href(name: str, **query: str) -> str:
    """Return the address of a schedule's page. Browsers take two names for steps between folders."""
    if name in {".", ".."}:
        return "/cron?" + urlencode({"name": name} | query)
    return "/cron/" + quote(name, safe="") + ("?" + urlencode(query) if query else "")


def failure(error: object) -> tuple[str, str]:
    """Return what a failed attempt left, in a line and in full; jobs can be written by hand."""
    if not isinstance(error, Mapping):
        return printable(error)[:LONGEST_VALUE], ""
    line = str(error.get("error", "an error"))
    return printable(line)[:LONGEST_VALUE], str(error.get("traceback") or line)[-2 * LONGEST_VALUE :]


def happened(event: Event, zone: ZoneInfo, now: datetime) -> str:
    """Return what an event did, beside its action and its schedule."""
    said = []
    if event.fires:
        first, last = event.fires[0], event.fires[-1]
        said.append(
            f"fire {short(first, zone, now)}"
            if first == last
            else f"{len(event.fires)} fires, {short(first, zone, now)} to {short(last, zone, now)}"
        )
    if event.job_ids:
        said.append("job " + ", ".join(map(str, event.job_ids[:3])) + (", …" if len(event.job_ids) > 3 else ""))
    details = event.details
    if event.action == "sync":
        said.append(str(details.get("change", "")))
        dropped = details.get("dropped")
        if isinstance(dropped, dict) and "count" in dropped:
            said.append(f"{dropped['count']} due fires of the old definition dropped")
    if event.action == "cancel_jobs":
        said.append(f"{details.get('waiting', 0)} waiting and {details.get('signalled', 0)} running jobs")
    if event.action in {"retry_dead", "purge_dead"}:
        said.append(f"{details.get('jobs', 0)} jobs")
    if "queue" in details:
        said.append(f"queue {details['queue']}")
    if "backend_pid" in details:
        said.append(f"backend {details['backend_pid']}")
    return printable("; ".join(filter(None, said)))


def _infinite(value: datetime | None) -> str:
    if value is None:
        return NONE
    return "infinity" if value.year > MINYEAR else "-infinity"
