"""Every vector of spec/vectors is a test."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from awa_cron.cronexpr import next_fires, parse, previous_fires, zone
from awa_cron.errors import InvalidCronExpression, UnknownTimezone

VECTORS: Final = Path(__file__).parents[2] / "spec" / "vectors"
GROUPS: Final[list[dict[str, Any]]] = [
    group
    for name in ("cron_vectors.json", "cron_vectors_more.json")
    for group in json.loads((VECTORS / name).read_text(encoding="utf-8"))
]
KEYS: Final = {
    "validate": {"op", "cron", "valid"},
    "timezone": {"op", "timezone", "valid"},
    "next": {"op", "cron", "timezone", "after", "fires"},
    "prev": {"op", "cron", "timezone", "before", "fires"},
}


def cases(*ops: str) -> list[Any]:
    """The tests with one of these operations, each with a readable name."""
    return [
        pytest.param(test, id=f"{group['id']}.{number}-{_name(test)}")
        for group in GROUPS
        for number, test in enumerate(group["tests"], start=1)
        if test["op"] in ops
    ]


def _name(test: dict[str, Any]) -> str:
    words = [test["op"], test.get("cron"), test.get("timezone"), test.get("after", test.get("before"))]
    return " ".join(
        ascii(word)[1:-1] if isinstance(word, str) else str(word) for word in words if word is not None
    )[:90]


@pytest.mark.parametrize("test", cases("validate"))
def test_expression_is_accepted_or_refused(test: dict[str, Any]) -> None:
    if test["valid"]:
        assert parse(test["cron"]) == parse(parse(test["cron"]).text)
    else:
        with pytest.raises(InvalidCronExpression):
            parse(test["cron"])


@pytest.mark.parametrize("test", cases("timezone"))
def test_zone_is_accepted_or_refused(test: dict[str, Any]) -> None:
    if test["valid"]:
        assert test["timezone"] == zone(test["timezone"]).key
    else:
        with pytest.raises(UnknownTimezone):
            zone(test["timezone"])


@pytest.mark.parametrize("test", cases("next", "prev"))
def test_expression_fires(test: dict[str, Any]) -> None:
    count = max(len(test["fires"]), 1)
    if test["op"] == "next":
        after = datetime.fromisoformat(test["after"])
        fires = next_fires(test["cron"], test["timezone"], after=after, count=count)
    else:
        before = datetime.fromisoformat(test["before"])
        fires = previous_fires(test["cron"], test["timezone"], before=before, count=count)

    assert [datetime.fromisoformat(fire) for fire in test["fires"]] == fires
    assert all(fire.tzinfo is UTC for fire in fires)


def test_vectors_have_the_documented_format() -> None:
    tests = [test for group in GROUPS for test in group["tests"]]

    assert all(group.keys() == {"id", "description", "tests"} for group in GROUPS)
    assert max(Counter(group["id"] for group in GROUPS).values()) == 1
    assert [test for test in tests if test.keys() - {"why"} != KEYS[test["op"]]] == []
    assert len(tests) >= 134 + 90
