"""Which faults and operations strike when: drawn from a seed, before anything is started."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence

LEADER = "leader"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that is to happen.

    Attributes:
        at_s: When, in seconds from the start.
        lane: Steps of one lane follow each other; lanes run beside each other.
        what: A fault, an operation, a deployment, or a step of a clock.
        seconds: How long it lasts.
        target: ``leader``, the number of an instance, or a schedule.
        amount: What the step needs besides, such as a delay in seconds.
    """

    at_s: float
    lane: str
    what: str
    seconds: float = 0.0
    target: str = LEADER
    amount: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.at_s:7.2f} s  {self.lane:9} {self.what:18} {self.target:18}"
            f" for {self.seconds:.2f} s, {self.amount:g}"
        )


LASTS_S: Mapping[str, tuple[float, float]] = {
    "kill": (0.3, 2.5),
    "freeze": (3.5, 7.0),
    "black_hole": (2.0, 7.0),
    "lost_answers": (2.0, 5.0),
    "latency": (2.0, 5.0),
    "stale_write": (2.0, 3.0),
    "forgotten_clients": (2.0, 6.0),
    "forgotten_servers": (2.0, 6.0),
    "terminate_leader": (0.0, 0.0),
    "terminate_enqueue": (0.0, 0.0),
    "restart_fast": (0.0, 0.0),
    "restart_immediate": (0.0, 0.0),
    "idle_session_timeout": (2.0, 4.0),
    "statement_timeout": (2.0, 4.0),
    "row_lock": (2.0, 5.0),
    "pooler": (5.0, 8.0),
}
"""Every fault, and how long it lasts, from and to. ``freeze`` outlasts ping and lease."""

AMOUNTS: Mapping[str, tuple[float, float]] = {
    "latency": (0.02, 0.8),
    "stale_write": (0.75, 0.9),
    "idle_session_timeout": (200, 1500),
    "statement_timeout": (1, 20),
}
"""Seconds of delay; milliseconds of the timeouts."""

OPERATIONS = ("pause", "pause", "resume", "resume", "resume", "trigger", "trigger", "remove")


def program(
    seed: int, seconds: float, *, instances: int, faults: Mapping[str, Sequence[str]], schedules: Sequence[str]
) -> list[Step]:
    """Draw a program; the same arguments give the same one.

    Args:
        seed: Any number.
        seconds: Nothing begins or lasts later than this.
        instances: How many there are.
        faults: By lane, those that may strike.
        schedules: Those that operators act on.
    """
    steps = [
        step
        for lane, kinds in faults.items()
        for step in _faults(random.Random(f"{seed} {lane}"), lane, seconds, kinds, instances)  # noqa: S311
    ]
    for lane, draw in (("operator", _operations), ("deploy", _deployments), ("clock", _clocks)):
        dice = random.Random(f"{seed} {lane}")  # noqa: S311
        steps += [dataclasses.replace(step, lane=lane) for step in draw(dice, seconds, schedules, instances)]
    return sorted(steps, key=lambda step: (step.at_s, step.lane))


def _faults(dice: random.Random, lane: str, seconds: float, kinds: Sequence[str], instances: int) -> Iterator[Step]:
    """Strike with every kind once, in any order, before one comes again."""
    at_s = dice.uniform(0.5, 2)
    while kinds:
        for what in dice.sample(kinds, len(kinds)):
            lasts_s = dice.uniform(*LASTS_S[what])
            if at_s + lasts_s > seconds:
                return
            target = LEADER if dice.random() < 0.7 else str(dice.randrange(instances))
            amount = dice.uniform(*AMOUNTS.get(what, (0, 1)))
            yield Step(at_s=at_s, lane=lane, what=what, seconds=lasts_s, target=target, amount=amount)
            at_s += lasts_s + dice.uniform(0.2, 1)


def _operations(dice: random.Random, seconds: float, schedules: Sequence[str], _: int) -> Iterator[Step]:
    at_s = dice.uniform(0.5, 1.5)
    while at_s < seconds:
        yield Step(at_s=at_s, lane="", what=dice.choice(OPERATIONS), target=dice.choice(schedules))
        at_s += dice.uniform(0.2, 1.2)


def _deployments(dice: random.Random, seconds: float, _: Sequence[str], instances: int) -> Iterator[Step]:
    """Roll a release out over all instances, or over one only, so that two releases sync against each other."""
    at_s = dice.uniform(4, 8)
    release = 2
    while at_s < seconds:
        target = "all" if dice.random() < 0.6 else str(dice.randrange(instances))
        yield Step(at_s=at_s, lane="", what="deploy", target=target, amount=release)
        release = 3 - release
        at_s += dice.uniform(6, 12)


def _clocks(dice: random.Random, seconds: float, _: Sequence[str], __: int) -> Iterator[Step]:
    """Step either clock an hour forth, or back, and to where it belongs."""
    at_s = dice.uniform(2, 4)
    while True:
        for hours in dice.sample((-1, 0, 0, 1), 4):
            if at_s > seconds:
                return
            target = LEADER if dice.random() < 0.6 else str(dice.randrange(2))
            yield Step(at_s=at_s, lane="", what="step_clock", target=target, amount=hours * 3600.0)
            at_s += dice.uniform(1.5, 4)
