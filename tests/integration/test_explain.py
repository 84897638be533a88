"""Why an instant did or did not become a job: one of each kind, on a real database."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from awa_cron import Client, Explanation, InvalidArgument, JobFate, Reason, ScheduleNotFound, actions
from awa_cron.sql import Schema
from tests.integration.support import (
    FIRE,
    NOW,
    Session,
    T,
    a_leader,
    a_node,
    at,
    claim,
    schedule,
    sync,
    write_row,
)

SCHEMA = Schema()
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


async def explained(dsn: str, instant: datetime, now: datetime | None = NOW, name: str = "s") -> Explanation:
    async with Client(dsn, clock=None if now is None else lambda: now) as operator:
        [found] = await operator.explain(name, instant)
    assert (name, instant) == (found.name, found.at)
    return found


async def one_pass(dsn: str, connection: Session, now: datetime, **settings: int) -> None:
    async with a_node(dsn, connection, **settings) as node:
        await node.evaluate(now)


async def actions_of(connection: Session, below: int) -> list[str]:
    found = await connection.fetch("SELECT action FROM awa.cron_events WHERE id < $1 ORDER BY id", below)
    return [row["action"] for row in found]


class TestWhatDidBecomeAJob:
    async def test_enqueued(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW)
        found = await explained(dsn, FIRE)
        assert (Reason.ENQUEUED, FIRE, 1, JobFate.WAITING) == (
            found.reason,
            found.fire,
            found.job_id,
            found.job_fate,
        )
        assert "it is job 1, made at 2026-01-01T11:00:01Z by node, 1 s after it was due" == found.sentence
        assert (T, FIRE + HOUR) == (found.previous_fire, found.next_fire)
        assert ("0 * * * *", "UTC", "2026-01-01T11:00:00+00:00") == (found.cron_expr, found.timezone, found.local)
        event = await connection.fetchval("SELECT id FROM awa.cron_events WHERE action = 'atomic_enqueue'")
        assert (event,) == found.events

    async def test_each_fire_of_a_catch_up_pass_has_its_own_job(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule(missed_fire_policy="catch_up"))
        for _ in range(2):
            await one_pass(dsn, connection, NOW + 4 * HOUR, pass_limit=2)
        for number in range(4):
            found = await explained(dsn, FIRE + number * HOUR, NOW + 5 * HOUR)
            assert (Reason.ENQUEUED, number + 1) == (found.reason, found.job_id)
        assert Reason.NO_LEADER is (await explained(dsn, FIRE + 4 * HOUR, NOW + 5 * HOUR)).reason

    async def test_settled_by_an_edit(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await sync(connection, NOW, schedule(cron_expr="30 * * * *"))
        found = await explained(dsn, FIRE, NOW + HOUR)
        assert (Reason.SETTLED, 1, "0 * * * *") == (found.reason, found.job_id, found.cron_expr)
        assert "t edited the schedule at 2026-01-01T11:00:01Z, and what was due" in found.sentence

    @pytest.mark.parametrize(
        ("change", "fate", "said"),
        [
            ("state = 'completed', attempt = 1, finalized_at = now()", JobFate.COMPLETED, "completed at"),
            ("state = 'running', attempt = 1, attempted_by = 'w'", JobFate.RUNNING, "runs, attempt 1 of 25, on w"),
            (
                "state = 'retryable', attempt = 2",
                JobFate.RETRYING,
                "has failed 2 of 25 attempts, and is tried again",
            ),
            ("state = 'failed', attempt = 25, finalized_at = now()", JobFate.DEAD, "all 25 attempts have failed"),
            ("state = 'cancelled', finalized_at = now()", JobFate.CANCELLED, "was cancelled at"),
            ("state = 'scheduled'", JobFate.WAITING, "waits in queue 'default'"),
            ("metadata = '{}'", JobFate.GONE, "is gone from the table, or has lost its label"),
        ],
    )
    async def test_it_says_what_has_become_of_the_job(
        self, dsn: str, connection: Session, change: str, fate: JobFate, said: str
    ) -> None:
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW)
        await connection.execute(f"UPDATE awa.jobs SET {change}")
        found = await explained(dsn, FIRE)
        assert (Reason.ENQUEUED, fate) == (found.reason, found.job_fate)
        assert said in found.notes[0]

    async def test_it_shows_the_last_error_of_the_job(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW)
        await claim(connection)
        error = json.dumps({"error": "ValueError: boom\nat line 3"})
        await connection.execute("UPDATE awa.jobs SET errors = ARRAY[$1::jsonb]", error)
        [note] = (await explained(dsn, FIRE)).notes
        assert note.endswith("; last error: ValueError: boom at line 3")

    async def test_a_paused_queue_keeps_the_job(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW)
        async with Client(dsn, clock=lambda: NOW) as operator:
            await operator.pause_queue("default", by="ops")
        found = await explained(dsn, FIRE)
        assert (Reason.ENQUEUED, JobFate.QUEUE_PAUSED) == (found.reason, found.job_fate)
        assert ("job 1 waits: queue 'default' is paused by ops since 2026-01-01T11:00:01Z",) == found.notes

    async def test_a_job_whose_event_is_deleted_is_known_by_its_label(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW)
        await connection.execute("DELETE FROM awa.cron_events")
        found = await explained(dsn, FIRE)
        assert (Reason.ENQUEUED, 1, ()) == (found.reason, found.job_id, found.events)
        assert found.sentence == "it is job 1; the event that made it is gone"


class TestWhatAnotherStandsFor:
    async def test_coalesced(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW + 3 * HOUR)
        for hours in range(3):
            found = await explained(dsn, FIRE + hours * HOUR, NOW + 4 * HOUR)
            assert (Reason.COALESCED, FIRE + 3 * HOUR, 1) == (found.reason, found.fire, found.job_id)
        assert (
            "2026-01-01T14:00:00Z, which is job 1, stands for it: both were due when node came to it at "
            "2026-01-01T14:00:01Z, and the policy is coalesce" == found.sentence
        )
        assert Reason.ENQUEUED is (await explained(dsn, FIRE + 3 * HOUR, NOW + 4 * HOUR)).reason

    async def test_coalesced_by_an_edit(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await sync(connection, NOW + HOUR, schedule(cron_expr="30 * * * *"))
        found = await explained(dsn, FIRE, NOW + HOUR)
        assert (Reason.COALESCED, FIRE + HOUR) == (found.reason, found.fire)
        assert "both were due when t edited the schedule at" in found.sentence

    async def test_paused_over_names_who_paused_and_from_when_to_when(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await actions.pause(connection, SCHEMA, "s", by="ann", clock=T + 30 * MINUTE)
        await actions.resume(connection, SCHEMA, "s", by="bob", clock=T + 130 * MINUTE)
        await one_pass(dsn, connection, NOW + 2 * HOUR)
        for instant in (FIRE, FIRE + HOUR):
            found = await explained(dsn, instant, NOW + 4 * HOUR)
            assert (Reason.PAUSED_OVER, FIRE + 2 * HOUR, 1) == (found.reason, found.fire, found.job_id)
        assert "paused by ann, from 2026-01-01T10:30:00Z to 2026-01-01T12:10:00Z" in found.sentence

    async def test_a_time_without_a_leader_is_told(self, dsn: str, connection: Session) -> None:
        await connection.execute(
            "INSERT INTO awa.cron_events (clock, action, actor) VALUES ($1, 'acquire_leader', 'old'),"
            " ($2, 'lose_leader', 'old')",
            T - HOUR,
            T,
        )
        await sync(connection, T, schedule())
        await connection.execute(
            "INSERT INTO awa.cron_events (clock, action, actor) VALUES ($1, 'acquire_leader', 'new')", NOW + HOUR
        )
        await one_pass(dsn, connection, NOW + HOUR + MINUTE)
        found = await explained(dsn, FIRE, NOW + 2 * HOUR)
        assert Reason.COALESCED is found.reason
        assert (
            "nobody led from 2026-01-01T10:00:00Z, when old stepped down, until 2026-01-01T12:00:01Z, when new was "
            "elected" == found.notes[-1]
        )

    async def test_a_leader_that_fell_silent_is_told_by_its_last_sign(self, dsn: str, connection: Session) -> None:
        await connection.execute(
            "INSERT INTO awa.cron_events (clock, action, actor) VALUES ($1, 'acquire_leader', 'node')", T - HOUR
        )
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW)
        await connection.execute(
            "INSERT INTO awa.cron_events (clock, action, actor) VALUES ($1, 'acquire_leader', 'new')",
            NOW + 2 * HOUR,
        )
        await one_pass(dsn, connection, NOW + 2 * HOUR + MINUTE)
        found = await explained(dsn, FIRE + HOUR, NOW + 3 * HOUR)
        assert (
            "node led before, and left no sign after 2026-01-01T11:00:01Z; nobody else did until" in found.notes[-1]
        )
        assert not any("led" in note for note in (await explained(dsn, FIRE, NOW + 3 * HOUR)).notes), "in time"


class TestWhatWasGivenUp:
    async def test_dropped_by_an_edit_during_a_pause(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await actions.pause(connection, SCHEMA, "s", clock=T)
        await sync(connection, NOW + HOUR, schedule(cron_expr="30 * * * *"))
        found = await explained(dsn, FIRE, NOW + 2 * HOUR)
        assert (Reason.DROPPED, None) == (found.reason, found.job_id)
        assert (
            "t edited the schedule at 2026-01-01T12:00:01Z, and 2 due instants of the old definition, from "
            "2026-01-01T11:00:00Z to 2026-01-01T12:00:00Z, became no jobs: it had been paused since "
            "2026-01-01T10:00:00Z" == found.sentence
        )

    async def test_dropped_by_an_edit_for_the_pass_limit(self, dsn: str, connection: Session) -> None:
        async with a_node(dsn, connection, pass_limit=2) as node:
            await node.sync(T, schedule(missed_fire_policy="catch_up"))
            await node.sync(NOW + 4 * HOUR, schedule(cron_expr="30 * * * *", missed_fire_policy="catch_up"))
        now = NOW + 5 * HOUR
        reasons = [(await explained(dsn, FIRE + hours * HOUR, now)).reason for hours in range(5)]
        assert [Reason.SETTLED] * 2 + [Reason.DROPPED] * 3 == reasons
        assert (await explained(dsn, FIRE + 3 * HOUR, now)).sentence.endswith(": a pass takes no more")

    async def test_removed_with_its_schedule(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await actions.remove(connection, SCHEMA, "s", by="ops", clock=NOW)
        found = await explained(dsn, FIRE, NOW + HOUR)
        assert Reason.REMOVED is found.reason
        assert "it was due and no job yet when ops removed the schedule at 2026-01-01T11:00:01Z" == found.sentence

    async def test_an_instant_that_a_stepped_back_clock_brings_again_is_explained_by_its_end(
        self, dsn: str, connection: Session
    ) -> None:
        await sync(connection, T, schedule())
        await actions.remove(connection, SCHEMA, "s", clock=NOW)
        await sync(connection, T + MINUTE, schedule())
        assert Reason.NO_LEADER is (await explained(dsn, FIRE)).reason
        await one_pass(dsn, connection, NOW)
        assert (Reason.ENQUEUED, 1) == ((found := await explained(dsn, FIRE)).reason, found.job_id)


class TestWhatWaits:
    async def test_paused_and_what_a_resume_will_do(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule("c"), schedule("k", missed_fire_policy="catch_up"))
        for name in ("c", "k"):
            await actions.pause(connection, SCHEMA, name, by="ops", clock=T)
        one = await explained(dsn, FIRE, name="c")
        assert (Reason.PAUSED, None) == (one.reason, one.job_id)
        assert "paused by ops since 2026-01-01T10:00:00Z: on resume, the latest due instant" in one.sentence
        assert "on resume, each due instant" in (await explained(dsn, FIRE, name="k")).sentence

    async def test_nobody_leads(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        found = await explained(dsn, FIRE)
        assert (Reason.NO_LEADER, "it has been due for 1 s, and nobody leads") == (found.reason, found.sentence)
        assert ("nobody has ever led",) == found.notes

    async def test_the_leader_has_not_come_to_it(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        async with a_leader(dsn) as leader:
            assert await leader.acquire()
            found = await explained(dsn, FIRE)
            assert (Reason.WAITING, ()) == (found.reason, found.notes)
            assert "it has been due for 1 s, and waits for the leader's next pass" == found.sentence
            stuck = await explained(dsn, FIRE, NOW + HOUR)
            assert "its log may say more" in stuck.notes[-1]

    async def test_a_broken_row(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await connection.execute("UPDATE awa.cron_jobs SET cron_expr = '61 * * * *'")
        found = await explained(dsn, FIRE)
        assert Reason.BROKEN is found.reason
        assert "minute '61'" in found.sentence
        assert Reason.BROKEN is (await explained(dsn, FIRE + 2 * HOUR)).reason, "nor what is to come"

    async def test_a_row_whose_jobs_are_refused(self, dsn: str, connection: Session) -> None:
        await write_row(connection, kind="k" * 201)
        assert "kind has 201 characters" in (await explained(dsn, FIRE)).sentence

    async def test_a_definition_that_could_not_be_read_at_that_time(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await connection.execute(
            """UPDATE awa.cron_events SET details = details || '{"cron_expr": "61 * * * *"}'"""
        )
        await connection.execute("UPDATE awa.cron_jobs SET last_enqueued_at = $1", FIRE)
        found = await explained(dsn, FIRE)
        assert (Reason.BROKEN, "'61 * * * *' in UTC") == (found.reason, found.sentence.split(", ")[1])

    async def test_infinite_instants_written_by_hand_stop_nothing(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await connection.execute("UPDATE awa.cron_jobs SET anchored_at = '-infinity'")
        assert Reason.BROKEN is (await explained(dsn, FIRE)).reason
        await connection.execute("UPDATE awa.cron_events SET clock = 'infinity'")
        assert (await explained(dsn, FIRE)).notes == (
            "an event of that time cannot be read; `awa-cron verify` names it",
        )


class TestWhatWasNeverDue:
    async def test_not_due_by_the_expression(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule(timezone="Asia/Kathmandu"))
        found = await explained(dsn, FIRE)
        assert (Reason.NOT_A_FIRE, "2026-01-01T16:45:00+05:45") == (found.reason, found.local)
        assert "'0 * * * *' in Asia/Kathmandu does not fire then" == found.sentence
        assert (at("2026-01-01 10:15"), at("2026-01-01 11:15")) == (found.previous_fire, found.next_fire)
        fraction = await explained(dsn, at("2026-01-01 10:15:00.5"))
        assert (Reason.NOT_A_FIRE, ("fires are of whole seconds",)) == (fraction.reason, fraction.notes)

    async def test_not_yet_due(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        found = await explained(dsn, FIRE + HOUR)
        assert (Reason.NOT_YET_DUE, "it is due in 59 min 59 s") == (found.reason, found.sentence)
        assert ("nobody leads now",) == found.notes
        await actions.pause(connection, SCHEMA, "s", by="ops", clock=NOW)
        assert "the schedule is paused by ops" in (await explained(dsn, FIRE + HOUR)).notes[0]
        assert Reason.NOT_A_FIRE is (await explained(dsn, FIRE + 61 * MINUTE)).reason

    async def test_before_it_was_registered(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        for instant in (T - HOUR, T):
            found = await explained(dsn, instant)
            assert Reason.BEFORE_ANCHOR is found.reason
        assert (
            "the schedule was registered at 2026-01-01T10:00:00Z by t, and only instants after "
            "2026-01-01T10:00:00Z count" == found.sentence
        )

    async def test_before_it_was_edited_to_fire_then(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule(cron_expr="30 * * * *"))
        await sync(connection, NOW, schedule())
        found = await explained(dsn, FIRE)
        assert (Reason.BEFORE_ANCHOR, "30 * * * *") == (found.reason, found.cron_expr)
        assert (
            "'0 * * * *' in UTC counts only after 2026-01-01T11:00:01Z, when the schedule was edited by t; until "
            "then it was '30 * * * *' in UTC, which does not fire then" == found.sentence
        )

    async def test_after_it_was_removed(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await actions.remove(connection, SCHEMA, "s", by="ops", clock=T + MINUTE)
        found = await explained(dsn, FIRE)
        assert Reason.NOT_REGISTERED is found.reason
        assert "the schedule had been removed at 2026-01-01T10:01:00Z by ops" == found.sentence
        assert Reason.NOT_REGISTERED is (await explained(dsn, FIRE + HOUR)).reason, "nor what is to come"
        await sync(connection, NOW, schedule())
        found = await explained(dsn, FIRE)
        assert found.sentence.endswith(" by ops, and was registered again at 2026-01-01T11:00:01Z")
        assert Reason.NOT_YET_DUE is (await explained(dsn, FIRE + HOUR)).reason


class TestWhatTheLogCannotTell:
    async def test_lost(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await connection.execute("UPDATE awa.cron_jobs SET last_enqueued_at = $1", FIRE + HOUR)
        found = await explained(dsn, FIRE, NOW + 2 * HOUR)
        assert Reason.UNACCOUNTED is found.reason
        assert "`awa-cron verify`" in found.sentence

    async def test_the_events_have_been_deleted(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW)
        await sync(connection, NOW + MINUTE, schedule(cron_expr="30 * * * *"))
        await sync(connection, NOW + 2 * MINUTE, schedule())
        await connection.execute("DELETE FROM awa.cron_events WHERE id < 4; DELETE FROM awa.jobs")
        await connection.execute("UPDATE awa.cron_jobs SET created_at = $1", T)
        assert Reason.UNKNOWN is (await explained(dsn, FIRE)).reason
        assert Reason.BEFORE_ANCHOR is (await explained(dsn, T - HOUR)).reason, "the row was made later"

    async def test_a_log_that_begins_with_passes_still_explains_them(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW)
        await one_pass(dsn, connection, NOW + 2 * HOUR)
        await connection.execute("DELETE FROM awa.cron_events WHERE id < 3")
        assert Reason.COALESCED is (await explained(dsn, FIRE + HOUR, NOW + 3 * HOUR)).reason
        assert Reason.ENQUEUED is (await explained(dsn, FIRE + 2 * HOUR, NOW + 3 * HOUR)).reason

    async def test_a_removal_that_is_kept_longer_than_other_events_misleads_nobody(
        self, dsn: str, connection: Session
    ) -> None:
        await sync(connection, T - 2 * HOUR, schedule(), schedule("gone"))
        for name in ("s", "gone"):
            await actions.remove(connection, SCHEMA, name, by="ops", clock=T - HOUR)
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW)
        await one_pass(dsn, connection, NOW + HOUR)
        await connection.execute("DELETE FROM awa.cron_events WHERE action <> 'remove' AND id < 7")
        assert ["remove", "remove"] == await actions_of(connection, 7)
        assert Reason.ENQUEUED is (await explained(dsn, FIRE)).reason
        assert Reason.NOT_A_FIRE is (await explained(dsn, FIRE + MINUTE)).reason, "the row tells the definition"
        assert Reason.NOT_REGISTERED is (await explained(dsn, FIRE, name="gone")).reason

    async def test_the_log_of_one_schedule_may_be_whole_where_the_log_is_not(
        self, dsn: str, connection: Session
    ) -> None:
        await sync(connection, T, schedule("older"))
        await sync(connection, T, schedule())
        await connection.execute("DELETE FROM awa.cron_events WHERE name = 'older'")
        await connection.execute("UPDATE awa.cron_jobs SET created_at = $1", T - 2 * HOUR)
        assert "registered at 2026-01-01T10:00:00Z by t" in (await explained(dsn, T - HOUR)).sentence

    async def test_a_row_that_was_written_by_hand_speaks_for_itself(self, dsn: str, connection: Session) -> None:
        await write_row(connection, anchored_at=T)
        assert Reason.BEFORE_ANCHOR is (await explained(dsn, T)).reason
        assert Reason.NO_LEADER is (await explained(dsn, FIRE)).reason
        await one_pass(dsn, connection, NOW)
        assert Reason.ENQUEUED is (await explained(dsn, FIRE)).reason


class TestWithoutAnInstant:
    async def test_the_latest_due_and_the_next_are_explained(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW)
        async with Client(dsn, clock=lambda: NOW) as operator:
            found = await operator.explain("s")
        assert [(FIRE, Reason.ENQUEUED), (FIRE + HOUR, Reason.NOT_YET_DUE)] == [(e.at, e.reason) for e in found]

    async def test_where_nobody_can_say_now_is_explained(self, dsn: str, connection: Session) -> None:
        await write_row(connection, "bad", "61 * * * *")
        await sync(connection, T, schedule())
        await actions.remove(connection, SCHEMA, "s", clock=T)
        async with Client(dsn, clock=lambda: NOW) as operator:
            assert [(NOW, Reason.BROKEN)] == [(e.at, e.reason) for e in await operator.explain("bad")]
            assert [(NOW, Reason.NOT_REGISTERED)] == [(e.at, e.reason) for e in await operator.explain("s")]

    async def test_wrong_use(self, dsn: str) -> None:
        async with Client(dsn) as operator:
            with pytest.raises(ScheduleNotFound):
                await operator.explain("nonesuch")
            with pytest.raises(InvalidArgument, match="no time zone"):
                await operator.explain("s", datetime(2026, 1, 1))  # noqa: DTZ001


class TestTheEndsOfTime:
    async def test_any_instant_of_eight_thousand_years_has_an_answer(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule(timezone="Pacific/Auckland"))
        for instant, reason in (
            (datetime(1000, 1, 1, tzinfo=UTC), Reason.BEFORE_ANCHOR),
            (datetime(9000, 12, 31, 23, 30, tzinfo=UTC), Reason.NOT_A_FIRE),
        ):
            assert reason is (await explained(dsn, instant)).reason
        for instant in (datetime(999, 12, 31, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
            with pytest.raises(InvalidArgument, match="in the years 1000 to 9000"):
                await explained(dsn, instant)

    async def test_ten_years_of_missed_minutes(self, dsn: str, connection: Session) -> None:
        start = datetime(2016, 1, 1, tzinfo=UTC)
        await sync(connection, start, schedule(cron_expr="* * * * *", missed_fire_policy="catch_up"))
        await one_pass(dsn, connection, NOW)
        assert Reason.ENQUEUED is (await explained(dsn, start + 100 * MINUTE)).reason
        assert Reason.NO_LEADER is (await explained(dsn, start + 101 * MINUTE)).reason


class TestWithoutATime:
    async def test_no_instant_before_the_anchor_is_named(self, dsn: str, connection: Session) -> None:
        await sync(connection, NOW, schedule())
        await actions.trigger(connection, SCHEMA, "s", clock=NOW)
        async with Client(dsn, clock=lambda: NOW + MINUTE) as operator:
            assert [(FIRE + HOUR, Reason.NOT_YET_DUE)] == [(e.at, e.reason) for e in await operator.explain("s")]

    async def test_the_last_fire_of_an_earlier_expression_is(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW)
        await sync(connection, NOW + MINUTE, schedule("s", "30 * * * *"))
        async with Client(dsn, clock=lambda: NOW + 2 * MINUTE) as operator:
            told = [(e.at, e.reason) for e in await operator.explain("s")]
        assert [(FIRE, Reason.ENQUEUED), (FIRE + 30 * MINUTE, Reason.NOT_YET_DUE)] == told


class TestAJobThatNobodyBegins:
    async def test_it_says_what_is_known_and_what_could_be(self, dsn: str, connection: Session) -> None:
        await sync(connection, T, schedule())
        await one_pass(dsn, connection, NOW)

        async def notes(now: datetime) -> str:
            return "; ".join((await explained(dsn, FIRE, now)).notes)

        assert "has begun" not in await notes(NOW + MINUTE / 2)
        nobody = await notes(NOW + HOUR)
        [which] = await connection.fetch("SELECT kind, queue FROM awa.jobs")
        alike = f"of kind '{which['kind']}' in queue '{which['queue']}'"
        assert f"no job {alike} has begun since, nor any other of the newest jobs: it needs a process" in nobody
        begun = "INSERT INTO awa.jobs (kind, queue, state, attempted_at) VALUES ($1, $2, 'completed', $3)"
        await connection.execute(begun, "other", which["queue"], NOW + MINUTE)
        await connection.execute(begun, which["kind"], which["queue"], T)
        assert f"no job {alike} has begun since, 1 other job did: it needs" in await notes(NOW + HOUR)
        await connection.execute(begun, which["kind"], which["queue"], NOW + MINUTE)
        assert f"1 other {alike} began since: it waits its turn" in await notes(NOW + HOUR)
        await connection.execute("UPDATE awa.jobs SET state = 'completed'")
        assert "since" not in await notes(NOW + HOUR)
