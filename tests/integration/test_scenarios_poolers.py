"""Behind a real PgBouncer, where the machine has one. In transaction mode nobody may lead through it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import awa_cron
from awa_cron.errors import DatabaseError
from faults import pooler
from faults.pooler import a_pooler
from faults.server import Database
from tests.integration.support import (
    HASTY,
    Session,
    a_leader,
    each_second,
    events_of,
    fired,
    fires_of,
    running,
    wait_until,
)

pytestmark = pytest.mark.skipif(not pooler.installed(), reason=pooler.MISSING)

LOCKS = """
SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
WHERE l.locktype = 'advisory' AND a.datname = current_database()
"""
LEAKS = "SELECT count(*) FROM pg_stat_activity WHERE application_name IN ('awa_cron leader', 'awa_cron listener')"


def said(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.message == message]


async def test_p05_behind_a_transaction_pooler_nobody_leads(
    dsn: str, connection: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await each_second(connection)
    async with (
        a_pooler(Database(dsn), tmp_path) as pooled,
        awa_cron.Client(pooled, settings=HASTY) as client,
        running(client.run_forever(work=False)),
    ):
        await wait_until(lambda: said(caplog, "not leading"), "P05: the pooler is detected")
        await asyncio.sleep(2)
        assert not client.leading
        assert [] == await events_of(connection, None), "P05: it has never led"
        assert 0 == await connection.fetchval(LOCKS), "P05: no lock is left with a session that others use"
        assert 0 == await connection.fetchval(LEAKS), "no setting is left there either"
        (record,) = said(caplog, "not leading")
        assert "directly or in session mode" in record["reason"], "P05: once, with the remedy"
        async with awa_cron.Client(dsn, settings=HASTY) as heir, running(heir.run_forever(work=False)):
            await fired(connection, 1)
            assert (True, False) == (heir.leading, client.leading), "P05: it keeps nobody else from leading"
    fires = await fires_of(connection)
    assert sorted(set(fires)) == fires, "P10"


async def test_p05_a_busy_transaction_pooler_is_detected_each_time(
    dsn: str, connection: Session, tmp_path: Path
) -> None:
    async with a_pooler(Database(dsn), tmp_path) as pooled:

        async def refused() -> bool:
            async with a_leader(pooled) as leader:
                with pytest.raises(DatabaseError, match="transaction pooler"):
                    await leader.acquire()
            return True

        # Side by side, so that they take each other's server processes.
        assert [True] * 12 == await asyncio.gather(*(refused() for _ in range(12)))
        assert 0 == await connection.fetchval(LEAKS), "P05: before a session was opened to lead with"


async def test_p05_behind_a_session_pooler_it_leads(dsn: str, connection: Session, tmp_path: Path) -> None:
    await each_second(connection)
    async with (
        a_pooler(Database(dsn), tmp_path, mode="session") as pooled,
        awa_cron.Client(pooled, settings=HASTY) as client,
        running(client.run_forever(work=False)),
    ):
        await fired(connection, 1)
        assert client.leading
        (event,) = await events_of(connection, None)
        assert "acquire_leader" == event["action"]
