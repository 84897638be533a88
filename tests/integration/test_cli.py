"""The command line, as processes against a real Postgres. P39."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from click.testing import CliRunner

from awa_cron import migrate
from awa_cron.cli import loading
from awa_cron.cli.failure import Failed, Misused
from awa_cron.cli.root import root
from awa_cron.sql import Schema
from tests import postgres
from tests.integration import commands

APP = """
import asyncio, pathlib, time
import awa_cron

client = awa_cron.Client(settings=awa_cron.Settings(shutdown_timeout_s={shutdown_s}))

@client.task("work")
{handler}

client.periodic("each_second", "* * * * * *", kind="work")
"""


def fetch(dsn: str, question: str, *arguments: object) -> list[dict[str, Any]]:
    async def ask() -> list[dict[str, Any]]:
        connection = await asyncpg.connect(dsn)
        try:
            return [dict(row) for row in await connection.fetch(question, *arguments)]
        finally:
            await connection.close()

    return asyncio.run(ask())


def execute(dsn: str, statements: str) -> None:
    async def ask() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute(statements)
        finally:
            await connection.close()

    asyncio.run(ask())


def the_only_line(text: str) -> str:
    lines = text.splitlines()
    assert len(lines) == 1, text
    return lines[0]


@pytest.fixture
def empty_dsn(server_dsn: str) -> Iterator[str]:
    execute(server_dsn, "CREATE DATABASE awa_cron_test_empty")
    yield postgres.on_database(server_dsn, "awa_cron_test_empty")
    execute(server_dsn, "DROP DATABASE awa_cron_test_empty WITH (FORCE)")


@pytest.fixture
def a_schedule(dsn: str) -> str:
    execute(
        dsn,
        "INSERT INTO awa.cron_jobs (name, cron_expr, timezone, kind, queue)"
        " VALUES ('digest', '0 9 * * *', 'Pacific/Auckland', 'send', 'email')",
    )
    return dsn


class TestMigrate:
    def test_ten_at_once_all_succeed_and_one_of_them_migrates(self, empty_dsn: str) -> None:
        processes = [
            subprocess.Popen(
                commands.command("migrate", "--json"),
                env=commands.environment(AWA_CRON_DSN=empty_dsn),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(10)
        ]
        answers = [process.communicate(timeout=60) for process in processes]
        assert [0] * 10 == [process.returncode for process in processes], answers
        applied = [row["version"] for row in fetch(empty_dsn, "SELECT version FROM awa.cron_migrations")]
        assert [version for version, *_ in Schema().migrations()] == applied
        assert all(set(json.loads(out)["applied"]) <= set(applied) for out, _ in answers)

    def test_the_schema_of_another_system_is_refused_and_untouched(self, empty_dsn: str) -> None:
        execute(
            empty_dsn,
            "CREATE SCHEMA awa; CREATE TABLE awa.schema_version (version int); CREATE TABLE awa.jobs (id int);"
            "INSERT INTO awa.schema_version VALUES (42); INSERT INTO awa.jobs VALUES (1)",
        )
        relations = "SELECT relname, relfilenode FROM pg_class WHERE relnamespace = 'awa'::regnamespace ORDER BY 1"
        before = fetch(empty_dsn, relations)
        refused = commands.run("migrate", "--dsn", empty_dsn)
        assert refused.returncode == 1
        assert "schema_version of another system (the full Awa)" in the_only_line(refused.stderr)
        assert before == fetch(empty_dsn, relations)
        assert fetch(empty_dsn, "SELECT version FROM awa.schema_version") == [{"version": 42}]
        beside = commands.run("migrate", "--dsn", empty_dsn, "--schema", "awa_cron")
        assert (beside.returncode, beside.stdout) == (0, "schema awa_cron: applied 1, 2, 3\n")

    def test_the_printed_sql_needs_no_database_and_is_what_migrate_does(self, empty_dsn: str) -> None:
        printed = commands.run("migrate", "--sql")
        assert (printed.returncode, printed.stdout) == (0, migrate.script(Schema()))
        execute(empty_dsn, printed.stdout)
        execute(empty_dsn, printed.stdout)
        assert commands.run("migrate", "--dsn", empty_dsn).stdout == "schema awa: up to date\n"

    def test_a_database_without_the_schema_is_told_to_migrate(self, empty_dsn: str) -> None:
        refused = commands.run("list", "--dsn", empty_dsn)
        assert refused.returncode == 1
        assert "run `awa-cron migrate`" in the_only_line(refused.stderr)


class TestOperators:
    def test_an_operators_day(self, a_schedule: str) -> None:
        def verb(*arguments: str) -> Any:
            done = commands.run(*arguments, "--json", AWA_CRON_DSN=a_schedule)
            assert (done.returncode, done.stderr) == (0, "")
            return json.loads(done.stdout)

        assert verb("pause", "digest", "--by", "ops") == {"name": "digest", "changed": True}
        assert verb("pause", "digest", "--by", "somebody else") == {"name": "digest", "changed": False}
        shown = verb("show", "digest")
        assert (shown["paused_by"], shown["next_fires"]) == ("ops", [])
        assert verb("trigger", "digest")["queue"] == "email"
        assert verb("resume", "digest") == {"name": "digest", "changed": True}
        assert [len(each["next_fires"]) for each in verb("list")] == [1]
        assert verb("remove", "digest") == {"name": "digest", "removed": True}
        assert verb("list") == []
        assert [each["action"] for each in verb("history", "digest")] == ["remove", "resume", "trigger", "pause"]

    @pytest.mark.parametrize("verb", ["show", "pause", "resume", "trigger", "remove", "history", "explain"])
    def test_a_name_that_is_not_stored_is_status_3_and_stores_nothing(self, dsn: str, verb: str) -> None:
        missing = CliRunner().invoke(root, [verb, "nonesuch", "--dsn", dsn])
        assert missing.exit_code == 3
        assert "no schedule named 'nonesuch'" in the_only_line(missing.stderr)
        assert fetch(dsn, "SELECT name FROM awa.cron_jobs UNION SELECT action FROM awa.cron_events") == []

    def test_tables_in_a_pipe_have_no_colours_and_no_control_characters_of_others(self, a_schedule: str) -> None:
        execute(
            a_schedule,
            "INSERT INTO awa.cron_jobs (name, cron_expr, timezone, kind)"
            r" VALUES (E'\x1b[31mred', '61 * * * *', 'UTC', 'k')",
        )
        listed = commands.run("list", "--dsn", a_schedule)
        assert listed.returncode == 0
        assert "\x1b" not in listed.stdout
        assert r"\x1b[31mred" in listed.stdout
        assert "cannot be evaluated" in listed.stdout
        assert "paused" not in listed.stdout


class TestUsage:
    def test_no_database_named(self) -> None:
        refused = commands.run("list")
        assert refused.returncode == 2
        assert "--dsn" in the_only_line(refused.stderr)

    def test_a_database_that_does_not_answer_is_one_line(self) -> None:
        refused = commands.run("list", AWA_CRON_DSN="postgresql://u:secret@127.0.0.1:1/x")
        assert refused.returncode == 1
        assert the_only_line(refused.stderr).startswith("Error: cannot connect to 127.0.0.1:1: ")
        assert "secret" not in refused.stderr

    @pytest.mark.parametrize("verb", ["list", "migrate"])
    def test_the_address_that_does_not_answer_is_told_and_never_the_password(self, verb: str) -> None:
        for host in ("127.0.0.1:1", "[::1]:1", "nowhere.invalid:1"):
            refused = commands.run(verb, AWA_CRON_DSN=f"postgresql://u:secret@{host}/x?sslmode=disable")
            assert the_only_line(refused.stderr).startswith(f"Error: cannot connect to {host}: "), host
            assert "secret" not in refused.stderr

    def test_a_password_that_is_not_escaped_is_not_shown(self) -> None:
        for dsn in ("postgresql://u:sec/ret@h/x", "postgresql://u:sec?ret@h/x", "postgresql://u:1/sec@h:1/x"):
            for verb in ("list", "migrate"):
                refused = commands.run(verb, AWA_CRON_DSN=dsn)
                assert refused.returncode == 1
                assert "sec" not in the_only_line(refused.stderr), dsn

    @pytest.mark.parametrize("arguments", [("next", "@daily"), ("next", "@daily", "--json"), ("--help",)])
    def test_a_full_disk_is_one_line(self, arguments: tuple[str, ...]) -> None:
        with Path("/dev/full").open("w") as full:
            failed = subprocess.run(
                commands.command(*arguments),
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=60,
                env=commands.environment(),
            )
        assert (1, "Error: cannot write the output: No space left on device") == (
            failed.returncode,
            the_only_line(failed.stderr),
        )

    def test_fewer_fires_than_asked_are_told(self) -> None:
        for form in ([], ["--json"]):
            done = commands.run("next", "* * * * *", "--after", "9947-12-31T23:57Z", "--count", "3", *form)
            assert (0, 2) == (done.returncode, done.stdout.count("23:58:00Z") + done.stdout.count("23:59:00Z"))
            assert the_only_line(done.stderr).startswith("only 2 of 3: ")
            assert "9947" in done.stderr
        assert "" == commands.run("next", "@daily", "--count", "3").stderr

    def test_next_needs_no_database(self) -> None:
        done = commands.run(
            *("next", "30 2 * * *", "--timezone", "Europe/Berlin", "--after", "2026-03-28T12:00Z", "--count", "2"),
            "--json",
        )
        moved = "02:30:00 does not exist on 2026-03-29: fires at the first instant after, 03:00:00 CEST"
        assert json.loads(done.stdout) == [
            {
                "fire": "2026-03-29T01:00:00Z",
                "local": "2026-03-29T03:00:00+02:00",
                "oddity": "moved",
                "words": moved,
            },
            {
                "fire": "2026-03-30T00:30:00Z",
                "local": "2026-03-30T02:30:00+02:00",
                "oddity": None,
                "words": None,
            },
        ]

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("61 * * * *",), "minute '61'"),
            (("@daily", "--timezone", "Mars/Phobos"), "Mars/Phobos"),
            (("@daily", "--after", "2026-03-28T12:00"), "no time zone"),
            (("@daily", "--after", "tomorrow"), "ISO 8601"),
        ],
    )
    def test_what_cannot_be_read_is_status_2(self, arguments: tuple[str, ...], said: str) -> None:
        refused = CliRunner().invoke(root, ["next", *arguments])
        assert refused.exit_code == 2
        assert said in the_only_line(refused.stderr)

    def test_without_the_extra_it_names_the_remedy(self) -> None:
        without = "import sys; sys.modules['click'] = None; from awa_cron.cli import main; main()"
        refused = subprocess.run(
            [sys.executable, "-c", without],
            env=commands.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert refused.returncode == 1
        assert "pip install 'awa-cron[cli]'" in the_only_line(refused.stderr)


class TestModuleAndClient:
    @pytest.mark.parametrize(
        ("target", "said"),
        [
            ("app", "not MODULE:CLIENT"),
            ("app:", "not MODULE:CLIENT"),
            ("app.py:client", "as an import does: app:client"),
            ("nonesuch:client", "no module 'nonesuch'"),
            ("app:clint", "its clients: client"),
            ("app:asyncio", "is a module, not an awa_cron.Client"),
        ],
    )
    def test_each_mistake_has_its_own_message(
        self, target: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_app(tmp_path, "async def work(job): pass")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", sys.path.copy())
        monkeypatch.delitem(sys.modules, "app", raising=False)
        with pytest.raises(Misused, match=said):
            loading.client(target)

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            ("import nonesuch", "line 1: ModuleNotFoundError: No module named 'nonesuch'"),
            ("\n1 / 0", "line 2: ZeroDivisionError"),
            ("def f(:", "line 1: invalid syntax"),
            ("import sys\nsys.exit(4)", "line 2: SystemExit: 4"),
            (
                "import awa_cron\nawa_cron.Client().periodic('x', '* * * * 9', kind='k')",
                "line 2: InvalidCronExpression",
            ),
        ],
    )
    def test_an_error_in_the_module_names_its_line(
        self, source: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "broken_app.py").write_text(source)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", sys.path.copy())
        with pytest.raises(Failed, match=said):
            loading.client("broken_app:client")


def write_app(directory: Path, handler: str, shutdown_s: float = 20.0) -> None:
    (directory / "app.py").write_text(APP.format(handler=handler, shutdown_s=shutdown_s))


def states(dsn: str) -> list[str]:
    return [row["state"] for row in fetch(dsn, "SELECT state FROM awa.jobs ORDER BY id")]


class TestRun:
    def test_the_first_signal_lets_the_running_handler_finish(self, dsn: str, tmp_path: Path) -> None:
        write_app(tmp_path, "async def work(job): await asyncio.sleep(1.5)")
        with commands.running(
            "run", "app:client", "--log-format", "json", cwd=tmp_path, AWA_CRON_DSN=dsn
        ) as process:
            commands.eventually(lambda: "running" in states(dsn), "a job runs")
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=20)
        assert (process.returncode, out) == (0, "")
        assert set(states(dsn)) <= {"completed", "available"}
        assert "completed" in states(dsn)
        records = [json.loads(line) for line in err.splitlines()]
        assert {"time", "level", "logger", "message", "actor", "schedules"} <= records[0].keys()
        assert [record["message"] for record in records][-1] == "stopped"
        assert fetch(dsn, "SELECT action FROM awa.cron_events ORDER BY id DESC LIMIT 1") == [
            {"action": "lose_leader"}
        ]

    def test_what_the_module_has_made_is_not_collected_again_and_again(self, dsn: str, tmp_path: Path) -> None:
        write_app(tmp_path, "def work(job): import gc; print(gc.get_freeze_count() > 1000, flush=True)")
        with commands.running("run", "app:client", "--dsn", dsn, cwd=tmp_path) as process:
            commands.eventually(lambda: "completed" in states(dsn), "a job has run")
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=20)
        assert "True" == out.splitlines()[0]

    def test_a_second_signal_ends_it_at_once(self, dsn: str, tmp_path: Path) -> None:
        write_app(tmp_path, "async def work(job): await asyncio.sleep(60)")
        with commands.running("run", "app:client", "--dsn", dsn, cwd=tmp_path) as process:
            commands.eventually(lambda: "running" in states(dsn), "a job runs")
            process.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.0)
            process.send_signal(signal.SIGINT)
            assert process.wait(2.0) == 128 + signal.SIGINT

    @pytest.mark.parametrize(
        "handler",
        ["def work(job): time.sleep(60)", "async def work(job): await asyncio.to_thread(time.sleep, 60)"],
        ids=["sync", "to_thread"],
    )
    def test_a_thread_that_never_returns_does_not_keep_it(self, dsn: str, tmp_path: Path, handler: str) -> None:
        write_app(tmp_path, handler, shutdown_s=0.5)
        with commands.running("run", "app:client", "--dsn", dsn, cwd=tmp_path) as process:
            commands.eventually(lambda: "running" in states(dsn), "a job runs")
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=10.0)
        assert process.returncode == 0
        assert "a handler does not stop, and is left behind" in err
        assert "running" not in states(dsn)

    def test_an_async_handler_that_will_not_be_cancelled_does_not_keep_it(self, dsn: str, tmp_path: Path) -> None:
        write_app(
            tmp_path,
            """async def work(job):
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass""",
            shutdown_s=0.5,
        )
        with commands.running("run", "app:client", "--dsn", dsn, cwd=tmp_path) as process:
            commands.eventually(lambda: "running" in states(dsn), "a job runs")
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "a handler does not stop, and is left behind" in err

    def test_it_migrates_only_when_asked(self, empty_dsn: str, tmp_path: Path) -> None:
        write_app(tmp_path, "async def work(job): pass")
        refused = commands.run("run", "app:client", "--dsn", empty_dsn, cwd=tmp_path)
        assert refused.returncode == 1
        assert "run `awa-cron migrate`" in refused.stderr
        assert "Traceback" not in refused.stderr
        with commands.running("run", "app:client", "--migrate", "--dsn", empty_dsn, cwd=tmp_path) as process:
            commands.eventually(
                lambda: bool(fetch(empty_dsn, "SELECT to_regclass('awa.jobs') AS t")[0]["t"]), "migrated"
            )
            commands.eventually(lambda: "completed" in states(empty_dsn), "a job is done")
            process.send_signal(signal.SIGTERM)
            assert process.wait(10.0) == 0
