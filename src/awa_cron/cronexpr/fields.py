"""One field of an expression: its text in, its values out, or a refusal with its remedy."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from awa_cron.errors import InvalidCronExpression

LONGEST_SHOWN: Final = 80

_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class Field(NamedTuple):
    """A field's name, the bounds of its numbers, how many values it has, and their names if they have some."""

    name: str
    low: int
    high: int
    size: int
    names: tuple[str, ...] = ()


SECOND: Final = Field("second", 0, 59, 60)
MINUTE: Final = Field("minute", 0, 59, 60)
HOUR: Final = Field("hour", 0, 23, 24)
DAY: Final = Field("day-of-month", 1, 31, 31)
MONTH: Final = Field("month", 1, 12, 12, _MONTHS)
WEEKDAY: Final = Field("day-of-week", 0, 7, 7, _WEEKDAYS)

# Values that people bring from elsewhere: why each is none here, and what to write if not the allowed numbers.
_FOREIGN: Final = (
    (r"", "lacks a value before or after a sign", None),
    (r"\?", "is not known here", "write *"),
    (r"[HR](\(.*)?", "would be another time for each evaluator", None),
    (
        rf"({'|'.join(_MONTHS + _WEEKDAYS)}).*",
        "is a name out of place (three letters, in month or day-of-week)",
        None,
    ),
    (r".*L.*", "is not the one use of L, alone as the day-of-month", None),
    (r"\d*W\d*", "is not known here", "write the date, or the weekdays as MON-FRI"),
    (r".*", "is not a number", None),
)


@lru_cache(maxsize=4096)
def values(where: Field, text: str) -> tuple[int, ...]:
    """The numbers that the text of a field other than day-of-week stands for, ascending."""
    return tuple(sorted({value for term in _terms(where, text) for value in _range(where, term)}))


def weekdays(text: str) -> None:
    """Validate the text of day-of-week: weekdays, or occurrences of weekdays in the month, not both."""
    terms = _terms(WEEKDAY, text)
    for term in terms:
        day, mark, nth = term.partition("#")
        if not mark:
            _range(WEEKDAY, term)
            continue
        _value(WEEKDAY, term, day)
        if nth not in ("1", "2", "3", "4", "5"):
            raise refusal(WEEKDAY, term, "names no occurrence in the month", "write #1 to #5, as in MON#2")
    if len({"#" in term for term in terms}) > 1:
        raise refusal(WEEKDAY, text, "mixes weekdays with occurrences in the month", "write two schedules")


def without_singletons(where: Field, text: str) -> str:
    """The text of a valid field with each range of a single value, such as ``5-5``, written as that value."""
    return ",".join(_without_singleton(where, term) for term in text.split(","))


def _without_singleton(where: Field, term: str) -> str:
    start, dash, _ = term.partition("/")[0].partition("-")
    return start if dash and len(_range(where, term.partition("/")[0])) == 1 else term


def _terms(where: Field, text: str) -> list[str]:
    terms = text.split(",")
    if "" in terms:
        raise refusal(where, text, "has an empty element", "write values between single commas")
    if len(terms) > 1 and any(term.startswith("*") for term in terms):
        last = where.low + where.size - 1
        raise refusal(where, text, "has * inside a list", f"write * alone, and */n as {where.low}-{last}/n")
    return terms


def _range(where: Field, term: str) -> range:
    """One element of a list: ``*``, ``a`` or ``a-b``, each with ``/n`` or without."""
    body, slash, step_text = term.partition("/")
    start, dash, end = body.partition("-")
    step = _step(where, term, step_text) if slash else 1
    if body == "*":
        return range(where.low, where.low + where.size, step)
    low = _value(where, term, start)
    if not dash:
        if slash and where is WEEKDAY:
            raise refusal(where, term, "steps from a day to an end that is unclear", f"write {start}-6/{step}")
        return range(low, (where.high if slash else low) + 1, step)
    high = _value(where, term, end)
    if low > high:
        raise refusal(where, term, "runs backward", f"write {_unwrapped(where, term, low, high, step)}")
    if end == "SUN" != start:
        raise refusal(where, term, "ends with a Sunday that could be 0 or 7", "write 0, or 0-7")
    return range(low, high + 1, step)


def _step(where: Field, term: str, text: str) -> int:
    allowed = f"write /1 to /{where.size}"
    if not text.isdigit():
        raise refusal(where, term, "has a step that is not a number", allowed)
    if int(text) == 0:
        raise refusal(where, term, "has a step of 0", allowed)
    if int(text) > where.size:
        raise refusal(where, term, f"has a step larger than the field, which has {where.size} values", allowed)
    return int(text)


def _value(where: Field, term: str, text: str) -> int:
    if text in where.names:
        return where.names.index(text) + where.low
    named = f" or {where.names[0]} to {where.names[-1]}" if where.names else ""
    allowed = f"write {where.low} to {where.high}{named}"
    if not text.isdigit():
        reason, remedy = next((why, what) for pattern, why, what in _FOREIGN if re.fullmatch(pattern, text))
        raise refusal(where, term, reason, remedy or allowed)
    if not where.low <= int(text) <= where.high:
        raise refusal(where, term, f"is outside {where.low} to {where.high}", allowed)
    return int(text)


def _unwrapped(where: Field, term: str, low: int, high: int, step: int) -> str:
    """What a backward range seems to mean, as a list."""
    start, _, end = term.partition("/")[0].partition("-")
    first, last = where.low, where.low + where.size - 1
    if low > last:  # from a Sunday written as 7
        return f"{first}-{end}" if high > first else str(first)
    if step > 1:
        wrapped = range(low, high + where.size + 1, step)
        return ",".join(str(value if value <= last else value - where.size) for value in wrapped)
    bottom, top = (where.names[0], where.names[-1]) if start in where.names else (str(first), str(last))
    return ",".join((start if low == last else f"{start}-{top}", end if high == first else f"{bottom}-{end}"))


def refusal(where: Field, value: str, reason: str, remedy: str) -> InvalidCronExpression:
    """The error that names the field, its value, what is wrong and what to write."""
    return InvalidCronExpression(f"{where.name} {shown(value)} {reason}; {remedy}")


def shown(value: object) -> str:
    """A value for a message, in ASCII and cut to a readable length."""
    text = ascii(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}... ({len(text)} characters)"
