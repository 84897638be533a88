"""The dialect: cron text in, a validated `CronExpression` out, or a refusal with its remedy.

Where cron implementations read the same text differently, the text is refused instead of guessed at.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from awa_cron.cronexpr.fields import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    refusal,
    shown,
    values,
    weekdays,
    without_singletons,
)
from awa_cron.errors import InvalidCronExpression

MAX_LENGTH: Final = 256
WITH_SECONDS: Final = 6
A_LEAP_YEAR: Final = 2024
BLANKS: Final = " \t\r\n"

ALIASES: Final = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}


@dataclass(frozen=True, slots=True)
class CronExpression:
    """A valid cron expression, made by `parse`. Two are equal when their texts are.

    Attributes:
        text: the expression in capitals, with single spaces and aliases expanded; it parses to its equal.
        fixed_time: whether neither minute nor hour starts with ``*``; decides what a change of the clock does
            (see `awa_cron.cronexpr.fires`).
        unambiguous: the same expression as croniter is to read it: no singleton ranges.
    """

    text: str
    fixed_time: bool = field(compare=False)
    unambiguous: str = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


def parse(cron_expr: str | CronExpression) -> CronExpression:
    """Validate a cron expression. Results are cached.

    Args:
        cron_expr: five fields, or six with the second first; or the result of an earlier `parse`.

    Raises:
        InvalidCronExpression: naming the field, its value, the reason and the remedy.
    """
    if isinstance(cron_expr, CronExpression):
        return cron_expr
    return _parse(_string(cron_expr))


def _string(value: object) -> str:
    if isinstance(value, str):
        return value
    kind = type(value).__name__
    raise InvalidCronExpression(
        f"cron expression {shown(value)}: it is a {kind}; pass a string such as '0 9 * * MON-FRI'"
    )


# What is due is evaluated, not what exists. With a hundred thousand expressions in memory, here and in `wallclock`,
# the garbage collector stops everything for a quarter of a second; with so many, for a few hundredths.
@lru_cache(maxsize=2**12)
def _parse(cron_expr: str) -> CronExpression:
    fields: list[str] = []
    try:
        fields = _split(cron_expr)
        return _expression(fields)
    except InvalidCronExpression as refused:
        order = " (of six fields, the first is the second)" if len(fields) == WITH_SECONDS else ""
        raise InvalidCronExpression(f"cron expression {shown(cron_expr)}: {refused}{order}") from None


def _split(cron_expr: str) -> list[str]:
    """Five or six fields, in capitals."""
    text = cron_expr.strip(BLANKS)
    if not text:
        raise InvalidCronExpression("it is empty; write five fields such as '0 9 * * *'")
    if len(text) > MAX_LENGTH:
        raise InvalidCronExpression(f"it has {len(text)} characters; write at most {MAX_LENGTH}")
    odd = next((character for character in text if not (" " <= character <= "~" or character == "\t")), None)
    if odd is not None:
        raise InvalidCronExpression(f"it contains {odd!a}; write ASCII digits, letters and signs between spaces")
    text = text.upper()
    if text.startswith("@"):
        return _alias(text).split()
    if text.startswith(("CRON_TZ=", "TZ=")):
        raise InvalidCronExpression("it names a time zone; give that as the schedule's timezone")
    fields = text.split()
    if len(fields) not in (5, WITH_SECONDS):
        raise InvalidCronExpression(
            f"it has {len(fields)} field{'s' * (len(fields) != 1)}; write five (minute, hour, day-of-month, month,"
            f" day-of-week), or six with the second first; there is none for the year"
        )
    return fields


def _alias(text: str) -> str:
    if text in ALIASES:
        return ALIASES[text]
    remedies = {
        "@REBOOT": "start that work where the process starts",
        "@EVERY": "write a step such as '*/5 * * * *'",
    }
    known = f"write five fields, or one of {' '.join(ALIASES).lower()}"
    raise InvalidCronExpression(f"this alias is not known; {remedies.get(text.split(maxsplit=1)[0], known)}")


def _expression(fields: list[str]) -> CronExpression:
    wheres = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)[-len(fields) :]
    minute, hour, day, month, weekday = fields[-5:]
    for where, text in zip(wheres, fields, strict=True):
        if where not in (DAY, WEEKDAY):
            values(where, text)
    _days(day, weekday, month)
    return CronExpression(
        text=" ".join(fields),
        fixed_time=not minute.startswith("*") and not hour.startswith("*"),
        unambiguous=" ".join(without_singletons(where, text) for where, text in zip(wheres, fields, strict=True)),
    )


def _days(day: str, weekday: str, month: str) -> None:
    """Validate the two day fields together."""
    dates = () if day == "L" else values(DAY, day)
    weekdays(weekday)
    for stepped, other, where in ((day, weekday, DAY), (weekday, day, WEEKDAY)):
        if stepped.startswith("*/") and other != "*":
            raise refusal(
                where,
                stepped,
                "is a stepped star while the other day field is restricted (schedulers disagree)",
                "list its values instead, or write * in the other day field",
            )
    if "#" in weekday and day != "*":
        raise refusal(
            WEEKDAY, weekday, f"stands beside day-of-month {day!r}", "write * there, or plain weekdays here"
        )
    longest = max(calendar.monthrange(A_LEAP_YEAR, number)[1] for number in values(MONTH, month))
    if weekday == "*" and dates and min(dates) > longest:
        raise refusal(DAY, day, f"never comes in month {month!r}", f"write 1 to {longest}, or L for the last day")
