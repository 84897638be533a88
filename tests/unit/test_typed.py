"""Handlers that take a type of their own: dataclasses, and anything that validates as pydantic's models do."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any, Literal

import pytest

import awa_cron
from awa_cron import registration, typed
from awa_cron.errors import InvalidArgs, InvalidSchedule


@dataclasses.dataclass
class Point:
    x: float
    label: str | None = None


@dataclasses.dataclass
class Digest:
    to: str
    count: int = 1
    urgent: bool = False
    points: list[Point] = dataclasses.field(default_factory=list)
    mode: Literal["all", "new"] = "all"
    extra: Any = None
    limits: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Positive:
    n: int

    def __post_init__(self) -> None:
        if self.n <= 0:
            raise ValueError("n must be above 0")


class Validated:
    """What a pydantic model looks like from outside; pydantic itself is not needed for it."""

    def __init__(self, to: str) -> None:
        self.to = to

    @classmethod
    def model_validate(cls, value: Any) -> Validated:
        if not isinstance(value, dict) or not isinstance(value.get("to"), str):
            raise ValueError("1 validation error for Validated\nto\n  should be a string")  # noqa: TRY004
        return cls(value["to"])

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        assert mode == "json"
        return {"to": self.to}


def test_a_dataclass_is_built_from_json() -> None:
    read = typed.reader(Digest, "k")
    assert Digest("ops") == read({"to": "ops"})
    whole = {"to": "ops", "count": 2, "urgent": True, "points": [{"x": 1}, {"x": 2.5, "label": "b"}], "mode": "new",
             "extra": [1, {}], "limits": {"a": 1}}  # fmt: skip
    assert Digest("ops", 2, True, [Point(1.0), Point(2.5, "b")], "new", [1, {}], {"a": 1}) == read(whole)
    assert isinstance(read(whole).points[0].x, float)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "args lacks 'to'"),
        ({"to": "ops", "cuont": 1}, "args has an unknown 'cuont'"),
        ({"to": 5}, "args.to is 5, not str"),
        ({"to": "ops", "count": "2"}, "args.count is '2', not int"),
        ({"to": "ops", "count": True}, "args.count is True, not int"),
        ({"to": "ops", "count": 1.5}, "args.count is 1.5, not int"),
        ({"to": "ops", "urgent": 1}, "args.urgent is 1, not bool"),
        ({"to": "ops", "points": {}}, r"args.points is \{\}, not a list"),
        ({"to": "ops", "points": [{"x": "a"}]}, r"args.points\[0\].x is 'a', not float"),
        ({"to": "ops", "points": [{"x": 1, "label": 2}]}, r"label is 2, not str; .*label is 2, not NoneType"),
        ({"to": "ops", "mode": "old"}, "args.mode is 'old', not one of 'all', 'new'"),
        ({"to": "ops", "limits": {"a": "b"}}, r"args.limits\['a'\] is 'b', not int"),
        ([], r"args is \[\], not an object"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(args: Any, said: str) -> None:
    with pytest.raises(InvalidArgs, match=f"args of kind 'k' are no Digest: .*{said}"):
        typed.reader(Digest, "k")(args)


def test_a_dataclass_may_check_more_itself() -> None:
    with pytest.raises(InvalidArgs, match="n must be above 0"):
        typed.reader(Positive, "k")({"n": 0})


def test_a_model_that_validates_is_asked_to() -> None:
    read = typed.reader(Validated, "k")
    assert "ops" == read({"to": "ops"}).to
    with pytest.raises(InvalidArgs, match="no Validated: 1 validation error for Validated to should be a string"):
        read({})


def test_a_type_that_json_cannot_fill_is_refused_at_once() -> None:
    @dataclasses.dataclass
    class At:
        at: datetime

    @dataclasses.dataclass
    class Unknown:
        at: Nowhere  # type: ignore[name-defined] # noqa: F821

    @dataclasses.dataclass
    class Keys:
        by: dict[int, str]

    for kind, said in ((At, "At.at is"), (Unknown, "not there"), (Keys, "Keys.by is"),
                       (dict, "must be a dataclass"), (Digest("x"), "must be a dataclass")):  # fmt: skip
        with pytest.raises(InvalidSchedule, match=said):
            awa_cron.Client().task("k", args=kind)  # type: ignore[arg-type]


@dataclasses.dataclass
class Tree:
    children: list[Tree]


def test_a_type_that_holds_itself_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="Tree holds itself"):
        typed.reader(Tree, "k")


def test_instances_are_arguments() -> None:
    point = '{"x":1.0,"label":null}'
    assert point == registration.job("k", Point(1.0)).args_json
    assert point == registration.schedule("s", "* * * * *", kind="k", args=Point(1.0)).args_json
    assert '{"to":"ops"}' == registration.job("k", Validated("ops")).args_json


@pytest.mark.parametrize("first", ["handler", "schedule"])
def test_a_schedule_whose_every_job_would_fail_is_refused(first: str) -> None:
    client = awa_cron.Client()

    def handler(job: awa_cron.Job[Digest]) -> None: ...

    def register() -> None:
        client.task("k", args=Digest)(handler)

    def schedule() -> None:
        client.periodic("s", "* * * * *", kind="k", args={"to": 5})

    client.periodic("other", "* * * * *", kind="other", args={"to": 5})
    steps = [register, schedule] if first == "handler" else [schedule, register]
    steps[0]()
    with pytest.raises(InvalidSchedule, match=r"schedule 's': .*args.to is 5, not str"):
        steps[1]()
