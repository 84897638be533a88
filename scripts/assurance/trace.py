"""Logs become traces: ``spec/AwaCronTrace.tla`` says whether each is a behaviour of ``AwaCron``.

A log is cut into windows. Within one, instants become small numbers in their order, and definitions the sets of
numbers at which they fire. Of the instants that nothing in the window mentions, one between two mentioned ones
stands for all: a pass or an edit that takes one of them is not what the log tells, whichever it is.
"""

from __future__ import annotations

import copy
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from assurance import CannotRunError, tlc
from assurance.java import Runner
from awa_cron.errors import InvalidSchedule
from awa_cron.model import Event, ScheduleState
from awa_cron.verify.instants import instants_of
from awa_cron.verify.rules import TRIGGER_OVERTAKES
from awa_cron.verify.state import ACTIONS, Definition, State, Unknown, instant, told

POLICIES = ("coalesce", "catch_up")
EVENTS = 10
"""The most events of a window, unless told otherwise."""


@dataclass(frozen=True)
class Window:
    """A piece of one schedule's log.

    Attributes:
        start: The state before it, all of it known.
        events: In the order of the row lock.
        row: The row after it, None where there is none.
    """

    start: State
    events: tuple[Event, ...]
    row: ScheduleState | None

    @property
    def policy(self) -> str:
        """Return the policy that holds in it."""
        if self.start.present is True:
            return str(self.start.policy)
        return next(
            (str(e.details.get("missed_fire_policy")) for e in self.events if e.action == "sync"), "coalesce"
        )


@dataclass(frozen=True)
class Followed:
    """How far TLC could follow a window: all of it, or up to the event that is no step."""

    window: Window
    events: int

    @property
    def accepted(self) -> bool:
        """Whether it is a behaviour of the spec, the row at the end included."""
        return self.events == len(self.window.events) + 1

    @property
    def stuck_at(self) -> Event | None:
        """The event that is no step; None where all are, or where it is the row that does not fit."""
        return self.window.events[self.events] if self.events < len(self.window.events) else None


def windows(log: Sequence[Event], row: ScheduleState | None, *, most: int = EVENTS) -> list[Window]:
    """Cut the log of one schedule, from its first event on, into windows.

    An event is a whole transaction, and later ones depend on nothing but the row that it leaves: any place where
    all of the row is known is quiet enough for a cut. Who reads before and writes after it has to find what it has
    read, so that it might as well have read after it, by the clock that it did.

    A window also ends where the policy changes, for the spec knows only one.
    """
    state = State(present=False, floor_known=True)
    policy = state.policy
    found: list[Window] = []
    start, piece = copy.deepcopy(state), list[Event]()
    for event in _overtaken(log):
        registers = state.present is False and event.action == "sync"
        other_policy = state.present is True and state.policy != policy
        if piece and _known(state) and (registers or other_policy or len(piece) >= most):
            found.append(Window(start, tuple(piece), _row(state)))
            start, piece = copy.deepcopy(state), []
        state.adopt(event)
        if not piece:
            policy = (start if start.present is True else state).policy
        piece.append(event)
    return [*found, Window(start, tuple(piece), row)]


def follow(runner: Runner, pieces: Sequence[Window], *, pass_limit: int) -> list[Followed]:
    """Ask TLC how far each window is a behaviour of the spec, all in one run.

    Raises:
        CannotRunError: TLC did not say so, or was wrong about the two windows whose outcome is known.
    """
    asked = [*pieces, *_controls()]
    with tempfile.TemporaryDirectory(prefix="trace-") as work:
        data, cfg = written(asked, pass_limit=pass_limit)
        (Path(work) / "TraceData.tla").write_text(data, encoding="utf-8")
        finished = tlc.start(runner, Path(work), "AwaCronTrace", cfg, short=True)
    output = finished.stdout
    if finished.returncode != 0 or tlc.COMPLETED not in output:
        raise CannotRunError(f"TLC did not follow the traces:\n{output[-3000:]}")
    reached = dict.fromkeys(range(1, len(asked) + 1), 0)
    for number, at in re.findall(r'<<"reached", (\d+), (\d+)>>', output):
        reached[int(number)] = max(reached[int(number)], int(at))
    if 0 in reached.values():
        raise CannotRunError("TLC did not begin each trace")
    answers = [Followed(window, reached[number] - 1) for number, window in enumerate(asked, start=1)]
    if [answer.accepted for answer in answers[-2:]] != [True, False]:
        raise CannotRunError("TLC does not tell the right control trace from the wrong one")
    return answers[:-2]


def smallest(runner: Runner, rejected: Followed, *, pass_limit: int) -> tuple[Event, ...]:
    """Return the shortest piece of a rejected window, up to where it is no behaviour, that is rejected alone."""
    window = rejected.window
    upto = min(rejected.events + 1, len(window.events))
    row = window.row if rejected.stuck_at is None else None
    endings, state = list[Window](), copy.deepcopy(window.start)
    for place, event in enumerate(window.events[:upto]):
        if _known(state):
            endings.append(Window(copy.deepcopy(state), window.events[place:upto], row))
        state.adopt(event)
    answers = follow(runner, endings, pass_limit=pass_limit)
    # What stands after the event in question has no say in it: not the row either.
    alone = [
        each for each in answers if (each.stuck_at is None) is (rejected.stuck_at is None) and not each.accepted
    ]
    return min((each.window.events for each in alone), key=len, default=window.events[:upto])


def written(pieces: Sequence[Window], *, pass_limit: int) -> tuple[str, str]:
    """Return the text of module TraceData, and of the cfg."""
    definitions: list[tuple[str, str]] = []
    traces: list[str] = []
    latest = triggers = 1
    for number, window in enumerate(pieces, start=1):
        numbered = _Numbered(window, number)
        traces.append(numbered.trace())
        definitions += numbered.definitions()
        latest = max(latest, len(numbered.times))
        triggers = max(triggers, sum(event.action == "trigger" for event in window.events))
    fires_of = ",\n    ".join(f"{name} |-> {fires}" for name, fires in definitions)
    data = (
        "---- MODULE TraceData ----\n(* Written by scripts/assurance/trace.py. *)\nEXTENDS AwaCron\n\n"
        f"TraceFiresOf == [\n    {fires_of}]\n\n"
        "TraceDefinitions == DOMAIN TraceFiresOf\n\n"
        "TracePolicy == [s \\in Schedules |-> s]\n\n"
        "Traces == <<\n" + ",\n".join(traces) + "\n>>\n====\n"
    )
    cfg = (
        "SPECIFICATION TraceSpec\nCONSTANTS\n    Instances = {leader}\n"
        f"    Schedules = {{{', '.join(f'{chr(34)}{each}{chr(34)}' for each in POLICIES)}}}\n"
        "    Definitions <- TraceDefinitions\n    FiresOf <- TraceFiresOf\n    Policy <- TracePolicy\n"
        f"    PassLimit = {pass_limit}\n    MaxTime = {latest}\n    MaxTriggers = {triggers}\n"
        "    ClockMaySlip = TRUE\n    FaultyEvaluator = FALSE\n    None = None\n"
        "    Ascending <- InOrder\n    AnyFires <- NoFires\n"
        "INVARIANTS\n    Reached\n    NoDuplicateFire\n"
    )
    return data, cfg


class _Numbered:
    """One window with numbers for its instants; 0 is none of them."""

    def __init__(self, window: Window, number: int) -> None:
        self._window = window
        self._names: dict[Definition, str] = {}
        for definition in _definitions(window):
            self._names.setdefault(definition, f"t{number}d{len(self._names) + 1}")
        mentioned = sorted({time for time in _times(window) if isinstance(time, datetime)})
        self._fires = {definition: set(_fires(definition, mentioned)) for definition in self._names}
        self.times = sorted(set(mentioned).union(*self._fires.values()))
        self._number = {time: place for place, time in enumerate(self.times, start=1)}

    def definitions(self) -> list[tuple[str, str]]:
        """Return the name of each definition, and when it fires."""
        return [
            (name, "{" + ", ".join(str(self._number[fire]) for fire in sorted(self._fires[definition])) + "}")
            for definition, name in self._names.items()
        ]

    def trace(self) -> str:
        """Return the window as a record."""
        start, window = self._window.start, self._window
        events = [*map(self._event, window.events), self._end(window.events[-1].clock if window.events else None)]
        now = window.events[0].clock if window.events else None
        return (
            f'  [schedule |-> "{window.policy}", now |-> {self._time(now) if now else 0},\n'
            f"   row |-> {self._row(_row(start))}, floor |-> {self._time(start.floor) if start.floor else 0},\n"
            "   events |-> <<\n     " + ",\n     ".join(events) + ">>]"
        )

    def _event(self, event: Event) -> str:
        details = event.details
        fields: dict[str, object] = {
            "action": f'"{details.get("change") if event.action == "sync" else event.action}"',
            "clock": self._time(event.clock),
            "last": self._time(event.last_enqueued_at),
            "fires": f"<<{', '.join(str(self._time(fire)) for fire in event.fires)}>>",
            "jobs": len(set(event.job_ids)),
        }
        match event.action:
            case "sync":
                fields["def"] = self._name(told(details, ""))
                fields["before"] = self._name(told(details, "from"))
                fields["anchor"] = self._time(instant(details.get("anchored_at")))
            case "remove":
                fields["before"] = self._name(told(details, ""))
            case "atomic_enqueue":
                fields["expected"] = self._time(instant(details.get("expected")))
                fields["read"] = self._time(instant(details.get("read_at")))
        return "[" + ", ".join(f"{name} |-> {value}" for name, value in fields.items()) + "]"

    def _end(self, clock: datetime | None) -> str:
        time = self._time(clock) if clock else 0
        return f'[action |-> "row", clock |-> {time}, row |-> {self._row(self._window.row)}]'

    def _row(self, row: ScheduleState | None) -> str:
        if row is None:
            return "None"
        return (
            f"[def |-> {self._name((row.cron_expr, row.timezone))}, last |-> {self._time(row.last_enqueued_at)}, "
            f"anchor |-> {self._time(row.anchored_at)}, "
            f"paused |-> {'TRUE' if row.paused_at is not None else 'FALSE'}]"
        )

    def _time(self, time: datetime | None) -> int | str:
        return "None" if time is None else self._number[time]

    def _name(self, definition: Any) -> str:
        return f'"{self._names[definition]}"' if definition in self._names else '"none"'


def _definitions(window: Window) -> Iterator[Definition]:
    for row in (_row(window.start), window.row):
        if row is not None:
            yield row.cron_expr, row.timezone
    for event in window.events:
        for key in ("", "from"):
            definition = told(event.details, key)
            if isinstance(definition, tuple):
                yield definition


def _times(window: Window) -> Iterator[object]:
    """Yield every instant that the window mentions."""
    yield window.start.floor
    for row in (_row(window.start), window.row):
        if row is not None:
            yield from (row.last_enqueued_at, row.anchored_at)
    for event in window.events:
        yield from (event.clock, event.last_enqueued_at, *event.fires)
        yield from (instant(event.details.get(key)) for key in ("expected", "read_at", "anchored_at"))


def _fires(definition: Definition, mentioned: Sequence[datetime]) -> Iterator[datetime]:
    """Yield the instants at which a definition fires: the mentioned ones, and the first between any two of them."""
    try:
        instants = instants_of(*definition)
    except InvalidSchedule:
        return
    for time in mentioned:
        if time in instants:
            yield time
        following = instants.first_after(time)
        if following is not None and following <= mentioned[-1]:
            yield following


def _known(state: State) -> bool:
    """Tell whether all of a state is known: a window can begin here."""
    values = (state.definition, state.policy, state.last, state.anchor, state.paused)
    return state.present is False or not any(isinstance(value, Unknown) for value in values)


def _row(state: State) -> ScheduleState | None:
    """Return the row that a log tells of; its names and labels do not matter."""
    if state.present is not True:
        return None
    assert isinstance(state.definition, tuple), "the state is known"
    values: dict[str, Any] = {
        "last_enqueued_at": state.last,
        "anchored_at": state.anchor,
        "paused_at": state.paused,
    }
    return ScheduleState(
        name="",
        cron_expr=state.definition[0],
        timezone=state.definition[1],
        missed_fire_policy=str(state.policy),
        **values,
    )


def _overtaken(log: Sequence[Event]) -> list[Event]:
    """Return the log with each trigger that overtook a removal before it: a trigger locks nothing."""
    events: list[Event] = []
    for event in log:
        if event.action not in ACTIONS:
            continue
        last = events[-1] if events else None
        late = last is not None and event.action == "trigger" and last.action == "remove"
        if late and last is not None and event.recorded_at - last.recorded_at <= TRIGGER_OVERTAKES:
            events.insert(-1, event)
        else:
            events.append(event)
    return events


def _controls() -> list[Window]:
    """Return a window that is right and one that is wrong."""
    clock = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    details = {
        "change": "inserted",
        "cron_expr": "* * * * *",
        "timezone": "UTC",
        "missed_fire_policy": "coalesce",
        "anchored_at": clock.isoformat(),
    }
    plain: dict[str, Any] = {"recorded_at": clock, "clock": clock, "name": "s", "actor": None, "fires": ()}
    plain |= {"job_ids": (), "last_enqueued_at": None}
    inserted = Event(id=1, action="sync", details=details, **plain)
    pauses = [Event(id=number, action="pause", details={}, **plain) for number in (2, 3)]
    row = ScheduleState(
        name="s",
        cron_expr="* * * * *",
        timezone="UTC",
        missed_fire_policy="coalesce",
        last_enqueued_at=None,
        anchored_at=clock,
        paused_at=clock,
    )
    absent = State(present=False, floor_known=True)
    return [Window(absent, (inserted, *pauses[:length]), row) for length in (1, 2)]
