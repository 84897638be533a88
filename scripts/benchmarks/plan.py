"""Which measurements a run takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

YEARS_S = 10 * 365 * 86_400
HOUR_S = 3_600
MANY = 100_000
"""So many distinct expressions take long enough for one run to say enough."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One case for one subject, so many times.

    Attributes:
        case: ``herd``, ``idle`` and so on.
        subject: ``awa_cron``, a peer, or ``floor``.
        place: What performs it, a key of ``measure.PLACES``.
        variant: What distinguishes it within the case, in words.
        arguments: Of the function.
        runs: How often; the result is the median.
    """

    case: str
    subject: str
    place: str
    variant: str
    arguments: dict[str, Any]
    runs: int = 1

    @property
    def series(self) -> tuple[str, int | None]:
        """What it is compared with: herds with those of their size, else all of the case."""
        return self.case, self.arguments["count"] if self.case == "herd" else None


def quick() -> Iterator[Measurement]:
    """Small numbers, once each: whether everything still runs."""
    yield from _herd(counts=(2_000,), peers={}, runs=1)
    yield from _idle((1_000, 20_000), ticks=20, runs=1)
    yield from _outage(passes=2)
    yield _steady(100, 3)
    yield from _sync((2_000,), runs=1)
    yield from _jobs(1_000, (10,), runs=1)


def full() -> Iterator[Measurement]:
    """What docs/benchmarks.md shows."""
    peers = {"awa-pg": (1_000, 10_000), "procrastinate": (1_000,), "pgqueuer": (1_000,), "apscheduler": (1_000,)}
    yield from _herd(counts=(1_000, 10_000, 100_000), peers=peers, runs=3)
    yield from _idle((1_000, 10_000, 100_000, 1_000_000), ticks=200, runs=3)
    yield from _outage(passes=9)
    yield _steady(1_000, 20)
    yield from _sync((10_000, 100_000), runs=1)
    yield from _jobs(10_000, (10, 100), runs=3)


def _herd(counts: tuple[int, ...], peers: dict[str, tuple[int, ...]], runs: int) -> Iterator[Measurement]:
    for count in counts:
        for logged in (False, True):
            yield Measurement(
                case="herd",
                subject="floor, with the log" if logged else "floor",
                place="floor.herd",
                variant="",
                arguments={"count": count, "variety": "alike", "logged": logged},
                runs=runs,
            )
        for variety in ("alike", "distinct"):
            yield Measurement(
                case="herd",
                subject="awa_cron",
                place="ours.herd",
                variant=f"{variety} expressions",
                arguments={"count": count, "variety": variety},
                runs=runs if variety == "alike" or count < MANY else 1,
            )
        for peer, numbers in peers.items():
            if count in numbers:
                yield Measurement(
                    case="herd",
                    subject=peer,
                    place=f"{peer}.herd",
                    variant="distinct expressions",
                    arguments={"count": count, "variety": "distinct"},
                )


def _idle(counts: tuple[int, ...], ticks: int, runs: int) -> Iterator[Measurement]:
    for count in counts:
        yield Measurement(
            case="idle",
            subject="awa_cron",
            place="ours.idle",
            variant="distinct expressions",
            arguments={"count": count, "variety": "distinct", "ticks": ticks},
            runs=runs,
        )


def _outage(passes: int) -> Iterator[Measurement]:
    for policy in ("coalesce", "catch_up"):
        for outage_s, words in ((2 * HOUR_S, "two hours"), (YEARS_S, "ten years")):
            yield Measurement(
                case="outage",
                subject="awa_cron",
                place="ours.outage",
                variant=f"{policy}, {words}",
                arguments={"outage_s": outage_s, "policy": policy, "passes": passes},
            )


def _steady(count: int, seconds: int) -> Measurement:
    return Measurement(
        case="steady",
        subject="awa_cron",
        place="ours.steady",
        variant=f"{seconds} s",
        arguments={"count": count, "seconds": seconds},
    )


def _sync(counts: tuple[int, ...], runs: int) -> Iterator[Measurement]:
    for count in counts:
        yield Measurement(
            case="sync",
            subject="awa_cron",
            place="ours.sync",
            variant="distinct expressions",
            arguments={"count": count, "variety": "distinct"},
            runs=runs,
        )


def _jobs(count: int, concurrencies: tuple[int, ...], runs: int) -> Iterator[Measurement]:
    for concurrency in concurrencies:
        for subject in ("awa_cron", "awa-pg", "procrastinate", "pgqueuer"):
            yield Measurement(
                case="jobs",
                subject=subject,
                place="ours.jobs" if subject == "awa_cron" else f"{subject}.jobs",
                variant=f"{concurrency} at once",
                arguments={"count": count, "concurrency": concurrency},
                runs=runs,
            )
