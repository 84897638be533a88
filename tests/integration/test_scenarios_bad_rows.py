"""Bad rows and slow rows beside good ones, on a running leader: the good ones stay on time."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

import awa_cron
from awa_cron import actions, quarantine
from faults import bad_rows
from faults.bad_rows import BAD, Lateness
from tests.integration.support import (
    HASTY,
    Session,
    a_node,
    a_session,
    at,
    events_of,
    every,
    fires_in,
    fires_of,
    row_of,
    running,
    wait_until,
    write_row,
)

GOOD = [f"good_{i}" for i in range(20)]


async def lateness(session: Session, names: list[str], start: datetime, end: datetime) -> Lateness:
    rows = await session.fetch(bad_rows.LATENESS, names, start, end)
    return Lateness.of([row["late_s"] for row in rows])


async def write_bad(session: Session) -> None:
    for name in BAD:
        await session.execute(bad_rows.INSERT, name)
        await session.execute(bad_rows.spoil(name), name)


async def test_p36_good_rows_stay_on_time_beside_bad_and_held_ones(
    dsn: str, connection: Session, caplog: pytest.LogCaptureFixture
) -> None:
    client = awa_cron.Client(dsn)
    for name in GOOD:
        client.periodic(name, "* * * * * *", kind="work", missed_fire_policy="catch_up")
    client.periodic("held", "* * * * * *", kind="work", missed_fire_policy="catch_up")
    async with client, running(client.run_forever(work=False)), a_session(dsn) as outsider:
        await wait_until(lambda: client.leading, "leads")
        await wait_until(lambda: fires_of(connection, GOOD[-1]), "fires")
        await write_bad(connection)
        await outsider.execute("BEGIN")
        await outsider.execute("SELECT 1 FROM awa.cron_jobs WHERE name = 'held' FOR UPDATE")
        start = await connection.fetchval("SELECT clock_timestamp()")
        await asyncio.sleep(4)
        end = await connection.fetchval("SELECT date_trunc('second', clock_timestamp())")
        good = await lateness(connection, GOOD, start, end)
        held = await lateness(connection, ["held"], start, end)
        shown = {each.name: each.broken for each in await client.list_schedules() if each.broken}
        await outsider.execute("COMMIT")
        await wait_until(lambda: fires_in(connection), "goes on")

        async def caught_up() -> bool:
            return bool((await row_of(connection, "held"))["last_enqueued_at"] >= end)

        await wait_until(caught_up, "P36: the held one loses nothing")
    assert good.jobs >= 3 * len(GOOD), f"P36: the good ones fire each second: {good}"
    assert good.p99 < 1.5, f"P36: on time: {good}"
    assert held.jobs <= 1, "the row was really held"
    assert BAD.keys() == shown.keys(), "P36: operators see each of them"
    reports = Counter(record.schedule for record in caplog.records if "broken" in record.message)  # type: ignore[attr-defined]
    assert dict.fromkeys(BAD, 1) == reports, "P36: each is reported once, not in every pass"
    fires = (await fires_in(connection))["held"]
    assert sorted(set(fires)) == fires
    assert fires[-1] - fires[0] == (fires[1] - fires[0]) * (len(fires) - 1), "P17: none is skipped"


async def test_p36_a_refused_row_is_reported_again_when_the_reason_changes(
    dsn: str, connection: Session, caplog: pytest.LogCaptureFixture
) -> None:
    await write_bad(connection)
    async with awa_cron.Client(dsn, settings=HASTY) as client, running(client.run_forever(work=False)):

        def reasons() -> list[str]:
            records = [vars(record) for record in caplog.records if "broken" in record.message]
            return [each["reason"] for each in records if each["schedule"] == "refused_priority"]

        await wait_until(reasons, "P36: reported")
        await asyncio.sleep(1.5)
        await connection.execute(
            "UPDATE awa.cron_jobs SET priority = 2, queue = repeat('q', 300) WHERE name = 'refused_priority'"
        )
        await wait_until(lambda: len(reasons()) > 1, "P36: once per content")
        shown = (await client.get_schedule("refused_priority")).broken
        assert shown is not None
        assert "queue" in shown
        await connection.execute("UPDATE awa.cron_jobs SET queue = 'q' WHERE name = 'refused_priority'")
        await wait_until(lambda: events_of(connection, "refused_priority"), "P36: repaired, it fires")
        assert (await client.get_schedule("refused_priority")).broken is None
    assert 2 == len(reasons())


async def test_p36_many_refused_rows_are_found_once_and_then_take_turns(
    dsn: str, connection: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    many, now = 100, at("2026-01-01 12:00")
    for i in range(many):
        await write_row(connection, f"bad {i:03}", priority=9, last_enqueued_at=at("2026-01-01 11:00"))
    await write_row(connection, "good", last_enqueued_at=at("2026-01-01 11:00"))
    statements: list[int] = []
    enqueue = actions.atomic_enqueue

    async def counted(session: Any, schema: Any, batch: Any, **more: Any) -> Any:
        statements.append(len(batch))
        return await enqueue(session, schema, batch, **more)

    monkeypatch.setattr(actions, "atomic_enqueue", counted)
    async with a_node(dsn, connection) as node:

        async def cost() -> int:
            before = len(statements)
            await node.evaluate(now)
            return len(statements) - before

        assert many < await cost()
        assert every("2026-01-01 12:00") == await fires_of(connection, "good")
        passes = [await cost() for _ in range(5)]
        assert max(passes) <= 2 * quarantine.AT_ONCE, "the others are left alone"
        assert min(passes) >= quarantine.AT_ONCE, "some are tried"

        await connection.execute("UPDATE awa.cron_jobs SET priority = 2 WHERE name = 'bad 050'")
        for _ in range(many // quarantine.AT_ONCE):
            await cost()
        assert every("2026-01-01 12:00") == await fires_of(connection, "bad 050"), "each has its turn"

        await connection.execute("UPDATE awa.cron_jobs SET priority = 2")
        assert [1, 1, 1] == [await cost() for _ in range(3)], "twice as many each time"
        assert many + 1 == sum(map(len, (await fires_in(connection)).values())), "P36: repaired, they fire"
        assert 0 == await cost()


VETO = """
CREATE FUNCTION veto() RETURNS trigger LANGUAGE plpgsql AS $veto$
BEGIN
    IF NEW.metadata ->> 'cron_name' = 'vetoed' THEN RAISE EXCEPTION 'not this one'; END IF;
    RETURN NEW;
END
$veto$;
CREATE TRIGGER veto BEFORE INSERT ON awa.jobs FOR EACH ROW EXECUTE FUNCTION veto()
"""


async def test_p36_a_trigger_of_the_users_refuses_one_schedule_only(
    dsn: str, connection: Session, caplog: pytest.LogCaptureFixture
) -> None:
    await connection.execute(VETO)
    for name in ("good", "vetoed"):
        await connection.execute(bad_rows.INSERT, name)
    async with awa_cron.Client(dsn, settings=HASTY) as client, running(client.run_forever(work=False)):

        def reasons() -> list[str]:
            return [vars(record)["reason"] for record in caplog.records if "broken" in record.message]

        await wait_until(lambda: fires_of(connection, "good"), "P36: the other one fires")
        await wait_until(reasons, "P36: reported")
    assert [] == await fires_of(connection, "vetoed")
    (reason,) = reasons()
    assert "not this one" in reason


@pytest.mark.parametrize("name", BAD)
async def test_p36_what_is_shown_as_broken_is_what_cannot_fire(dsn: str, connection: Session, name: str) -> None:
    """Given a row that is bad in one way, when it is shown, then the reason names what is wrong."""
    await connection.execute(bad_rows.INSERT, name)
    async with awa_cron.Client(dsn) as client:
        assert (await client.get_schedule(name)).broken is None
        await connection.execute(bad_rows.spoil(name), name)
        broken = (await client.get_schedule(name)).broken
    assert broken is not None
    assert name in broken
    column, value = BAD[name].split(" = ", 1)
    assert column in broken or value.strip("'").split()[0] in broken
