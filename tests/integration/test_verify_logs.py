"""Logs as production has them: purged up to a point, with holes, while others write; and many findings. P35."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

from awa_cron import Settings, actions
from awa_cron.database import Database
from awa_cron.verify import verify
from tests.integration import commands
from tests.integration.lives import SCHEMA, checked, lived
from tests.integration.support import Session, T, a_leader, a_node, a_session, schedule, sync, write_row

HOUR = timedelta(hours=1)
AS_IT_HAPPENED = "UPDATE awa.cron_events SET recorded_at = clock"
PURGE = "DELETE FROM awa.cron_events WHERE id <= $1 AND action <> 'remove'"


async def test_removals_that_outlast_the_purge_of_what_was_around_them_are_no_finding(
    dsn: str, connection: Session
) -> None:
    end = await lived(dsn, connection)
    async with a_node(dsn, connection) as node:
        await node.evaluate(end + 2 * HOUR)
        await actions.pause(connection, SCHEMA, "c", clock=end + 3 * HOUR)
    events = await connection.fetch(
        "SELECT id, recorded_at FROM awa.cron_events WHERE action <> 'remove' ORDER BY id"
    )
    for event in events:
        await connection.execute(PURGE, event["id"])
        verdict = await checked(dsn, end + 3 * HOUR, grace_s=4000)
        assert (False, ()) == (verdict.from_start, verdict.findings), event["id"]
        for other in events[::6]:
            verdict = await checked(dsn, end + 3 * HOUR, grace_s=4000, since=other["recorded_at"])
            assert () == verdict.findings, (event["id"], other["id"])
    left = await connection.fetch("SELECT action FROM awa.cron_events")
    assert ["remove"] == [row["action"] for row in left]


async def test_a_floor_outlasts_the_purge_too(dsn: str, connection: Session) -> None:
    end = await lived(dsn, connection)
    async with a_node(dsn, connection) as node:
        await node.evaluate(end + 2 * HOUR)
    [enqueue] = await connection.fetch("SELECT max(id) AS id FROM awa.cron_events WHERE name = 'c'")
    await connection.execute(PURGE, enqueue["id"] - 1)
    await connection.execute(
        "UPDATE awa.cron_events SET last_enqueued_at = $1 WHERE action = 'remove'", end + 9 * HOUR
    )
    [finding] = (await checked(dsn, end + 2 * HOUR, grace_s=4000)).findings
    assert ("FiresAdvance", (enqueue["id"],)) == (finding.rule, finding.events)


async def test_a_log_whose_first_event_was_rolled_back_is_whole(dsn: str, connection: Session) -> None:
    rolled_back = connection.transaction(isolation="read_committed")
    await rolled_back.start()
    await sync(connection, T, schedule("never"))
    await rolled_back.rollback()
    end = await lived(dsn, connection)
    assert await connection.fetchval("SELECT min(id) FROM awa.cron_events") > 1
    verdict = await checked(dsn, end, grace_s=4000)
    assert ((), True) == (verdict.findings, verdict.from_start)
    await write_row(connection, "by hand", "@yearly")
    assert not (await checked(dsn, end, grace_s=4000)).from_start
    await connection.execute("DELETE FROM awa.cron_jobs WHERE name = 'by hand'")
    await connection.execute("DELETE FROM awa.cron_events WHERE id = (SELECT min(id) FROM awa.cron_events)")
    assert not (await checked(dsn, end, grace_s=4000)).from_start


async def test_what_was_purged_altogether_is_told_from_what_never_was(dsn: str, connection: Session) -> None:
    await write_row(connection, "by hand", anchored_at=T)
    verdict = await checked(dsn, T)
    assert (["RowAsLogged"], True) == ([each.rule for each in verdict.findings], verdict.from_start)
    await connection.execute("DELETE FROM awa.cron_jobs")
    end = await lived(dsn, connection)
    await connection.execute("DELETE FROM awa.cron_events")
    verdict = await checked(dsn, end, grace_s=4000)
    assert ((), 0, False) == (verdict.findings, verdict.events, verdict.from_start)


async def test_a_role_that_may_not_read_the_sequence_does_not_know_either(dsn: str, connection: Session) -> None:
    end = await lived(dsn, connection)
    await connection.execute("DELETE FROM awa.cron_events")
    await connection.execute(
        "DROP ROLE IF EXISTS inspector; CREATE ROLE inspector LOGIN; GRANT USAGE ON SCHEMA awa TO inspector;"
        "GRANT SELECT ON ALL TABLES IN SCHEMA awa TO inspector"
    )
    try:
        async with Database(dsn, SCHEMA, Settings()) as database:
            ours = database.dedicated
            as_inspector = lambda purpose, **session: ours(purpose, role="inspector", **session)  # noqa: E731
            database.dedicated = as_inspector  # type: ignore[method-assign]
            verdict = await verify(database, grace_s=4000, clock=end)
        assert ((), False) == (verdict.findings, verdict.from_start)
    finally:
        await connection.execute("DROP OWNED BY inspector; DROP ROLE inspector")


async def test_a_job_must_have_its_event_only_where_events_are_kept(dsn: str, connection: Session) -> None:
    end = await lived(dsn, connection)
    async with a_node(dsn, connection) as node:
        await node.evaluate(end + 2 * HOUR)
    await connection.execute(AS_IT_HAPPENED)
    for event in range(1, await connection.fetchval("SELECT max(id) FROM awa.cron_events")):
        await connection.execute(PURGE, event)
        assert () == (await checked(dsn, end + 2 * HOUR, grace_s=4000)).findings, event
    by_hand = """
        INSERT INTO awa.jobs (kind, metadata, created_at)
        VALUES ('work', '{"cron_name": "c", "cron_fire_time": "2026-01-01T15:00:00Z"}', $1)
    """
    oldest = await connection.fetchval("SELECT min(clock) FROM awa.cron_events WHERE action <> 'remove'")
    await connection.execute(by_hand, oldest + timedelta(minutes=59))
    assert () == (await checked(dsn, end + 2 * HOUR, grace_s=4000)).findings
    await connection.execute(by_hand, oldest + timedelta(minutes=61))
    findings = (await checked(dsn, end + 2 * HOUR, grace_s=4000)).findings
    assert {"MarkIffJob", "NoDuplicateFire"} == {each.rule for each in findings}


async def test_jobs_of_events_before_the_time_are_not_asked_for(dsn: str, connection: Session) -> None:
    end = await lived(dsn, connection)
    await connection.execute(AS_IT_HAPPENED)
    await connection.execute("DELETE FROM awa.jobs WHERE created_at < $1", T + 5 * HOUR)
    verdict = await checked(dsn, end, grace_s=4000, since=T + 5 * HOUR, jobs_kept=True)
    assert ((), 0) == (verdict.findings, verdict.jobs_deleted)
    verdict = await checked(dsn, end, grace_s=4000, since=T + 4 * HOUR, jobs_kept=True)
    assert {"RemoveLeavesJobs"} == {each.rule for each in verdict.findings}
    assert verdict.jobs_deleted == verdict.findings_total
    gone = verdict.jobs_deleted
    verdict = await checked(dsn, end, grace_s=4000, since=T + 4 * HOUR)
    assert ((), gone) == (verdict.findings, verdict.jobs_deleted)


async def test_a_definition_that_only_the_row_knows_is_learned_from_it(dsn: str, connection: Session) -> None:
    end = await lived(dsn, connection)
    async with a_node(dsn, connection) as node:
        await node.evaluate(end + 2 * HOUR)
    last = await connection.fetchval("SELECT max(id) FROM awa.cron_events")
    await connection.execute(PURGE, last - 2)
    strange = (
        "UPDATE awa.cron_events SET fires = ARRAY[fires[1] - interval '7 s'], last_enqueued_at = NULL WHERE id = $1"
    )
    await connection.execute(strange, last)
    assert "FiresFitDefinition" in [
        each.rule for each in (await checked(dsn, end + 2 * HOUR, grace_s=4000)).findings
    ]


async def test_what_others_have_not_committed_yet_is_not_missed(dsn: str, connection: Session) -> None:
    """Ids are given before commits: a lower one may come later, but never of the same schedule's row."""
    await sync(connection, T, schedule("a"), schedule("b"))
    async with a_session(dsn) as first, a_session(dsn) as second, a_node(dsn, connection) as node:
        await first.execute("BEGIN")
        await actions.trigger(first, SCHEMA, "a", clock=T + 0.5 * HOUR)
        await actions.pause(first, SCHEMA, "b", clock=T + 0.5 * HOUR)
        late = second.transaction(isolation="read_committed")
        await late.start()
        await sync(second, T + 0.6 * HOUR, schedule("c"))
        await node.evaluate(T + HOUR)
        before = await checked(dsn, T + HOUR, jobs_kept=True)
        await late.commit()
        between = await checked(dsn, T + HOUR, jobs_kept=True)
        await first.execute("COMMIT")
        after = await checked(dsn, T + HOUR, jobs_kept=True)
    assert [(), (), ()] == [before.findings, between.findings, after.findings]
    assert [3, 4, 6] == [before.events, between.events, after.events]
    order = await connection.fetch("SELECT action FROM awa.cron_events ORDER BY id")
    assert ["sync", "sync", "trigger", "pause", "sync", "atomic_enqueue"] == [row["action"] for row in order]


async def test_a_log_from_its_middle_on_does_not_take_a_late_commit_for_a_hole(
    dsn: str, connection: Session
) -> None:
    await sync(connection, T, schedule("a"))
    async with a_session(dsn) as first, a_node(dsn, connection) as node:
        await first.execute("BEGIN")
        await actions.trigger(first, SCHEMA, "a", clock=T + 0.5 * HOUR)
        await node.evaluate(T + HOUR)
        start = await connection.fetchval("SELECT max(recorded_at) FROM awa.cron_events")
        await first.execute("COMMIT")
        await node.evaluate(T + 2 * HOUR)
    verdict = await checked(dsn, T + 2 * HOUR, since=start, jobs_kept=True)
    assert ((), 2) == (verdict.findings, verdict.events)


async def test_events_are_taken_as_they_came_whatever_their_clocks_say(dsn: str, connection: Session) -> None:
    await sync(connection, T, schedule("a"))
    await actions.pause(connection, SCHEMA, "a", clock=T + 0.5 * HOUR)
    await actions.resume(connection, SCHEMA, "a", clock=T - HOUR)
    await actions.pause(connection, SCHEMA, "a", clock=T - 2 * HOUR)
    assert () == (await checked(dsn, T)).findings


MANY = """
INSERT INTO awa.jobs (kind, metadata)
SELECT 'work', jsonb_build_object('cron_name', 'k', 'cron_fire_time', '2026-01-01T00:00:00Z', 'number', n)
FROM generate_series(1, 1500) AS n
"""


async def test_what_is_alike_is_folded_and_hides_nothing_else(dsn: str, connection: Session) -> None:
    end = await lived(dsn, connection)
    await connection.execute(MANY)
    await connection.execute("DELETE FROM awa.jobs WHERE id < 5")
    verdict = await checked(dsn, end, grace_s=4000, jobs_kept=True)
    assert 4 + 1500 + 1 == verdict.findings_total
    gone = [each for each in verdict.findings if each.rule == "RemoveLeavesJobs"]
    assert 4 == sum(each.count for each in gone)
    [invented] = [each for each in verdict.findings if each.rule == "MarkIffJob"]
    [doubled] = [each for each in verdict.findings if each.rule == "NoDuplicateFire"]
    assert (1500, 20, "k", 1) == (invented.count, len(invented.jobs), invented.schedule, doubled.count)
    assert "; and 1,499 more like it, such as jobs " in invented.message
    text = await asyncio.to_thread(commands.run, "verify", "--dsn", dsn, "--grace", "1e9", "--jobs-kept")
    assert len(text.stdout.splitlines()) < 15
    assert "1,505 findings" in text.stdout
    assert "… and" not in text.stdout
    told = await asyncio.to_thread(commands.run, "verify", "--dsn", dsn, "--grace", "1e9", "--jobs-kept", "--json")
    as_json = json.loads(told.stdout)
    assert 1505 == as_json["findings_total"] == sum(each["count"] for each in as_json["findings"])


async def test_rows_without_a_name_stop_nothing(dsn: str, connection: Session) -> None:
    end = await lived(dsn, connection)
    nameless = '{"cron_name": null, "cron_fire_time": "2026-01-01T00:00:00Z"}'
    async with a_leader(dsn) as leader:
        assert await leader.acquire()
        for _ in range(2):
            await connection.execute("INSERT INTO awa.jobs (kind, metadata) VALUES ('work', $1::jsonb)", nameless)
            await connection.execute(
                "INSERT INTO awa.cron_events (clock, action, job_ids, details)"
                " VALUES (now(), 'acquire_leader', '{1000000}', '{\"backend_pid\": \"none\"}')"
            )
        assert () == (await checked(dsn, end, grace_s=4000, jobs_kept=True)).findings
