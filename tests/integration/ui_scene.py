"""A database that has something to show: two hours of a small company's schedules, with an outage in them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from tests.integration.support import Session, a_node, schedule

MINUTE = timedelta(minutes=1)
ERRORS = (
    {
        "error": "ConnectionRefusedError: smtp.example.net:25",
        "traceback": "Traceback …\nConnectionRefusedError: 25",
    },
    {"error": "TimeoutError: smtp.example.net did not answer"},
)

SCHEDULES = (
    schedule("daily_digest", "0 9 * * *", kind="send_digest", queue="email", timezone="Pacific/Auckland"),
    schedule("exchange_rates", "*/5 * * * *", kind="fetch_rates", tags=["finance"]),
    schedule("heartbeat", "* * * * *", kind="beat"),
    schedule("invoice_run", "*/15 * * * *", kind="invoices", queue="billing", timezone="Europe/Berlin"),
    schedule("nightly_backup", "30 2 * * *", kind="backup", queue="ops", timezone="Europe/London", max_attempts=3),
    schedule(
        "sync_crm", "*/2 * * * *", kind="sync_crm", queue="crm", missed_fire_policy="catch_up", args={"full": False}
    ),
    schedule("thumbnails", "*/10 * * * *", kind="thumbnails", queue="media"),
    schedule("weekly_report", "0 7 * * MON", kind="report", queue="email", timezone="America/New_York"),
)


async def play(dsn: str, session: Session) -> datetime:
    """Let two hours pass on a database, and return its time now."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    start = now - 120 * MINUTE
    async with a_node(dsn, session) as node:
        await node.sync(start, *SCHEDULES)
        for minute in range(1, 121):
            at = start + minute * MINUTE + timedelta(milliseconds=240)
            if minute == 80:
                await _set(session, "pause", "sync_crm", at)
            if not 62 <= minute < 71:  # nobody led
                await node.evaluate(at)
    await session.execute(
        """
        UPDATE awa.jobs SET
            state = 'completed', attempt = 1, attempted_by = 'web-1:4021:9f', attempted_at = run_at,
            finalized_at = run_at + (id % 7 + 1) * interval '130 milliseconds'
        WHERE run_at < $1
        """,
        now - MINUTE,
    )
    await session.execute(
        """
        UPDATE awa.jobs SET state = 'failed', attempt = max_attempts, errors = $1::jsonb[], finalized_at = run_at
        WHERE id IN (
            SELECT id FROM awa.jobs WHERE kind = 'invoices' ORDER BY id DESC OFFSET 1 LIMIT 2
        )
        """,
        [json.dumps(each) for each in ERRORS],
    )
    await session.execute("INSERT INTO awa.queue_meta VALUES ('media', $1, 'ana')", now - 12 * MINUTE)
    await session.execute(
        "INSERT INTO awa.cron_jobs (name, cron_expr, kind, anchored_at)"
        " VALUES ('old_import', '61 * * * *', 'import', $1)",
        start,
    )
    return now


async def _set(session: Session, action: str, name: str, at: datetime) -> None:
    from awa_cron import actions  # noqa: PLC0415
    from awa_cron.sql import Schema  # noqa: PLC0415

    assert await getattr(actions, action)(session, Schema(), name, by="ana", clock=at)
