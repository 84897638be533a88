"""What OpenTelemetry is told, by its real SDK; and that nothing is told, or needed, without it."""

from __future__ import annotations

import asyncio
import dataclasses
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import awa_cron
from awa_cron import next_fires, telemetry
from awa_cron.database import Database
from awa_cron.errors import DatabaseError
from awa_cron.leader import Leader
from awa_cron.model import FrozenFires, ScheduleState
from awa_cron.scheduler import Scheduler
from awa_cron.sql import Schema
from tests.integration import commands
from tests.integration.support import (
    FIRE,
    HASTY,
    NOW,
    Session,
    T,
    a_node,
    a_worker,
    at,
    enqueue_next,
    insert_job,
    reaches,
    running,
    wait_until,
    write_row,
)


@dataclasses.dataclass
class Told:
    """What has been told since the test began."""

    reader: InMemoryMetricReader
    exporter: InMemorySpanExporter
    before: dict[tuple[str, frozenset[tuple[str, Any]]], Any] = dataclasses.field(default_factory=dict)

    def now(self) -> dict[tuple[str, frozenset[tuple[str, Any]]], Any]:
        found: dict[tuple[str, frozenset[tuple[str, Any]]], Any] = {}
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        key = metric.name, frozenset((point.attributes or {}).items())
                        if isinstance(point, HistogramDataPoint):
                            found[key] = (point.count, point.sum)
                        elif isinstance(point, NumberDataPoint):
                            found[key] = point.value
        return found

    def of(self, name: str, attributes: Mapping[str, Any] | None = None) -> Any:
        """Return a number, or of a histogram (count, sum), since the test began."""
        key = ("awa_cron." + name, frozenset({"awa_cron." + k: v for k, v in (attributes or {}).items()}.items()))
        value, before = self.now().get(key), self.before.get(key)
        if isinstance(value, tuple):
            return tuple(a - b for a, b in zip(value, before or (0, 0), strict=True))
        return 0 if value is None else value - (before or 0)

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]


@pytest.fixture(scope="module")
def sdk() -> Iterator[tuple[InMemoryMetricReader, InMemorySpanExporter]]:
    """Set up the SDK as an application does; it can be done once."""
    reader, exporter = InMemoryMetricReader(), InMemorySpanExporter()
    metrics.set_meter_provider(MeterProvider([reader]))
    traces = TracerProvider()
    traces.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(traces)
    yield reader, exporter
    traces.shutdown()


@pytest.fixture
def told(sdk: tuple[InMemoryMetricReader, InMemorySpanExporter]) -> Told:
    found = Told(*sdk)
    found.before = found.now()
    found.exporter.clear()
    return found


async def test_fires_their_lateness_and_those_that_a_later_one_stands_for(
    dsn: str, connection: Session, told: Told
) -> None:
    await write_row(connection, "coalesces", last_enqueued_at=at("2026-01-01 10:00"))
    await write_row(connection, "catches", last_enqueued_at=at("2026-01-01 10:00"), missed_fire_policy="catch_up")
    async with a_node(dsn, connection) as node:
        await node.evaluate(at("2026-01-01 13:00:02"))
    assert 1 == told.of("fires", {"policy": "coalesce"})
    assert 2 == told.of("fires.coalesced", {"policy": "coalesce"}), "11 and 12 o'clock"
    assert 3 == told.of("fires", {"policy": "catch_up"})
    assert 0 == told.of("fires.coalesced", {"policy": "catch_up"})
    count, late_s = told.of("fire.lateness", {"policy": "coalesce"})
    assert 1 == count
    assert late_s >= 2
    count, late_s = told.of("fire.lateness", {"policy": "catch_up"})
    assert 3 == count
    assert late_s >= 2 + 3602 + 7202
    (span,) = told.spans("atomic_enqueue")
    assert span.attributes is not None
    assert {"coalesces", "catches"} == set(span.attributes["awa_cron.schedules"])  # type: ignore[arg-type]
    assert 2 == span.attributes["awa_cron.batch_size"]
    assert 0 == told.of("races.lost")


async def test_while_a_herd_is_counted_others_have_their_turn(told: Told) -> None:
    last = at("2026-01-01 08:00")

    def frozen(number: int) -> FrozenFires:
        read = ScheduleState(
            name=f"herd {number}",
            cron_expr=f"{number % 60} {number // 60} * * *",
            timezone="UTC",
            missed_fire_policy="coalesce",
            last_enqueued_at=last,
            anchored_at=last,
            paused_at=None,
        )
        fires = next_fires(read.cron_expr, "UTC", after=last + timedelta(days=2), count=1)
        return FrozenFires(read=read, fires=tuple(fires), read_at=fires[0])

    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    batch = [frozen(number) for number in range(600)]
    async with running(others()):
        await telemetry._count(batch, 0.0)
        assert turns > 1, "no database is asked here: only counting that yields lets others run"
    assert 600 == told.of("fires", {"policy": "coalesce"})
    assert 0 < told.of("fires.coalesced", {"policy": "coalesce"}) <= 2 * 600


async def test_a_fire_that_was_expected_next_is_not_looked_into(
    dsn: str, connection: Session, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "_passed_by", lambda *_: pytest.fail("it costs as much as evaluating it"))
    await write_row(connection, last_enqueued_at=T)
    async with a_node(dsn, connection) as node:
        await node.evaluate(T)  # works out the next fire
        await node.evaluate(NOW)
    assert 1 == told.of("fires", {"policy": "coalesce"})


async def test_a_lost_race_is_no_fire(connection: Session, told: Told) -> None:
    await write_row(connection, last_enqueued_at=T)
    assert await enqueue_next(connection)
    assert not await enqueue_next(connection)
    assert 1 == told.of("fires", {"policy": "coalesce"})
    assert 1 == told.of("races.lost")
    assert FIRE < NOW


async def test_passes_are_timed_and_those_that_fail_say_why(dsn: str, connection: Session, told: Told) -> None:
    async with a_node(dsn, connection) as node:
        await node.evaluate(NOW)
        await connection.execute("ALTER TABLE awa.cron_jobs RENAME TO gone")
        with pytest.raises(DatabaseError):
            await node.evaluate(NOW)
    assert 1 == told.of("evaluation.duration", {"pass": "all"})[0]
    failed = [
        value for (name, attributes), value in told.now().items() if ("error.type", "DatabaseError") in attributes
    ]
    assert [1] == [count for count, _ in failed]


async def test_the_lead_is_taken_and_lost(dsn: str, told: Told) -> None:
    async with Database(dsn, Schema(), HASTY, pool_size=2) as database:
        first, second = Leader(database, "first"), Leader(database, "second")
        assert await first.acquire()
        assert not await second.acquire()
        await first.step_down()
        assert await second.acquire()
        second.abandon()
        second.abandon()
    assert 2 == told.of("leader.changes", {"change": "acquired"})
    assert 2 == told.of("leader.changes", {"change": "lost"})


async def test_jobs_are_timed_and_counted_by_what_became_of_them(dsn: str, connection: Session, told: Told) -> None:
    async def handler(job: awa_cron.Job) -> object:
        with trace.get_tracer("the application").start_as_current_span("inner"):
            match job.args["do"]:
                case "fail":
                    raise ValueError("no")
                case "snooze":
                    return awa_cron.Snooze(3600)
                case _:
                    return None

    async with a_worker(dsn, handler):
        for do, state in (("succeed", "completed"), ("fail", "failed"), ("snooze", "scheduled")):
            job_id = await insert_job(connection, args=f'{{"do": "{do}"}}', queue="q", max_attempts=2, attempt=1)
            await reaches(connection, job_id, state)
    for outcome in ("completed", "failed", "snooze"):
        assert 1 == told.of("job.duration", {"queue": "q", "kind": "work", "outcome": outcome})[0], outcome
    for state in ("completed", "failed", "scheduled"):
        assert 1 == told.of("jobs", {"queue": "q", "kind": "work", "state": state}), state
    outer, inner = told.spans("job work"), told.spans("inner")
    assert {each.context.span_id for each in outer if each.context} == {
        each.parent.span_id for each in inner if each.parent
    }
    (failed,) = [each for each in outer if (each.attributes or {})["awa_cron.outcome"] == "failed"]
    assert trace.StatusCode.ERROR is failed.status.status_code


async def test_the_leader_tells_how_deep_the_queues_are_and_nobody_else(
    dsn: str, connection: Session, told: Told
) -> None:
    for queue, state in (("a", "available"), ("a", "available"), ("a", "failed"), ("b", "completed")):
        await insert_job(connection, queue=queue, state=state)

    def depth(queue: str, state: str) -> Any:
        attributes = frozenset({"awa_cron.queue": queue, "awa_cron.state": state}.items())
        return told.now().get(("awa_cron.queue.jobs", attributes))

    assert depth("a", "available") is None
    async with (
        Database(dsn, Schema(), HASTY, pool_size=3) as database,
        running(Scheduler(database, tuple, "leader").run()),
    ):
        await wait_until(lambda: depth("a", "available") == 2, "the leader tells")
        assert 1 == depth("a", "failed")
        assert depth("b", "completed") is None
    assert depth("a", "available") is None, "who does not lead tells nothing"


def test_without_opentelemetry_nothing_is_wrapped_and_all_works(dsn: str) -> None:
    program = f"""
import asyncio, sys
sys.modules["opentelemetry"] = None
import awa_cron
from awa_cron import actions, attempt, scheduler, telemetry
assert not telemetry.ENABLED
for each in (actions.atomic_enqueue, actions.read_cron_state, scheduler.Scheduler.evaluate, attempt.Attempt._call):
    assert not hasattr(each, "__wrapped__"), each

client = awa_cron.Client({dsn!r})
client.periodic("s", "* * * * * *", kind="work")
done = asyncio.Event()

@client.task("work")
async def work(job):
    done.set()

async def main():
    async with client, asyncio.timeout(20):
        run = asyncio.create_task(client.run_forever())
        await done.wait()
        print("done", flush=True)

asyncio.run(main())
"""
    finished = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=commands.environment(),
    )
    assert "done\n" == finished.stdout, finished.stderr
