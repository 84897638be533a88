"""Roles of least privilege: each can do its part, and nothing else."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

import asyncpg
import pytest

import awa_cron
from awa_cron import actions, migrate, queue_actions, retention
from awa_cron.errors import DatabaseError, InvalidArgument
from awa_cron.queue_actions import Selection
from awa_cron.sql import Schema
from tests.integration import commands
from tests.integration.support import (
    Session,
    claim,
    enqueue,
    insert_job,
    reaches,
    running,
    schedule,
    sync,
    wait_until,
    write_row,
)
from tests.integration.ui_server import serving

SCHEMA = Schema()
PREFIX = f"awa_test_{os.getpid()}"
PARTS = ("evaluate", "work", "read", "purge")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Act: TypeAlias = Callable[[Session, Session], Awaitable[object]]
"""Something that the role does in the first session, to what the owner prepares in the second."""


@pytest.fixture
async def granted(connection: Session) -> AsyncIterator[None]:
    """The roles, each may log in."""
    await connection.execute(migrate.grants(SCHEMA, PREFIX))
    for part in PARTS:
        await connection.execute(f"ALTER ROLE {PREFIX}_{part} LOGIN")
    yield
    for part in PARTS:
        await connection.execute(f"DROP OWNED BY {PREFIX}_{part}; DROP ROLE {PREFIX}_{part}")


def as_role(dsn: str, part: str) -> str:
    """Return the connection string of a session that can never be more than the role."""
    return re.sub("//[^/@]*@", f"//{PREFIX}_{part}@", dsn, count=1)


@pytest.fixture
async def sessions(dsn: str, granted: None) -> AsyncIterator[dict[str, Session]]:
    opened = {}
    for part in PARTS:
        try:
            opened[part] = await asyncpg.connect(as_role(dsn, part))
        except asyncpg.InvalidPasswordError:
            pytest.skip("this server asks for passwords")
    yield opened
    for session in opened.values():
        session.terminate()


async def _sync(session: Session, owner: Session) -> None:
    assert (await sync(session, NOW, schedule("new"), schedule("s", "1 * * * *"))).outcomes


async def _enqueue(session: Session, owner: Session) -> None:
    assert await enqueue(session, NOW + timedelta(hours=1), None)


async def _claim(session: Session, owner: Session) -> None:
    assert await claim(session)


async def _outcomes(session: Session, owner: Session) -> None:
    await insert_job(owner, metadata='{"cron_name": "s"}')
    done, failed, snoozed, void, _ = await claim(owner, limit=5)
    assert (await queue_actions.finish(session, SCHEMA, [done], worker="w")).written
    assert (await queue_actions.fail(session, SCHEMA, [(failed, {}, 0)], worker="w")).written
    assert (await queue_actions.snooze(session, SCHEMA, [(snoozed, 0)], worker="w")).written
    assert (await queue_actions.cancel_own(session, SCHEMA, [(void, {})], worker="w")).written


async def _heartbeat(session: Session, owner: Session) -> None:
    (job,) = await claim(owner, limit=1)
    assert await queue_actions.heartbeat(session, SCHEMA, [(job.id, 1)], worker="w")


async def _rescue(session: Session, owner: Session) -> None:
    await claim(owner)
    later = datetime(2126, 1, 1, tzinfo=UTC)
    assert await queue_actions.rescue(session, SCHEMA, silent_for_s=1, clock=later)


def asks(query: str, *arguments: object) -> Act:
    return lambda session, _: session.fetch(SCHEMA.statement(f"queries/{query}"), *arguments)


def says(statement: str) -> Act:
    return lambda session, _: session.execute(statement)


ACTS: dict[str, Act] = {
    "acquire_leader": lambda session, _: actions.acquire_leader(session, SCHEMA, actor="t"),
    "read_cron_state": lambda session, _: actions.read_cron_state(session, SCHEMA),
    "sync": _sync,
    "enqueue": _enqueue,
    "trigger": lambda session, _: actions.trigger(session, SCHEMA, "s"),
    "pause": lambda session, _: actions.pause(session, SCHEMA, "s"),
    "resume": lambda session, _: actions.resume(session, SCHEMA, "s"),
    "remove": lambda session, _: actions.remove(session, SCHEMA, "s"),
    "claim": _claim,
    "outcomes": _outcomes,
    "heartbeat": _heartbeat,
    "rescue": _rescue,
    "pause_queue": lambda session, _: queue_actions.pause_queue(session, SCHEMA, "default"),
    "resume_queue": lambda session, _: queue_actions.resume_queue(session, SCHEMA, "default"),
    "cancel_jobs": lambda session, _: queue_actions.cancel_jobs(session, SCHEMA, "s"),
    "retry_dead": lambda session, _: queue_actions.retry_dead(session, SCHEMA, Selection()),
    "purge_dead": lambda session, _: queue_actions.purge_dead(session, SCHEMA, Selection()),
    "purge_finished": lambda session, _: queue_actions.purge_finished(session, SCHEMA, NOW),
    "purge_events": lambda session, _: retention.purge_events(session, SCHEMA, NOW),
    "see schedules": asks("schedules", None),
    "see queues": asks("queues"),
    "see dead": asks("dead", None, None, None, 10),
    "see history": asks("history", None, 10, None),
    "rewrite jobs": says("UPDATE awa.jobs SET args = '{}'"),
    "delete jobs": says("DELETE FROM awa.jobs"),
    "pause by hand": says("UPDATE awa.cron_jobs SET paused_at = now()"),
    "rename schedules": says("UPDATE awa.cron_jobs SET name = 'other'"),
    "rewrite history": says("UPDATE awa.cron_events SET actor = 'nobody'"),
    "forget history": says("DELETE FROM awa.cron_events"),
    "make a table": says("CREATE TABLE awa.more (id int)"),
}

CAN = {
    # A trigger needs no right that evaluating does not need.
    "evaluate": {"acquire_leader", "read_cron_state", "sync", "enqueue", "trigger", "see history"},
    "work": {"claim", "outcomes", "heartbeat", "rescue"},
    "read": {"read_cron_state", "see schedules", "see queues", "see dead", "see history"},
    # Whoever deletes jobs and events can do so by other statements, too; locks are free for all.
    "purge": {
        "acquire_leader",
        "purge_dead",
        "purge_finished",
        "purge_events",
        "see history",
        "delete jobs",
        "forget history",
    },
}


async def prepare(owner: Session) -> None:
    """Leave one schedule, four jobs that wait and one that is dead."""
    await owner.execute("DELETE FROM awa.jobs; DELETE FROM awa.cron_jobs; DELETE FROM awa.cron_events")
    await write_row(owner)
    for _ in range(4):
        await insert_job(owner, metadata='{"cron_name": "s"}')
    await insert_job(owner, state="failed", attempt=1, max_attempts=1)


async def test_each_role_can_do_its_part_and_nothing_else(
    connection: Session, sessions: dict[str, Session]
) -> None:
    for part, session in sessions.items():
        can: set[str] = set()
        for name, act in ACTS.items():
            await prepare(connection)
            try:
                await act(session, connection)
                can.add(name)
            except (DatabaseError, asyncpg.InsufficientPrivilegeError) as error:
                cause = error.__cause__ if isinstance(error, DatabaseError) else error
                if not isinstance(cause, asyncpg.InsufficientPrivilegeError):
                    raise
        assert CAN[part] == can, part


async def test_a_process_of_each_role_runs(dsn: str, connection: Session, sessions: dict[str, Session]) -> None:
    settings = awa_cron.Settings(evaluate_interval_s=0.2, election_interval_s=0.1, poll_interval_s=0.1)
    leader = awa_cron.Client(as_role(dsn, "evaluate"), settings=settings)
    leader.periodic("s", "* * * * * *", kind="work")
    worker = awa_cron.Client(as_role(dsn, "work"), settings=settings)
    worker.task("work")(lambda _job: None)
    async with leader, worker:
        async with running(leader.run_forever(work=False)), running(worker.run_forever(evaluate=False)):
            await wait_until(lambda: connection.fetchval("SELECT max(id) FROM awa.jobs"), "a fire")
            await reaches(connection, await connection.fetchval("SELECT min(id) FROM awa.jobs"), "completed")
        with pytest.raises(DatabaseError, match=r"lacks rights in schema 'awa': .*jobs UPDATE"):
            await awa_run(as_role(dsn, "evaluate"), work=True)
        with pytest.raises(DatabaseError, match="cron_jobs INSERT"):
            await worker.run_forever()
    keeps = awa_cron.Settings(keep_jobs_s=1, keep_events_s=1)
    async with awa_cron.Client(as_role(dsn, "evaluate"), settings=keeps) as forgetful:
        with pytest.raises(DatabaseError, match="lacks rights in schema 'awa': cron_events DELETE, jobs DELETE"):
            await forgetful.run_forever()
    async with awa_cron.Client(as_role(dsn, "purge")) as purger:
        assert (await purger.purge(3600, dry_run=True)) == (await purger.purge(3600))
    async with awa_cron.Client(as_role(dsn, "read")) as reader:
        assert ["s"] == [each.name for each in await reader.list_schedules()]
        assert [] == await reader.list_dead()
        assert await reader.history("s")
        assert ["s"] == [each.name for each in await reader.overview()]
        assert await reader.jobs_of("s")
        assert not (await reader.preview_resume("s")).paused
        assert (await reader.leadership()).note is None
        assert 2 == len(await reader.explain("s"))
        assert (await reader.verify()).balances


async def awa_run(dsn: str, *, work: bool) -> None:
    client = awa_cron.Client(dsn)
    client.task("work")(lambda _job: None)
    async with client:
        await client.run_forever(evaluate=not work, work=work)


async def test_granting_again_changes_nothing(connection: Session, granted: None) -> None:
    rights = "SELECT relname, relacl FROM pg_class WHERE relnamespace = 'awa'::regnamespace ORDER BY relname"
    before = await connection.fetch(rights)
    await connection.execute(migrate.grants(SCHEMA, PREFIX))
    assert before == await connection.fetch(rights)


async def test_another_schema_and_prefix_are_put_in_their_places(connection: Session) -> None:
    other = Schema("other")
    await migrate.migrate(connection, other)
    text = migrate.grants(other, PREFIX)
    assert "awa." not in text
    assert "SCHEMA awa" not in text
    await connection.execute(text)
    try:
        assert await connection.fetchval(f"SELECT has_schema_privilege('{PREFIX}_read', 'other', 'USAGE')")
        assert not await connection.fetchval(f"SELECT has_schema_privilege('{PREFIX}_read', 'awa', 'USAGE')")
    finally:
        for part in PARTS:
            await connection.execute(f"DROP OWNED BY {PREFIX}_{part}; DROP ROLE {PREFIX}_{part}")


@pytest.mark.parametrize("prefix", ["", "A", "a b", 'a"', "1a", "a" * 49, "a;"])
def test_a_prefix_that_would_need_quotes_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidArgument, match="prefix"):
        migrate.grants(SCHEMA, prefix)


def test_the_command_prints_what_the_library_gives() -> None:
    printed = commands.run("grants", "--prefix", "app", "--schema", "jobs")
    assert (0, migrate.grants(Schema("jobs"), "app")) == (printed.returncode, printed.stdout)
    assert 2 == commands.run("grants", "--prefix", "App").returncode


async def test_the_role_that_reads_is_enough_for_the_page_that_only_shows(
    dsn: str, connection: Session, granted: None, tmp_path: Path
) -> None:
    await write_row(connection, "digest", queue="email")
    await insert_job(connection, state="failed", metadata='{"cron_name": "digest"}')
    with serving(as_role(dsn, "read"), tmp_path, "--read-only") as page:
        for path in (
            "/cron",
            "/cron/digest?at=",
            "/cron/digest?ask=resume",
            "/queues",
            "/dead",
            "/history",
            "/metrics",
        ):
            shown = page.ask(path)
            assert 200 == shown.status, (path, shown.words)
        assert "may not" not in page.ask("/cron").words
    with serving(as_role(dsn, "read"), tmp_path) as page:
        refused = page.change("pause", name="digest")
        assert 503 == refused.status
        assert "permission denied" in refused.words


async def test_a_right_that_is_lacking_is_told_with_the_role_that_has_it(
    dsn: str, sessions: dict[str, Session]
) -> None:
    for verb in (("list",), ("dead", "list"), ("queue", "list"), ("history",)):
        refused, allowed = [
            await asyncio.to_thread(commands.run, *verb, AWA_CRON_DSN=as_role(dsn, part))
            for part in ("work", "read")
        ]
        assert 0 == allowed.returncode, allowed.stderr
        assert (1, 1) == (refused.returncode, refused.stderr.count("\n"))
        assert "permission denied" in refused.stderr
        assert "PREFIX_read may do what only looks" in refused.stderr
