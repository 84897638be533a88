"""The verdict on a real database: the log, the rows and the jobs agree, and where they do not, it says so. P35."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from awa_cron import Client, InvalidArgument, ScheduleNotFound, Settings
from awa_cron.database import Database
from awa_cron.sql import Schema
from awa_cron.verify import verify
from tests.integration import commands
from tests.integration.lives import checked, lived
from tests.integration.support import (
    FIRE,
    HASTY,
    Session,
    T,
    a_leader,
    a_node,
    events_of,
    running,
    schedule,
    sync,
    wait_until,
    write_row,
)

SCHEMA = Schema()


async def test_the_event_of_an_enqueue_tells_the_clock_of_its_read(dsn: str, connection: Session) -> None:
    async with a_node(dsn, connection) as node:
        await node.sync(T, schedule())
        await node.evaluate(FIRE + timedelta(seconds=2))
    [event] = await events_of(connection, action="atomic_enqueue")
    assert {"expected": None, "read_at": "2026-01-01T11:00:02+00:00"} == event["details"]


async def test_an_eventful_day_is_a_behaviour_of_the_spec(dsn: str, connection: Session) -> None:
    end = await lived(dsn, connection)
    verdict = await checked(dsn, end, grace_s=4000, jobs_kept=True)
    assert ((), True) == (verdict.findings, verdict.balances)
    c, k = verdict.accounts
    made = await connection.fetchval("SELECT count(*) FROM awa.jobs WHERE metadata ? 'cron_fire_time'")
    assert made == c.enqueued + c.settled + k.enqueued + k.settled
    # c: 11, then 14 for three, then 18 for two of a pause and one; 19 is settled; 19:30 and 20:30 go with the row
    assert (4, 1, 3, 2) == (c.enqueued, c.settled, c.coalesced, c.paused)
    assert (0, 1, 1) == (c.dropped, c.removed, c.triggered)
    # k: 11 to 14, paused for 15 to 19; its new definition coalesces at 20:00 what came since 19:06
    assert (5, 5, 2, 3) == (k.enqueued, k.dropped, k.coalesced, k.pending)
    late = await checked(dsn, end, grace_s=60)
    [finding] = late.findings
    assert ("CoalescedLatestFireEventuallyEnqueued", "k") == (finding.rule, finding.schedule)
    assert finding.message.endswith("; nobody leads")
    async with a_leader(dsn, "the leader") as leader:
        assert await leader.acquire()
        [finding] = (await checked(dsn, end, grace_s=60)).findings
        assert "; the leader leads since 20" in finding.message


HAND = """
INSERT INTO awa.jobs (kind, metadata) VALUES ('work', '{{"cron_name": "c", "{}": "2026-01-01T15:00:00Z"}}')
"""
AGAIN = """
INSERT INTO awa.jobs (kind, metadata)
SELECT kind, metadata FROM awa.jobs WHERE metadata ? 'cron_fire_time' ORDER BY id LIMIT 1
"""
RELABELLED = """
UPDATE awa.jobs SET metadata = metadata || '{"cron_fire_time": "2026-01-01T11:30:00Z"}' WHERE id = 1
"""
ROW = "INSERT INTO awa.cron_jobs (name, cron_expr, kind, anchored_at) VALUES ('x', '@daily', 'w', '2030-01-01Z')"


@pytest.mark.parametrize(
    ("damage", "rule"),
    [
        (HAND.format("cron_fire_time"), "MarkIffJob"),
        (HAND.format("cron_triggered_at"), "TriggerLeavesSchedule"),
        (AGAIN, "NoDuplicateFire"),
        ("DELETE FROM awa.jobs WHERE id = 1", "RemoveLeavesJobs"),
        ('UPDATE awa.jobs SET metadata = metadata || \'{"cron_name": "x"}\' WHERE id = 1', "MarkIffJob"),
        ("DELETE FROM awa.cron_events WHERE id = 3", "LastAsRead"),
        ("UPDATE awa.cron_events SET job_ids = '{2}' WHERE id = 3", "NoDuplicateFire"),
        ("UPDATE awa.cron_jobs SET last_enqueued_at = last_enqueued_at - interval '20 min'", "RowAsLogged"),
        ("UPDATE awa.cron_jobs SET paused_at = now() WHERE name = 'k'", "RowAsLogged"),
        ("DELETE FROM awa.cron_jobs WHERE name = 'k'", "RowAsLogged"),
        (ROW, "RowAsLogged"),
        ("UPDATE awa.cron_jobs SET next_fire_at = 'infinity'", "NextNeverLate"),
        ("UPDATE awa.cron_jobs SET next_fire_at = '2026-02-01Z' WHERE name = 'k'", "NextNeverLate"),
        (RELABELLED, "MarkIffJob"),
        *(
            (f"UPDATE awa.cron_events SET {values} WHERE id = 3", "Readable")
            for values in (
                "fires = '{infinity}'",
                "fires = '{NULL}'",
                "fires = ARRAY[fires, fires]",
                "clock = '-infinity'",
                "recorded_at = 'infinity'",
                "last_enqueued_at = 'infinity'",
                "details = '[]'",
                "job_ids = '{NULL}'",
                """details = details || '{"dropped": [1]}'""",
                """details = details || '{"anchored_at": 3}'""",
                """details = details || '{"cron_expr": [7]}'""",
                """details = details || '{"missed_fire_policy": [7]}'""",
                """details = details || '{"from": 7}'""",
                """details = details || '{"expected": [7]}'""",
            )
        ),
    ],
)
async def test_damage_is_found(dsn: str, connection: Session, damage: str, rule: str) -> None:
    end = await lived(dsn, connection)
    await connection.execute(damage)
    verdict = await checked(dsn, end, grace_s=4000, jobs_kept=True)
    assert rule in [finding.rule for finding in verdict.findings], verdict.findings
    assert not verdict.balances


async def test_what_retention_has_deleted_is_no_finding(dsn: str, connection: Session) -> None:
    end = await lived(dsn, connection)
    events = await connection.fetchval("SELECT max(id) FROM awa.cron_events")
    for event in range(1, events):
        await connection.execute("DELETE FROM awa.cron_events WHERE id <= $1 AND action <> 'remove'", event)
        verdict = await checked(dsn, end, grace_s=4000)
        assert (False, ()) == (verdict.from_start, verdict.findings), event
    await connection.execute("DELETE FROM awa.jobs WHERE id < 5")
    assert await connection.fetchval("SELECT count(*) FROM awa.cron_events") > 1
    assert (await checked(dsn, end, grace_s=4000)).balances


async def test_a_verdict_since_a_time_takes_the_state_from_before(dsn: str, connection: Session) -> None:
    end = await lived(dsn, connection)
    times = await connection.fetch("SELECT id, recorded_at FROM awa.cron_events ORDER BY id")
    for row in times:
        verdict = await checked(dsn, end, grace_s=4000, since=row["recorded_at"], jobs_kept=True)
        assert ((), len(times) - row["id"] + 1, False) == (verdict.findings, verdict.events, verdict.from_start)
    await connection.execute("UPDATE awa.cron_jobs SET anchored_at = anchored_at - interval '1 hour'")
    verdict = await checked(dsn, end, grace_s=40000, since=times[-1]["recorded_at"] + timedelta(seconds=1))
    assert ["RowAsLogged", "RowAsLogged"] == [finding.rule for finding in verdict.findings]


async def test_one_schedule_alone(dsn: str, connection: Session) -> None:
    end = await lived(dsn, connection)
    verdict = await checked(dsn, end, grace_s=4000, jobs_kept=True, name="k")
    assert (["k"], ()) == ([account.name for account in verdict.accounts], verdict.findings)
    with pytest.raises(ScheduleNotFound):
        await checked(dsn, end, name="x")
    with pytest.raises(InvalidArgument, match="grace_s"):
        await checked(dsn, end, grace_s=-1)


async def test_an_unreadable_row_and_infinite_instants_stop_nothing(dsn: str, connection: Session) -> None:
    await write_row(connection, "broken", "61 * * * *")
    await write_row(connection, "endless", last_enqueued_at=datetime.max.replace(tzinfo=UTC))
    await sync(connection, T, schedule("broken"), schedule("fine"))
    await connection.execute("UPDATE awa.cron_jobs SET anchored_at = 'infinity' WHERE name = 'fine'")
    await sync(connection, FIRE, schedule("fine", "@daily"))
    verdict = await checked(dsn, FIRE, grace_s=4000)
    assert {"broken", "endless", "fine"} == {finding.schedule for finding in verdict.findings}


async def test_a_role_that_may_only_read_can_verify(dsn: str, connection: Session) -> None:
    end = await lived(dsn, connection)
    await connection.execute(
        "DROP ROLE IF EXISTS auditor; CREATE ROLE auditor LOGIN; GRANT USAGE ON SCHEMA awa TO auditor;"
        "GRANT SELECT ON ALL TABLES IN SCHEMA awa TO auditor"
    )
    try:
        async with Database(dsn, SCHEMA, Settings()) as database:
            ours = database.dedicated
            as_auditor = lambda purpose, **session: ours(purpose, role="auditor", **session)  # noqa: E731
            database.dedicated = as_auditor  # type: ignore[method-assign]
            verdict = await verify(database, grace_s=4000, clock=end)
        assert verdict.balances
    finally:
        await connection.execute("DROP OWNED BY auditor; DROP ROLE auditor")


async def test_a_real_run_is_a_behaviour_of_the_spec(dsn: str, connection: Session) -> None:
    async def run() -> None:
        client = Client(dsn, settings=HASTY)
        client.periodic("c", "* * * * * *", kind="work")
        client.periodic("k", "*/2 * * * * *", kind="work", missed_fire_policy="catch_up")
        client.task("work")(lambda _: None)
        async with client:
            await client.run_forever()

    async with running(run()), running(run()):
        await wait_until(lambda: connection.fetchval("SELECT count(*) > 6 FROM awa.jobs"), "jobs are made")
        verdict = await checked(dsn, None, grace_s=10, jobs_kept=True)
    assert () == verdict.findings
    assert sum(account.enqueued for account in verdict.accounts) >= 7


class TestCommand:
    async def test_it_prints_the_accounts(self, dsn: str, connection: Session) -> None:
        await lived(dsn, connection)
        await connection.execute("DELETE FROM awa.cron_jobs WHERE name = 'c'")
        found = await asyncio.to_thread(commands.run, "verify", "--dsn", dsn, "--grace", "1e12")
        assert found.returncode == 1, found.stderr
        assert "c: RowAsLogged: there is no row, but the log has one" in found.stdout
        as_json = await asyncio.to_thread(commands.run, "verify", "--dsn", dsn, "--grace", "1e9", "--json")
        told = json.loads(as_json.stdout)
        assert (1, 1, ["c", "k"]) == (
            as_json.returncode,
            told["findings_total"],
            [account["name"] for account in told["accounts"]],
        )

    async def test_a_clean_database_is_a_behaviour_of_the_spec(self, dsn: str, connection: Session) -> None:
        await lived(dsn, connection)
        found = await asyncio.to_thread(commands.run, "verify", "--dsn", dsn, "--grace", "1e9", "--schedule", "k")
        assert (0, "") == (found.returncode, found.stderr), found.stdout
        assert found.stdout.splitlines()[-1].endswith(
            "a behaviour of the spec, and every due instant is accounted for"
        )

    async def test_wrong_use_is_told_apart(self, dsn: str) -> None:
        for arguments, status in (
            (("--since", "yesterday"), 2),
            (("--grace", "-1"), 2),
            (("--schedule", "x"), 3),
            (("--schema", "elsewhere"), 4),
            ((), 0),
        ):
            found = await asyncio.to_thread(commands.run, "verify", "--dsn", dsn, *arguments)
            assert status == found.returncode, (arguments, found.stderr)
