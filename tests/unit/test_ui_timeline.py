"""What the page's timeline says of past instants and of those to come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from awa_cron.model import Event, StoredSchedule
from awa_cron.ui.timeline import Mark, Timeline, timeline_of, together

NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01 {text}").replace(tzinfo=UTC)


def stored(**fields: Any) -> StoredSchedule:
    """A schedule each ten minutes whose last fire was at 12:00."""
    values: dict[str, Any] = {
        "name": "s",
        "cron_expr": "*/10 * * * *",
        "timezone": "UTC",
        "missed_fire_policy": "coalesce",
        "last_enqueued_at": at("12:00"),
        "anchored_at": NOW - 48 * HOUR,
        "paused_at": None,
        "broken": None,
        "paused_by": None,
        "kind": "work",
        "queue": "default",
        "queue_paused": False,
        "args": {},
        "priority": 2,
        "max_attempts": 25,
        "tags": (),
        "metadata": {},
        "deadline_s": None,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return StoredSchedule(**values | fields)


def event(action: str, clock: datetime, *fires: datetime) -> Event:
    return Event(
        id=1,
        recorded_at=clock,
        clock=clock,
        action=action,
        name="s",
        actor=None,
        fires=fires,
        job_ids=tuple(range(len(fires))),
        last_enqueued_at=None,
        details={},
    )


def enqueued(*texts: str) -> list[Event]:
    """Passes that enqueued one fire each, newest first."""
    return [event("atomic_enqueue", at(text) + timedelta(seconds=1), at(text)) for text in reversed(texts)]


def times(line: Timeline, mark: Mark) -> list[str]:
    return [f"{instant:%H:%M}" for instant in line.marks.get(mark, [])]


def test_jobs_what_they_stand_for_and_what_comes() -> None:
    line = timeline_of(stored(), enqueued("11:10", "11:20", "11:50", "12:00"), now=NOW, half=HOUR)
    assert ["11:10", "11:20", "11:50", "12:00"] == times(line, Mark.JOB)
    assert ["11:30", "11:40"] == times(line, Mark.COALESCED)
    assert ["12:10", "12:20", "12:30", "12:40", "12:50", "13:00"] == times(line, Mark.COMING)
    assert "4 jobs, 2 coalesced, 6 to come" == line.words
    assert [300] == [line.x(NOW)]
    assert 4 == len(line.columns(Mark.JOB))


def test_a_pause_that_is_over_and_what_it_swallowed() -> None:
    events = [*enqueued("12:00"), event("resume", at("11:45")), event("pause", at("11:15")), *enqueued("11:10")]
    line = timeline_of(stored(), events, now=NOW, half=HOUR)
    assert [(at("11:15"), at("11:45"))] == line.pauses
    assert ["11:20", "11:30", "11:40"] == times(line, Mark.PAUSED)
    assert ["11:50"] == times(line, Mark.COALESCED)
    assert [(72, 150)] == line.bands()


def test_a_pause_that_began_before_the_picture() -> None:
    line = timeline_of(stored(), [*enqueued("12:00"), event("resume", at("11:35"))], now=NOW, half=HOUR)
    assert [(NOW - HOUR, at("11:35"))] == line.pauses
    running = timeline_of(stored(), [event("resume", at("11:35")), *enqueued("11:10")], now=NOW, half=HOUR)
    assert [] == running.pauses, "it fired at 11:10, so nobody knows when that pause began"


def test_a_pause_that_goes_on_holds_what_is_due_and_what_comes() -> None:
    schedule = stored(paused_at=at("11:15"), last_enqueued_at=at("11:10"))
    line = timeline_of(schedule, [event("pause", at("11:15")), *enqueued("11:10")], now=NOW, half=HOUR)
    assert ["11:20", "11:30", "11:40", "11:50", "12:00"] == times(line, Mark.HELD)[:5]
    assert [] == times(line, Mark.COMING)
    assert [] == times(line, Mark.WAITING)
    assert [(at("11:15"), NOW + HOUR)] == line.pauses


def test_what_is_due_and_no_job_yet_waits_unless_it_fell_due_just_now() -> None:
    late = timeline_of(stored(last_enqueued_at=at("11:40")), enqueued("11:40"), now=NOW, half=HOUR)
    assert ["11:50", "12:00"] == times(late, Mark.WAITING)
    just_now = timeline_of(stored(last_enqueued_at=at("11:50")), enqueued("11:50"), now=at("12:00:04"), half=HOUR)
    assert [] == times(just_now, Mark.WAITING)


def test_an_instant_that_nothing_accounts_for_has_no_job() -> None:
    caught_up = stored(missed_fire_policy="catch_up")
    line = timeline_of(caught_up, enqueued("11:10", "11:20", "11:40", "11:50", "12:00"), now=NOW, half=HOUR)
    assert ["11:30"] == times(line, Mark.GONE)


def test_nothing_is_said_of_what_is_before_the_events_that_were_read() -> None:
    caught_up = stored(missed_fire_policy="catch_up")
    events = enqueued("11:40", "12:00")
    assert ["11:50"] == times(timeline_of(caught_up, events, now=NOW, half=HOUR, complete=False), Mark.GONE)
    assert "11:10" in times(timeline_of(caught_up, events, now=NOW, half=HOUR), Mark.GONE)


def test_nothing_counts_before_the_anchor_and_a_broken_row_has_no_instants() -> None:
    line = timeline_of(stored(anchored_at=at("11:55")), enqueued("12:00"), now=NOW, half=HOUR)
    assert [] == times(line, Mark.COALESCED)
    broken = timeline_of(stored(cron_expr="61 * * * *", broken="no"), enqueued("12:00"), now=NOW, half=HOUR)
    assert ["12:00"] == times(broken, Mark.JOB)
    assert [] == times(broken, Mark.COMING)
    assert "nothing happened and nothing comes" == timeline_of(stored(broken="no"), [], now=NOW, half=HOUR).words


def test_a_trigger_is_at_the_time_of_the_hand() -> None:
    line = timeline_of(stored(), [event("trigger", at("11:33"))], now=NOW, half=HOUR)
    assert ["11:33"] == times(line, Mark.TRIGGERED)


def test_fires_that_a_clock_change_moves_or_doubles_are_marked_and_told() -> None:
    spring = datetime(2026, 3, 28, 12, tzinfo=UTC)
    berlin = stored(
        cron_expr="30 2 * * *", timezone="Europe/Berlin", last_enqueued_at=None, anchored_at=spring - HOUR
    )
    line = timeline_of(berlin, [], now=spring, half=timedelta(days=3))
    assert [datetime(2026, 3, 29, 1, tzinfo=UTC)] == line.marks[Mark.ODD]
    assert "moved: 02:30:00 does not exist" in line.oddities[0]
    autumn = datetime(2026, 10, 25, 0, tzinfo=UTC)
    quarter = stored(
        cron_expr="*/30 * * * *", timezone="Europe/Berlin", last_enqueued_at=None, anchored_at=autumn - HOUR
    )
    line = timeline_of(quarter, [], now=autumn - HOUR, half=4 * HOUR)
    assert 4 == len(line.marks[Mark.ODD]), "two o'clock and half past two, each twice"
    quiet = timeline_of(stored(timezone="Europe/Berlin"), [], now=NOW, half=HOUR)
    assert Mark.ODD not in quiet.marks


def test_schedules_together_are_counted_by_column_and_each_instant_once() -> None:
    lines = [timeline_of(stored(), enqueued("11:50", "12:00"), now=NOW, half=HOUR) for _ in range(3)]
    columns = dict(together(lines, 12))
    assert 3 == columns[5][Mark.JOB]
    assert all(0 <= place < 12 for place in columns)
    total = sum(marks.total() for marks in columns.values())
    assert total == 3 * sum(len(found) for mark, found in lines[0].marks.items() if mark is not Mark.ODD)
