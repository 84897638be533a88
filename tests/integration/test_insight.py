"""How schedules, jobs and the leadership stand, and what a resume would do."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from awa_cron import Client, Condition, InvalidArgument, JobState, Oddity, ScheduleNotFound, Settings, actions
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
    enqueue_next,
    insert_job,
    write_row,
)

SCHEMA = Schema()
HOUR = timedelta(hours=1)


def client(dsn: str, now: datetime | None = NOW, **settings: int) -> Client:
    return Client(dsn, clock=None if now is None else lambda: now, settings=Settings(**settings))


class TestOverview:
    async def test_a_schedule_in_order_shows_its_last_and_next_fire(self, dsn: str, connection: Session) -> None:
        await write_row(connection, last_enqueued_at=FIRE)
        async with client(dsn) as operator:
            [view] = await operator.overview()
        assert ("s", Condition.ACTIVE, NOW) == (view.name, view.condition, view.now)
        assert (FIRE, FIRE + HOUR, None, 0.0) == (view.last_fire, view.next_fire, view.due_since, view.lateness_s)

    async def test_lateness_is_how_long_the_oldest_due_instant_has_waited(
        self, dsn: str, connection: Session
    ) -> None:
        await write_row(connection, last_enqueued_at=T)
        async with client(dsn, NOW + 2 * HOUR) as operator:
            [view] = await operator.overview(next_fires=2)
        assert (FIRE, 7201.0) == (view.due_since, view.lateness_s)
        assert [FIRE + 3 * HOUR, FIRE + 4 * HOUR] == [each.fire for each in view.next_fires]

    async def test_an_instant_that_is_just_due_counts_as_due(self, dsn: str, connection: Session) -> None:
        await write_row(connection, last_enqueued_at=T)
        async with client(dsn, FIRE) as operator:
            assert FIRE == (await operator.view("s")).due_since
        async with client(dsn, FIRE - timedelta(microseconds=1)) as operator:
            assert (await operator.view("s")).due_since is None

    async def test_a_paused_schedule_is_not_late_and_has_no_next_fire(self, dsn: str, connection: Session) -> None:
        await write_row(connection, last_enqueued_at=T, paused_at=T, paused_by="ops")
        async with client(dsn) as operator:
            view = await operator.view("s")
        assert (Condition.PAUSED, FIRE, 0.0) == (view.condition, view.due_since, view.lateness_s)
        assert ((), "ops") == (view.next_fires, view.schedule.paused_by)

    async def test_a_broken_row_stops_nothing_and_says_why(self, dsn: str, connection: Session) -> None:
        await write_row(connection, "bad", "61 * * * *", paused_at=T)
        await write_row(connection, "good")
        await write_row(connection, "refused", priority=2, kind="k" * 201)
        async with client(dsn) as operator:
            bad, good, refused = await operator.overview()
        assert [Condition.BROKEN, Condition.ACTIVE, Condition.BROKEN] == [
            each.condition for each in (bad, good, refused)
        ]
        assert "minute '61'" in str(bad.schedule.broken)
        assert "kind has 201 characters" in str(refused.schedule.broken)
        assert ((), None, 0.0) == (bad.next_fires, bad.due_since, bad.lateness_s)

    async def test_a_paused_queue_is_shown_with_who_and_since_when(self, dsn: str, connection: Session) -> None:
        await write_row(connection, queue="mail")
        async with client(dsn) as operator:
            await operator.pause_queue("mail", by="ops")
            view = await operator.view("s")
        assert (True, NOW, "ops") == (view.schedule.queue_paused, view.queue_paused_at, view.queue_paused_by)

    async def test_next_fires_carry_the_oddities_of_the_clock(self, dsn: str, connection: Session) -> None:
        start = at("2026-03-28 12:00")
        await write_row(connection, cron_expr="30 2 * * *", timezone="Europe/Berlin", anchored_at=start)
        async with client(dsn, start) as operator:
            view = await operator.view("s", next_fires=2)
        assert [Oddity.MOVED, None] == [each.oddity for each in view.next_fires]

    async def test_what_comes_before_the_anchor_is_no_fire_to_come(self, dsn: str, connection: Session) -> None:
        await write_row(connection, "late", anchored_at=FIRE + HOUR)
        await write_row(connection, "soon")
        async with client(dsn) as operator:
            late, soon = await operator.overview()
        assert (FIRE + 2 * HOUR, FIRE + HOUR) == (late.next_fire, soon.next_fire), "though they share a definition"
        assert (None, at("2001-01-01 01:00")) == (late.due_since, soon.due_since)

    async def test_the_clock_is_the_databases(self, dsn: str, connection: Session) -> None:
        await write_row(connection)
        async with client(dsn, None) as operator:
            [view] = await operator.overview()
        now = await connection.fetchval("SELECT clock_timestamp()")
        assert timedelta(0) < now - view.now < timedelta(seconds=10)

    async def test_what_cannot_be_asked_is_refused(self, dsn: str) -> None:
        async with client(dsn) as operator:
            with pytest.raises(ScheduleNotFound):
                await operator.view("nonesuch")
            with pytest.raises(InvalidArgument, match="next_fires is 0"):
                await operator.overview(next_fires=0)


class TestLeadership:
    async def test_nobody_leads(self, dsn: str) -> None:
        async with client(dsn) as operator:
            found = await operator.leadership()
        assert (False, None, None, None) == (found.leads, found.actor, found.backend_pid, found.since)
        assert (None, None) == (found.enqueued_at, found.note)

    async def test_the_leader_and_the_newest_sign_that_somebody_evaluates(
        self, dsn: str, connection: Session
    ) -> None:
        await write_row(connection, last_enqueued_at=T)
        async with a_leader(dsn, "old") as old:
            assert await old.acquire()
            await old.step_down()
        async with a_leader(dsn, "ann") as leader:
            assert await leader.acquire()
            pid = leader.backend_pid
            assert await enqueue_next(connection)
            assert await enqueue_next(connection, FIRE + HOUR, expected=FIRE, now=NOW + HOUR)
            async with client(dsn) as operator:
                found = await operator.leadership()
        assert (True, "ann", pid) == (found.leads, found.actor, found.backend_pid)
        event = await connection.fetchrow("SELECT * FROM awa.cron_events WHERE actor = 'ann'")
        enqueued = await connection.fetchrow("SELECT * FROM awa.cron_events ORDER BY id DESC LIMIT 1")
        assert event is not None
        assert enqueued is not None
        assert (event["recorded_at"], enqueued["recorded_at"], "t") == (
            found.since,
            found.enqueued_at,
            found.enqueued_by,
        )

    async def test_a_leader_whose_event_is_gone_is_still_one(self, dsn: str, connection: Session) -> None:
        async with a_leader(dsn, "ann") as leader:
            assert await leader.acquire()
            await connection.execute("DELETE FROM awa.cron_events")
            async with client(dsn) as operator:
                found = await operator.leadership()
            assert (True, None, "the event of its election is gone") == (found.leads, found.actor, found.note)
            assert leader.backend_pid == found.backend_pid

    async def test_the_lock_of_another_schema_or_database_is_not_ours(
        self, dsn: str, server_dsn: str, connection: Session
    ) -> None:
        elsewhere = await asyncpg.connect(server_dsn)
        try:
            await elsewhere.execute(f"SELECT pg_advisory_lock({SCHEMA.leader_lock_key})")
            await connection.execute(f"SELECT pg_advisory_lock({Schema('other').leader_lock_key})")
            async with client(dsn) as operator:
                assert (await operator.leadership()).leads is False
        finally:
            elsewhere.terminate()

    async def test_without_rights_it_says_what_cannot_be_seen(self, dsn: str, connection: Session) -> None:
        role = f"awa_blind_{os.getpid()}"
        await connection.execute(
            f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA awa TO {role}; "
            f"GRANT SELECT ON awa.cron_migrations TO {role}"
        )
        try:
            async with (
                a_leader(dsn, "ann") as leader,
                client(f"{dsn}{'&' if '?' in dsn else '?'}role={role}") as blind,
            ):
                assert await leader.acquire()
                found = await blind.leadership()
                assert (True, leader.backend_pid, None) == (found.leads, found.backend_pid, found.actor)
                assert "this role may not read the event log" == found.note
                await connection.execute("REVOKE SELECT ON pg_locks FROM PUBLIC")
                found = await blind.leadership()
                assert (None, None) == (found.leads, found.backend_pid)
                assert str(found.note).startswith("this role may not see locks (pg_locks); ")
        finally:
            await connection.execute("GRANT SELECT ON pg_locks TO PUBLIC")
            await connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


class TestPreviewOfAResume:
    async def test_coalesce_makes_one_job_of_the_latest(self, dsn: str, connection: Session) -> None:
        await write_row(connection, last_enqueued_at=T, paused_at=T)
        async with client(dsn, NOW + 4 * HOUR) as operator:
            told = await operator.preview_resume("s")
            assert (True, 5, True, 1, 1, 4) == (
                told.paused,
                told.due,
                told.counted_all,
                told.jobs,
                told.passes,
                told.coalesced,
            )
            assert (FIRE, FIRE + 4 * HOUR, (FIRE + 4 * HOUR,)) == (told.first, told.last, told.fires)
            assert (await operator.get_schedule("s")).paused_at == T

    async def test_catch_up_makes_all_in_passes_and_that_is_what_then_happens(
        self, dsn: str, connection: Session
    ) -> None:
        await write_row(connection, last_enqueued_at=T, paused_at=T, missed_fire_policy="catch_up")
        now = NOW + 4 * HOUR
        async with client(dsn, now, pass_limit=2) as operator, a_node(dsn, connection, pass_limit=2) as node:
            told = await operator.preview_resume("s")
            assert (5, 5, 3, 0, 2) == (told.due, told.jobs, told.passes, told.coalesced, told.pass_limit)
            await operator.resume("s")
            assert {"s": list(told.fires)} == await node.evaluate(now)
            later = await operator.preview_resume("s")
        assert (False, 3, 2) == (later.paused, later.jobs, later.passes)

    async def test_nothing_due(self, dsn: str, connection: Session) -> None:
        await write_row(connection, last_enqueued_at=FIRE, paused_at=T)
        async with client(dsn) as operator:
            told = await operator.preview_resume("s")
        assert (0, 0, 0, (), None, None) == (told.due, told.jobs, told.passes, told.fires, told.first, told.last)

    async def test_a_broken_row_promises_nothing(self, dsn: str, connection: Session) -> None:
        await write_row(connection, cron_expr="61 * * * *", paused_at=T)
        async with client(dsn) as operator:
            told = await operator.preview_resume("s")
            with pytest.raises(ScheduleNotFound):
                await operator.preview_resume("nonesuch")
        assert "minute '61'" in str(told.broken)
        assert (0, ()) == (told.due, told.fires)

    async def test_ten_years_of_minutes_are_counted_up_to_a_bound(self, dsn: str, connection: Session) -> None:
        start = datetime(2016, 1, 1, tzinfo=UTC)
        for name, policy in (("c", "coalesce"), ("k", "catch_up")):
            await write_row(
                connection, name, "* * * * *", anchored_at=start, paused_at=start, missed_fire_policy=policy
            )
        async with client(dsn) as operator:
            one, all_of_them = await operator.preview_resume("c"), await operator.preview_resume("k")
            assert len(await operator.overview()) == 2
        assert (10_000, False, 1, 9_999) == (one.due, one.counted_all, one.jobs, one.coalesced)
        assert (10_000, False, 100, 100) == (
            all_of_them.jobs,
            all_of_them.counted_all,
            all_of_them.passes,
            len(all_of_them.fires),
        )
        assert (FIRE,) == one.fires


class TestJobsOfASchedule:
    async def test_the_newest_come_first_with_what_became_of_them(self, dsn: str, connection: Session) -> None:
        await write_row(connection, last_enqueued_at=T)
        assert await enqueue_next(connection)
        triggered = await actions.trigger(connection, SCHEMA, "s", by="ops")
        assert triggered is not None
        await insert_job(connection, metadata='{"cron_name": "other"}')
        [job] = await claim(connection, limit=1)
        await connection.execute(
            "UPDATE awa.jobs SET state = 'retryable', errors = ARRAY['{\"error\": \"boom\"}'::jsonb] WHERE id = $1",
            job.id,
        )
        async with client(dsn) as operator:
            second, first = await operator.jobs_of("s")
            assert [second] == await operator.jobs_of("s", limit=1)
        assert (JobState.RETRYABLE, FIRE, False, 1) == (
            first.state,
            first.fire_time,
            first.triggered,
            first.attempt,
        )
        assert (({"error": "boom"},), "w") == (first.errors, first.attempted_by)
        assert (JobState.AVAILABLE, None, True) == (second.state, second.fire_time, second.triggered)

    async def test_a_removed_schedule_keeps_its_jobs_and_an_unknown_one_is_an_error(
        self, dsn: str, connection: Session
    ) -> None:
        await write_row(connection, last_enqueued_at=T)
        async with client(dsn) as operator:
            assert [] == await operator.jobs_of("s")
            await operator.trigger("s")
            await operator.remove("s")
            assert 1 == len(await operator.jobs_of("s"))
            with pytest.raises(ScheduleNotFound):
                await operator.jobs_of("nonesuch")
            with pytest.raises(InvalidArgument, match="limit is 0"):
                await operator.jobs_of("s", limit=0)

    async def test_a_label_written_by_hand_stops_nothing(self, dsn: str, connection: Session) -> None:
        for fire in ("soon", "2026-01-01", "2026-01-01T00:00:00Z"):
            await insert_job(connection, metadata=f'{{"cron_name": "s", "cron_fire_time": "{fire}"}}')
        async with client(dsn) as operator:
            found = await operator.jobs_of("s")
        assert [at("2026-01-01"), None, None] == [each.fire_time for each in found]
