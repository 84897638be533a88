"""What registration refuses, and that it says where and why. Source: ADR-007, "Eager validation"."""

from __future__ import annotations

import enum
import json
from collections.abc import AsyncIterator, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import awa_cron
from awa_cron.errors import InvalidArgument, InvalidCronExpression, InvalidSchedule, UnknownTimezone
from awa_cron.model import MissedFirePolicy, Schedule
from awa_cron.settings import Settings


def register(name: Any = "s", cron_expr: Any = "0 * * * *", **fields: Any) -> Schedule:
    client = awa_cron.Client()
    return client.periodic(name, cron_expr, **({"kind": "work"} | fields))


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


HUGE = 10**5000

REFUSED_ARGS: dict[str, tuple[Any, str]] = {
    "nul": ({"a": ["x", "b\0"]}, r"args['a'][1] holds U+0000"),
    "nul in a key": ({"a": {"b\0": 1}}, "a key of args['a'] holds U+0000"),
    "nan": ({"a": float("nan")}, "args['a'] is nan"),
    "infinity": ({"a": [float("-inf")]}, "args['a'][0] is -inf"),
    "lone surrogate": ({"a": "\ud800"}, "args['a'] holds U+D800"),
    "surrogate in a key": ({"\udfff": 1}, "a key of args holds U+DFFF"),
    "decimal": ({"a": {"b": Decimal("1.5")}}, "args['a']['b'] is a Decimal"),
    "fraction": ({"a": Fraction(1, 2)}, "args['a'] is a Fraction"),
    "bytes": ({"a": b"x"}, "args['a'] is a bytes"),
    "bytearray": ({"a": bytearray(b"x")}, "args['a'] is a bytearray"),
    "set": ({"a": {1, 2}}, "args['a'] is a set"),
    "date": ({"a": date(2026, 1, 1)}, "args['a'] is a date"),
    "generator": ({"a": (i for i in range(3))}, "args['a'] is a generator"),
    "complex": ({"a": 1j}, "args['a'] is a complex"),
    "object": ({"a": object()}, "args['a'] is a object"),
    "integer key": ({"a": {1: 2}}, "args['a'] has the key 1"),
    "none key": ({None: 2}, "args has the key None"),
    "bool key": ({True: 2}, "args has the key True"),
    "huge integer": ({"a": [HUGE]}, "args['a'][0] is an integer of more than"),
    "huge negative integer": ({"a": -HUGE}, "args['a'] is an integer of more than"),
    "huge integer as a key": ({HUGE: 1}, "args has the key"),
    "nested": (nested(2000), "nested deeper than"),
    "large": ({"a": "x" * 1_000_001}, "bytes of JSON: the limit is"),
    "a list": ([], "args must be a dict"),
    "a full list": ([1], "args must be a dict"),
    "text": ("", "args must be a dict"),
    "zero": (0, "args must be a dict"),
    "false": (False, "args must be a dict"),
}


@pytest.mark.parametrize(("args", "message"), REFUSED_ARGS.values(), ids=REFUSED_ARGS)
@pytest.mark.parametrize("field", ["args", "metadata"])
def test_e05_what_json_or_postgres_cannot_hold_is_refused(field: str, args: Any, message: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        register(**{field: args})
    assert message.replace("args", field) in str(caught.value), "E05, P01: the message says where"
    assert len(str(caught.value)) < 1000


def test_e05_a_structure_that_holds_itself_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["a"] = [circle]
    with pytest.raises(InvalidSchedule, match="nested deeper"):
        register(args=circle)


class Colour(str, enum.Enum):  # noqa: UP042
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


class Frozen(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


ACCEPTED_ARGS: dict[str, tuple[Any, Any]] = {
    "none": (None, {}),
    "empty": ({}, {}),
    "every type": (
        {"n": None, "t": True, "i": -5, "f": 1.5, "s": "é☃😀", "l": [1, [2]], "d": {"": {}}},
        {"n": None, "t": True, "i": -5, "f": 1.5, "s": "é☃😀", "l": [1, [2]], "d": {"": {}}},
    ),
    "a tuple": ({"a": (1, 2)}, {"a": [1, 2]}),
    "a thousand digits": ({"a": 10**999}, {"a": 10**999}),
    "the deepest": (nested(99), nested(99)),
    "a mapping": (Frozen(a=Frozen(b=1)), {"a": {"b": 1}}),
    "a text enum": ({"a": Colour.RED, Colour.RED: 1}, {"a": "red", "red": 1}),
    "an integer enum": ({"a": Size.BIG}, {"a": 3}),
    "small floats": ({"a": 5e-324, "b": 1.7976931348623157e308}, {"a": 5e-324, "b": 1.7976931348623157e308}),
}


@pytest.mark.parametrize(("args", "expected"), ACCEPTED_ARGS.values(), ids=ACCEPTED_ARGS)
def test_e05_what_json_can_hold_is_kept(args: Any, expected: Any) -> None:
    schedule = register(args=args, metadata=args)
    assert expected == schedule.args
    assert expected == json.loads(schedule.metadata_json)


def test_e05b_the_callers_dict_is_copied() -> None:
    args: dict[str, Any] = {"to": ["ops"]}
    schedule = register(args=args)
    args["to"].append("all")
    args["more"] = 1
    schedule.args["to"].append("none")
    assert {"to": ["ops"]} == schedule.args, "E05b, P01: it keeps what it was registered with"


REFUSED_NAMES: dict[str, Any] = {
    "empty": "",
    "blanks": "   ",
    "leading blank": " a",
    "trailing newline": "a\n",
    "no-break space": "a\u00a0",
    "nul": "a\0b",
    "escape": "a\x1bb",
    "delete": "a\x7fb",
    "lone surrogate": "a\ud800",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "right to left": "a\u202eb",
    "isolate": "a\u2067b",
    "300 characters": "x" * 300,
    "201 characters": "x" * 201,
    "number": 5,
    "none": None,
    "bytes": b"a",
    "list": ["a"],
    "huge": HUGE,
}


@pytest.mark.parametrize("name", REFUSED_NAMES.values(), ids=REFUSED_NAMES)
@pytest.mark.parametrize("field", ["name", "kind", "queue", "tags"])
def test_e06_labels_that_cannot_be_read_are_refused(field: str, name: Any) -> None:
    value = [name] if field == "tags" else name
    with pytest.raises(InvalidSchedule) as caught:
        register(**{field: value})
    where = {"name": "name ", "tags": "schedule 's': tags[0] "}.get(field, f"schedule 's': {field} ")
    assert str(caught.value).startswith(where), "E06, P01: says which"
    assert len(str(caught.value)) < 300


KEPT_NAMES = [
    "a'b; DROP TABLE awa.cron_jobs;--",
    "😀",
    "👩‍👩‍👧",
    "%s $1 {x}",
    "x" * 200,
    "a b",
    'q"uote',
    "\\",
    "é",
]


@pytest.mark.parametrize("name", KEPT_NAMES)
def test_e06_any_other_name_is_kept_literally(name: str) -> None:
    schedule = register(name, kind=name, queue=name, tags=[name])
    assert (name, name, name, (name,)) == (schedule.name, schedule.kind, schedule.queue, schedule.tags), "E06"


def test_d10_the_same_name_twice_is_refused() -> None:
    client = awa_cron.Client()
    client.periodic("digest", "0 9 * * *", kind="work")
    with pytest.raises(InvalidSchedule, match="'digest' is registered twice"):
        client.periodic("digest", "0 10 * * *", kind="work")
    assert ["0 9 * * *"] == [schedule.cron_expr for schedule in client.schedules], "D10: the first stays"


def test_d10_a_refused_schedule_is_not_registered() -> None:
    client = awa_cron.Client()
    with pytest.raises(InvalidSchedule):
        client.periodic("digest", "0 9 * * *", kind="work", priority=9)
    assert () == client.schedules
    client.periodic("digest", "0 9 * * *", kind="work")


OUT_OF_BOUNDS: dict[str, tuple[Any, ...]] = {
    "priority": (0, 5, -1, 1.0, "2", True, None, HUGE),
    "max_attempts": (0, 1001, 2.5, "3", False, None, -HUGE),
    "tags": ("digest", None, {"a"}, 5, [f"t{i}" for i in range(21)]),
    "missed_fire_policy": ("", "skip", None, "Coalesce", 1, [], HUGE),
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in OUT_OF_BOUNDS.items() for value in values],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_p01_other_fields_out_of_their_bounds_are_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        register(**{field: value})
    assert str(caught.value).startswith(f"schedule 's': {field}"), "P01: names schedule and field"


@pytest.mark.parametrize("key", ["cron_name", "cron_fire_time", "cron_triggered_at"])
def test_p28_the_labels_of_a_job_are_not_the_callers(key: str) -> None:
    with pytest.raises(InvalidSchedule, match=f"metadata has the key '{key}'"):
        register(metadata={key: "x"})


def test_p01_expressions_and_zones_are_checked_at_registration() -> None:
    with pytest.raises(InvalidCronExpression):
        register(cron_expr="61 * * * *")
    with pytest.raises(InvalidCronExpression):
        register(cron_expr="0 0 30 2 *")
    with pytest.raises(InvalidCronExpression):
        register(cron_expr=None)
    with pytest.raises(UnknownTimezone):
        register(timezone="Mars/Phobos")
    with pytest.raises(UnknownTimezone):
        register(timezone=None)


def test_p01_what_is_accepted_is_what_was_given() -> None:
    schedule = register(
        "digest",
        " 0 9 * * * ",
        timezone="Pacific/Auckland",
        queue="email",
        priority=4,
        max_attempts=1000,
        tags=("a", "b"),
        missed_fire_policy=MissedFirePolicy.CATCH_UP,
    )
    seen = (schedule.cron_expr, schedule.timezone, schedule.queue, schedule.priority, schedule.max_attempts)
    assert ("0 9 * * *", "Pacific/Auckland", "email", 4, 1000) == seen
    assert (("a", "b"), "catch_up") == (schedule.tags, schedule.missed_fire_policy)


def test_a_kind_has_one_handler() -> None:
    client = awa_cron.Client()

    @client.task("work")
    def work(job: awa_cron.Job) -> None: ...

    async def yielding(job: awa_cron.Job) -> AsyncIterator[None]:
        yield

    with pytest.raises(InvalidSchedule, match="'work' has two handlers"):
        client.task("work")(work)
    with pytest.raises(InvalidSchedule, match="is a generator"):
        client.task("yielding")(yielding)
    with pytest.raises(InvalidSchedule, match="must take one argument"):
        client.task("alone")(lambda: None)  # type: ignore[type-var]
    with pytest.raises(InvalidSchedule, match="not callable"):
        client.task("other")(5)  # type: ignore[type-var]
    with pytest.raises(InvalidSchedule, match="kind is ' '"):
        client.task(" ")


@pytest.mark.parametrize("schema", ["", "Awa", "1awa", "pg_awa", "a-b", 'a"b', "a" * 49, "a.b", None, 5, "awa\n"])
def test_schema_names_that_need_quoting_are_refused(schema: Any) -> None:
    with pytest.raises(InvalidArgument, match="schema is"):
        awa_cron.Client(schema=schema)


@pytest.mark.parametrize("queues", ["email", 5, [""], [5], [" a"]])
def test_queues_are_a_list_of_labels(queues: Any) -> None:
    with pytest.raises((InvalidArgument, InvalidSchedule), match="queue"):
        awa_cron.Client(queues=queues)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("evaluate_interval_s", 0),
        ("keep_events_s", 1e11),
        ("keep_jobs_s", 1e300),
        ("sync_interval_s", -1),
        ("ping_interval_s", float("nan")),
        ("ping_timeout_s", float("inf")),
        ("election_interval_s", "1"),
        ("statement_timeout_s", None),
        ("pass_limit", 1.5),
        ("pass_limit", 0),
        ("concurrency", True),
        ("rescue_after_s", 1),
        ("rescue_after_s", 15),
    ],
)
def test_settings_that_cannot_work_are_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"Settings.{field}"):
        Settings(**{field: value})


def test_settings_have_the_adrs_defaults() -> None:
    settings = Settings()
    intervals = (settings.evaluate_interval_s, settings.ping_interval_s, settings.sync_interval_s)
    assert (1.0, 30.0, 60.0) == intervals


@pytest.mark.parametrize(("ping_interval_s", "ping_timeout_s"), [(30, 5), (0.2, 0.5), (1, 30)])
def test_a_leader_that_pings_is_never_idle(ping_interval_s: float, ping_timeout_s: float) -> None:
    settings = Settings(ping_interval_s=ping_interval_s, ping_timeout_s=ping_timeout_s)
    assert settings.leader_idle_timeout_s > ping_interval_s + ping_timeout_s, "P06: a slow ping is still a ping"


def test_a03_what_never_fires_in_its_zone_is_refused() -> None:
    with pytest.raises(InvalidCronExpression, match="never fires in America/New_York"):
        register(cron_expr="* 2 * 3 SUN#2", timezone="America/New_York")
    assert "UTC" == register(cron_expr="* 2 * 3 SUN#2").timezone
