"""What the dialect reads and how it refuses: each refusal names the field, the value and the remedy."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from awa_cron.cronexpr import CronExpression, parse
from awa_cron.errors import InvalidCronExpression
from tests.unit.cron_strategies import expressions

REFUSALS = [
    # how an expression is made of fields
    ("", "it is empty", "write five fields"),
    (" \t\r\n", "it is empty", "write five fields"),
    ("* * * *", "it has 4 fields", "write five (minute, hour, day-of-month, month, day-of-week)"),
    ("*", "it has 1 field;", "write five"),
    ("0 0 0 1 1 * 2026", "it has 7 fields", "there is none for the year"),
    ("* " * 129, "it has 257 characters", "write at most 256"),
    ("0 9 * * *\u00a0", r"it contains '\xa0'", "write ASCII"),
    ("\u0665 0 * * *", r"it contains '\u0665'", "write ASCII digits"),
    ("0 0 * *\n*", r"it contains '\n'", "between spaces"),
    ("0 0 * * \ud800", r"it contains '\ud800'", "write ASCII"),
    ("CRON_TZ=UTC 0 0 * * *", "it names a time zone", "the schedule's timezone"),
    ("TZ=UTC 0 0 * * *", "it names a time zone", "the schedule's timezone"),
    ("@reboot", "alias is not known", "start that work where the process starts"),
    ("@every 5m", "alias is not known", "'*/5 * * * *'"),
    ("@fortnightly", "alias is not known", "@yearly @annually @monthly @weekly @daily @midnight @hourly"),
    # values
    ("60 * * * *", "minute '60' is outside 0 to 59", "write 0 to 59"),
    ("* 24 * * *", "hour '24' is outside 0 to 23", "write 0 to 23"),
    ("* * 0 * *", "day-of-month '0' is outside 1 to 31", "write 1 to 31"),
    ("* * * 13 *", "month '13' is outside 1 to 12", "write 1 to 12 or JAN to DEC"),
    ("* * * * 8", "day-of-week '8' is outside 0 to 7", "write 0 to 7 or SUN to SAT"),
    ("60 * * * * *", "second '60' is outside 0 to 59", "of six fields, the first is the second"),
    ("0 0 * * * 30", "day-of-week '30' is outside 0 to 7", "of six fields, the first is the second"),
    ("1,,2 * * * *", "minute '1,,2' has an empty element", "single commas"),
    ("* 1, * * *", "hour '1,' has an empty element", "single commas"),
    ("-5 * * * *", "minute '-5' lacks a value", "write 0 to 59"),
    ("5- * * * *", "minute '5-' lacks a value", "write 0 to 59"),
    ("1-2-3 * * * *", "minute '1-2-3' is not a number", "write 0 to 59"),
    ("1.5 * * * *", "minute '1.5' is not a number", "write 0 to 59"),
    ("** * * * *", "minute '**' is not a number", "write 0 to 59"),
    ("* * JAN * *", "day-of-month 'JAN' is a name out of place", "write 1 to 31"),
    ("* * * * Monday", "day-of-week 'MONDAY' is a name out of place (three letters", "SUN to SAT"),
    ("* * * MON *", "month 'MON' is a name out of place", "JAN to DEC"),
    # syntax from elsewhere
    ("* * ? * *", "day-of-month '?' is not known here", "write *"),
    ("H * * * *", "minute 'H' would be another time for each evaluator", "write 0 to 59"),
    ("R(0-5) * * * *", "minute 'R(0-5)' would be another time for each evaluator", "write 0 to 59"),
    ("* * 15W * *", "day-of-month '15W' is not known here", "the weekdays as MON-FRI"),
    ("* * LW * *", "day-of-month 'LW' is not the one use of L", "write 1 to 31"),
    ("* * 1,L * *", "day-of-month 'L' is not the one use of L", "write 1 to 31"),
    ("* * * * 5L", "day-of-week '5L' is not the one use of L", "SUN to SAT"),
    # ranges
    ("* 22-2 * * *", "hour '22-2' runs backward", "write 22-23,0-2"),
    ("* 22-0 * * *", "hour '22-0' runs backward", "write 22-23,0"),
    ("* 23-2 * * *", "hour '23-2' runs backward", "write 23,0-2"),
    ("* 20-4/3 * * *", "hour '20-4/3' runs backward", "write 20,23,2"),
    ("* * 28-2 * *", "day-of-month '28-2' runs backward", "write 28-31,1-2"),
    ("* * * 11-2 *", "month '11-2' runs backward", "write 11-12,1-2"),
    ("* * * nov-feb *", "month 'NOV-FEB' runs backward", "write NOV-DEC,JAN-FEB"),
    ("* * * * fri-mon", "day-of-week 'FRI-MON' runs backward", "write FRI-SAT,SUN-MON"),
    ("* * * * sat-sun", "day-of-week 'SAT-SUN' runs backward", "write SAT,SUN"),
    ("* * * * 7-2", "day-of-week '7-2' runs backward", "write 0-2"),
    ("* * * * 7-0", "day-of-week '7-0' runs backward", "write 0"),
    ("* * * * 0-sun", "day-of-week '0-SUN' ends with a Sunday that could be 0 or 7", "write 0, or 0-7"),
    # steps
    ("*/0 * * * *", "minute '*/0' has a step of 0", "write /1 to /60"),
    ("*/61 * * * *", "minute '*/61' has a step larger than the field", "write /1 to /60"),
    ("* */25 * * *", "hour '*/25' has a step larger than the field", "write /1 to /24"),
    ("* * * * */8", "day-of-week '*/8' has a step larger than the field", "write /1 to /7"),
    ("*/x * * * *", "minute '*/X' has a step that is not a number", "write /1 to /60"),
    ("1/2/3 * * * *", "minute '1/2/3' has a step that is not a number", "write /1 to /60"),
    ("* * * * 1/2", "day-of-week '1/2' steps from a day to an end that is unclear", "write 1-6/2"),
    ("1,* * * * *", "minute '1,*' has * inside a list", "write * alone"),
    ("*/2,5 * * * *", "minute '*/2,5' has * inside a list", "*/n as 0-59/n"),
    ("* * * * 1,", "day-of-week '1,' has an empty element", "single commas"),
    ("* * * * MON#1,,5", "day-of-week 'MON#1,,5' has an empty element", "single commas"),
    ("* * * * MON#1,*", "day-of-week 'MON#1,*' has * inside a list", "*/n as 0-6/n"),
    ("* * * * 1,*", "day-of-week '1,*' has * inside a list", "*/n as 0-6/n"),
    # the two day fields together
    ("0 0 */2 * 1", "day-of-month '*/2' is a stepped star while the other", "list its values instead"),
    ("0 0 1 * */2", "day-of-week '*/2' is a stepped star while the other", "list its values instead"),
    ("0 0 1 * 1#1", "day-of-week '1#1' stands beside day-of-month '1'", "write * there"),
    ("0 0 L * 1#1", "day-of-week '1#1' stands beside day-of-month 'L'", "write * there"),
    ("* * * * 5#6", "day-of-week '5#6' names no occurrence", "write #1 to #5"),
    ("* * * * 1-5#2", "day-of-week '1-5#2' is not a number", "write 0 to 7"),
    # never
    ("0 0 30-31 2 *", "day-of-month '30-31' never comes in month '2'", "write 1 to 29, or L for the last day"),
    ("0 0 31 4,6,9,11 *", "day-of-month '31' never comes in month '4,6,9,11'", "write 1 to 30"),
]


@pytest.mark.parametrize(
    ("cron_expr", "problem", "remedy"), REFUSALS, ids=[ascii(each[0][:40]) for each in REFUSALS]
)
def test_refusal_names_field_value_and_remedy(cron_expr: str, problem: str, remedy: str) -> None:
    with pytest.raises(InvalidCronExpression) as refusal:
        parse(cron_expr)

    message = str(refusal.value)
    assert message.startswith(f"cron expression {ascii(cron_expr)[:80]}")
    before, _, after = message.partition(problem)
    assert before != message, message
    assert remedy in problem + after, message
    assert message.isascii()
    assert len(message) < 400


@pytest.mark.parametrize("value", [None, 5, 5.0, True, b"* * * * *", ["*"] * 5, {}, object()], ids=repr)
def test_what_is_no_text_is_refused_by_its_type(value: Any) -> None:
    with pytest.raises(InvalidCronExpression, match=f"it is a {type(value).__name__}; pass a string"):
        parse(value)


@given(
    st.lists(st.integers(0, 0x10FFFF).map(chr)).map("".join) | st.text("0123456789*,-/#LW?@ MONJAN", max_size=30)
)
def test_any_text_is_accepted_or_refused_and_nothing_else(text: str) -> None:
    try:
        parse(text)
    except InvalidCronExpression as refusal:
        assert ";" in str(refusal)  # noqa: PT017


@pytest.mark.parametrize(
    ("cron_expr", "text"),
    [
        ("  0\t9  * *   mon-fri\r\n", "0 9 * * MON-FRI"),
        ("@yearly", "0 0 1 1 *"),
        ("@Annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        (" @DAILY ", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("0 0 l * *", "0 0 L * *"),
        ("05 9 * jan 7", "05 9 * JAN 7"),
    ],
)
def test_text_is_normalised(cron_expr: str, text: str) -> None:
    assert text == parse(cron_expr).text == str(parse(cron_expr))


@given(expressions() | expressions(seconds=True))
def test_normalised_text_means_the_same(cron_expr: str) -> None:
    expression = parse(cron_expr.lower())
    again = parse(expression.text)

    assert expression == again == parse(expression) == pickle.loads(pickle.dumps(again)) == copy.deepcopy(again)
    assert hash(expression) == hash(again)
    for name in CronExpression.__slots__:
        assert getattr(expression, name) == getattr(again, name)


@pytest.mark.parametrize(
    ("cron_expr", "fixed_time"),
    [
        ("0 9 * * *", True),
        ("0-59 0-23 * * *", True),
        ("* 30 9 * * *", True),
        ("* 9 * * *", False),
        ("*/5 9 * * *", False),
        ("0 * * * *", False),
        ("0 */2 * * *", False),
        ("0 0 * * * *", False),
    ],
)
def test_a_star_in_minute_or_hour_makes_an_interval(cron_expr: str, *, fixed_time: bool) -> None:
    assert fixed_time is parse(cron_expr).fixed_time


def test_croniter_is_given_no_singleton_ranges_which_it_reads_as_the_whole_field() -> None:
    expression = parse("*/20 5-5,50/5 7-7/6 10-12 feb-feb,11-12 5-7")

    assert expression.unambiguous == "*/20 5,50/5 7 10-12 FEB,11-12 5-7"
    assert parse("0 0 * * 1-MON,7-7").unambiguous == "0 0 * * 1,7"


def test_an_expression_is_parsed_once() -> None:
    assert parse("1 2 3 4 5") is parse("1 2 3 4 5")
