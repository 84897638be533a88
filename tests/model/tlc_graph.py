"""TLC's state graph of ``spec/MCAwaCron.tla``, as states and steps of the Python model.

The dump is read with regular expressions: Graphviz readers would merge parallel edges, and labels hold ``|->``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assurance.java import find_runner
from assurance.tlc import COMPLETED, start
from tests.model.spec_model import Model
from tests.model.spec_state import Frozen, Row, State, Table

NODE = re.compile(r'^(-?\d+) \[label="(.*?)"(,style = filled)?\];?$', re.MULTILINE)
EDGE = re.compile(r'^(-?\d+) -> (-?\d+) \[label="(\w+)"', re.MULTILINE)
TOKEN = re.compile(r'\|->|<<|>>|:>|@@|[\[\](){},]|-?\d+|"[^"]*"|\w+')

NAMED_DEFINITIONS = {"each": lambda instant: instant > 0, "odd": lambda instant: instant % 2 == 1}
"""MCFiresOf, by its names."""

CFG = """\
SPECIFICATION Spec
CONSTANTS
    Instances = {{{instances}}}
    Schedules = {{{schedules}}}
    Definitions = {{{definitions}}}
    FiresOf <- MCFiresOf
    Policy <- MCPolicy
    PassLimit = {model.pass_limit}
    MaxTime = {model.max_time}
    MaxTriggers = {model.max_triggers}
    ClockMaySlip = {slip}
    FaultyEvaluator = {faulty}
    None = None
"""


@dataclass(frozen=True)
class Graph:
    """Initial states, states, and steps as (before, action's name in the spec, after)."""

    initial: frozenset[State]
    states: frozenset[State]
    steps: frozenset[tuple[State, str, State]]


def cfg_of(model: Model) -> str:
    """Return the configuration whose constants are the model's."""
    return CFG.format(
        model=model,
        instances=", ".join(model.instances),
        schedules=", ".join(f'"{name}"' for name in model.schedules),
        definitions=", ".join(f'"{name}"' for name in model.definitions),
        slip=str(model.clock_may_slip).upper(),
        faulty=str(model.faulty_evaluator).upper(),
    )


def tlc_graph(model: Model, work: Path) -> Graph:
    """Let TLC explore the model in ``work`` and read what it dumped.

    Raises:
        CannotRunError: Where there is no Java or no jar.
    """
    dump = ["-dump", "dot,actionlabels", "graph.dot"]
    finished = start(find_runner(), work, "MCAwaCron", cfg_of(model), short=True, options=dump)
    assert COMPLETED in finished.stdout, finished.stdout
    return parse(model, (work / "graph.dot").read_text(encoding="utf-8"))


def parse(model: Model, dump: str) -> Graph:
    """Read a dump."""
    states: dict[str, State] = {}
    initial = set()
    for node, label, filled in NODE.findall(dump):
        states[node] = to_state(model, label.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\"))
        if filled:
            initial.add(states[node])
    steps = {(states[source], action, states[target]) for source, target, action in EDGE.findall(dump)}
    return Graph(frozenset(initial), frozenset(states.values()), frozenset(steps))


def to_state(model: Model, label: str) -> State:
    r"""Turn ``/\ variable = value`` lines into a state."""
    variables: dict[str, Any] = {}
    for conjunct in re.split(r"^/\\ ", label, flags=re.MULTILINE)[1:]:
        name, _, value = conjunct.partition(" = ")
        variables[name] = read_text(value)
    count = variables["jobs"]
    return State(
        now=variables["now"],
        rows=Table((s, to_row(variables["rows"][s])) for s in model.schedules),
        jobs=Table((s, Table((f, n) for f, n in count[s].items() if n > 0)) for s in model.schedules),
        triggered=Table(variables["triggered"]),
        floor=Table(variables["floor"]),
        lock=variables["lock"],
        up=Table(variables["up"]),
        believes=Table(variables["believes"]),
        snapshot=Table((i, to_snapshot(variables["snapshot"][i])) for i in model.instances),
    )


def to_row(value: dict[str, Any] | None) -> Row | None:
    """Turn a record into a row."""
    return None if value is None else Row(value["def"], value["last"], value["anchor"], value["paused"])


def to_snapshot(value: dict[str, Any] | None) -> Table[str, Frozen | None] | None:
    """Turn what an instance has read into its table."""
    if value is None:
        return None
    return Table((s, f and Frozen(f["def"], f["anchor"], f["expected"], f["fires"])) for s, f in value.items())


@functools.cache
def read_text(text: str) -> Any:
    """Read one value; most states share theirs with others."""
    return read_value(iter(TOKEN.findall(text)))


def read_value(tokens: Iterator[str], first: str | None = None) -> Any:
    """Read one value as TLC prints it: a record or function (dict), a sequence or set (tuple), or a plain value."""
    token = next(tokens) if first is None else first
    if token in {"[", "("}:
        return read_entries(tokens, "]" if token == "[" else ")")
    if token in {"<<", "{"}:
        return read_sequence(tokens, ">>" if token == "<<" else "}")
    plain: dict[str, Any] = {"TRUE": True, "FALSE": False, "None": None}
    if token in plain:
        return plain[token]
    return int(token) if token.lstrip("-").isdigit() else token.strip('"')


def read_entries(tokens: Iterator[str], end: str) -> dict[Any, Any]:
    """Read ``key |-> value, …]`` or ``key :> value @@ …)``."""
    entries: dict[Any, Any] = {}
    separator = ""
    while separator != end:
        key = read_value(tokens)
        next(tokens)
        entries[key] = read_value(tokens)
        separator = next(tokens)
    return entries


def read_sequence(tokens: Iterator[str], end: str) -> tuple[Any, ...]:
    """Read the rest of a sequence or set."""
    values: list[Any] = []
    while (token := next(tokens)) != end:
        values.append(read_value(tokens, next(tokens) if token == "," else token))
    return tuple(values)
