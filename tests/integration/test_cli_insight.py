"""What the command line answers: how things stand, what is coming, what a resume would do, and why. P39."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from awa_cron.cli import output
from awa_cron.cli.root import root
from tests.integration import commands
from tests.integration.test_cli import execute, fetch, the_only_line

LONG_AGO = "2020-01-01T00:00:00Z"


def verb(dsn: str, *arguments: str, status: int = 0) -> str:
    done = CliRunner().invoke(root, [*arguments, "--dsn", dsn])
    assert done.exit_code == status, done.output
    return done.stdout if status == 0 else done.stderr


def as_json(dsn: str, *arguments: str) -> Any:
    return json.loads(verb(dsn, *arguments, "--json"))


def write(dsn: str, name: str, cron_expr: str = "0 9 * * *", **columns: str) -> None:
    values = {"name": name, "cron_expr": cron_expr, "kind": "work", "anchored_at": LONG_AGO} | columns
    texts = ", ".join(f"'{value}'" for value in values.values())
    execute(dsn, f"INSERT INTO awa.cron_jobs ({', '.join(values)}) VALUES ({texts})")


class TestList:
    def test_it_shows_how_each_schedule_stands(self, dsn: str) -> None:
        write(dsn, "late", "* * * * *", last_enqueued_at=LONG_AGO)
        write(dsn, "on_time", "0 0 1 1 *", last_enqueued_at=f"{datetime.now(UTC).year}-01-01T00:00:00Z")
        write(dsn, "held", queue="mail", paused_at=LONG_AGO, paused_by="ann")
        write(dsn, "bad", "61 * * * *")
        verb(dsn, "queue", "pause", "mail", "--by", "ops")
        lines = {line.split()[0]: line for line in verb(dsn, "list").splitlines()[2:]}
        assert "active" in lines["late"]
        assert [f"{datetime.now(UTC).year + 1}-01-01", "00:00:00Z", "-", "active"] == lines["on_time"].split()[-4:]
        assert "paused by ann since 2020-01-01 00:00:00Z; queue paused by ops since 20" in lines["held"]
        assert "broken: stored schedule 'bad' cannot be evaluated" in lines["bad"]
        told = {each["name"]: each for each in as_json(dsn, "list")}
        assert told["late"]["lateness_s"] > 3600
        assert "2020-01-01T00:01:00Z" == told["late"]["due_since"]
        assert ("active", "paused", "broken") == tuple(told[n]["condition"] for n in ("late", "held", "bad"))
        assert [None] == [fire["oddity"] for fire in told["late"]["next_fires"]]

    def test_a_reader_that_stops_reading_is_no_error(self, dsn: str, tmp_path: Path) -> None:
        write(dsn, "s")
        for arguments in (("list",), ("list", "--json"), ("next", "@daily"), ("verify",)):
            with commands.running(*arguments, cwd=tmp_path, AWA_CRON_DSN=dsn) as lister:
                assert lister.stdout is not None
                assert lister.stderr is not None
                lister.stdout.close()
                assert (1, "") == (lister.wait(30), lister.stderr.read()), arguments

    def test_wide_letters_and_empty_cells_stay_in_their_columns(self, capsys: pytest.CaptureFixture[str]) -> None:
        output.table(("a", "b"), [("日報", "x"), ("", "y"), ("abc", "")])
        assert "a      b\n────   ─\n日報   x\n       y\nabc\n" == capsys.readouterr().out

    @pytest.mark.parametrize("width", ["60", "80"])
    def test_a_narrow_terminal_gets_a_block_a_schedule(self, dsn: str, width: str) -> None:
        write(dsn, "nightly_reconciliation", timezone="Pacific/Auckland", last_enqueued_at=LONG_AGO)
        in_a_terminal = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
        shown = subprocess.run(
            [sys.executable, "-c", in_a_terminal, *commands.command("list", "--dsn", dsn)],
            env=commands.environment(NO_COLOR="1", TERM="xterm-256color", COLUMNS=width),
            capture_output=True,
            check=True,
            timeout=60,
            text=True,
        ).stdout
        lines = shown.splitlines()
        assert "nightly_reconciliation" == lines[0].replace("\x1b[1m", "").replace("\x1b[0m", "")
        assert "  zone        Pacific/Auckland" in lines
        assert "  last fire   2020-01-01 00:00:00Z" in lines
        assert all(len(line) <= int(width) for line in lines)

    def test_no_color_means_no_colour(self, dsn: str) -> None:
        write(dsn, "s")
        in_a_terminal = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
        shown = subprocess.run(
            [sys.executable, "-c", in_a_terminal, *commands.command("list", "--dsn", dsn)],
            env=commands.environment(NO_COLOR="1", TERM="xterm-256color", COLUMNS="200"),
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        assert b"0 9 * * *" in shown
        assert b"\x1b[3" not in shown


class TestShow:
    def test_it_shows_odd_fires_and_the_newest_jobs(self, dsn: str) -> None:
        write(dsn, "s", "30 2 * * *", timezone="Europe/Berlin")
        job = as_json(dsn, "trigger", "s")["id"]
        shown = verb(dsn, "show", "s", "--count", "400")
        assert "  moved: 02:30:00 does not exist on " in shown
        assert "  first copy: 02:30:00 comes twice on " in shown
        assert f"job {job} waits in queue 'default'" in shown
        told = as_json(dsn, "show", "s", "--jobs", "1")
        assert [(job, True)] == [(each["id"], each["triggered"]) for each in told["jobs"]]
        assert [] == as_json(dsn, "show", "s", "--jobs", "0")["jobs"]


class TestNext:
    def test_what_a_change_of_the_clock_does_stands_beside_the_fire(self) -> None:
        def lines(*arguments: str) -> list[str]:
            done = CliRunner().invoke(root, ["next", *arguments, "--timezone", "Europe/Berlin"])
            assert done.exit_code == 0, done.output
            return done.stdout.splitlines()

        skipped = (
            "02:00:00, 02:20:00, 02:40:00 do not exist on 2026-03-29: the clock goes from 02:00:00 to 03:00:00"
        )
        assert [
            "Sun 2026-03-29 01:40:00 CET (+0100)  2026-03-29 00:40:00Z",
            f"Sun 2026-03-29 02:00:00 -  skipped: {skipped}",
            "Sun 2026-03-29 03:00:00 CEST (+0200)  2026-03-29 01:00:00Z",
        ] == lines("*/20 * * * *", "--after", "2026-03-29T00:30Z", "--count", "2")
        [doubled] = lines("*/20 * * * *", "--after", "2026-10-25T00:59Z", "--count", "1")
        assert doubled.endswith("  doubled: 02:00:00 comes twice on 2026-10-25: this is the second")


class TestResume:
    def test_a_dry_run_tells_and_changes_nothing(self, dsn: str) -> None:
        write(dsn, "c", "* * * * *", paused_at=LONG_AGO)
        write(dsn, "k", "* * * * *", paused_at=LONG_AGO, missed_fire_policy="catch_up")
        write(dsn, "none", "0 0 1 1 *", paused_at=LONG_AGO, last_enqueued_at="2099-01-01T00:00:00Z")
        write(dsn, "bad", "61 * * * *", paused_at=LONG_AGO)
        said = verb(dsn, "resume", "c", "--dry-run")
        assert "c: a resume now makes 1 job, for 20" in said
        assert "; it stands for more than 9,999 due before it, the oldest 2020-01-01 00:01:00Z" in said
        said = verb(dsn, "resume", "k", "--dry-run")
        assert (
            "makes more than 10,000 jobs in more than 100 passes of at most 100, from 2020-01-01 00:01:00Z" in said
        )
        assert "none: a resume now makes no job: nothing is due\n" == verb(dsn, "resume", "none", "--dry-run")
        assert "bad: a resume now makes no job: stored schedule 'bad'" in verb(dsn, "resume", "bad", "--dry-run")
        told = as_json(dsn, "resume", "k", "--dry-run")
        assert (True, 10_000, False, 100) == (told["paused"], told["due"], told["counted_all"], len(told["fires"]))
        assert 0 == fetch(dsn, "SELECT count(*) FROM awa.cron_jobs WHERE paused_at IS NULL")[0]["count"]
        assert [] == fetch(dsn, "SELECT * FROM awa.cron_events")

    def test_of_a_schedule_that_is_not_paused_it_tells_the_next_pass(self, dsn: str) -> None:
        write(dsn, "s", last_enqueued_at="2099-01-01T00:00:00Z")
        assert "s: it is not paused; the next pass makes no job: nothing is due\n" == verb(
            dsn, "resume", "s", "--dry-run"
        )
        assert "no schedule named 'x'" in verb(dsn, "resume", "x", "--dry-run", status=3)


class TestHistory:
    def test_it_tells_what_has_become_of_the_jobs(self, dsn: str) -> None:
        write(dsn, "s")
        first, second = (as_json(dsn, "trigger", "s", "--by", "ops")["id"] for _ in range(2))
        execute(
            dsn,
            f"UPDATE awa.jobs SET state = 'completed' WHERE id = {first}; DELETE FROM awa.jobs WHERE id = {second};"
            "INSERT INTO awa.cron_events (clock, action, name, fires, job_ids)"
            " VALUES (now(), 'atomic_enqueue', 's', array_fill(now(), ARRAY[4]),"
            f" ARRAY[{first}, {second}, {first}, {second}])",
        )
        lines = verb(dsn, "history", "s").splitlines()[2:]
        assert lines[0].endswith(f"jobs {first}, {second}, {first}, … (2 completed, 2 gone)")
        assert lines[1].endswith(f"  ops   job {second} gone")
        assert lines[2].endswith(f"  ops   job {first} completed")
        assert 3 == len(as_json(dsn, "history", "s"))

    def test_since_leaves_out_what_was_before(self, dsn: str) -> None:
        write(dsn, "s")
        verb(dsn, "trigger", "s")
        execute(dsn, "UPDATE awa.cron_events SET recorded_at = now() - interval '1 hour'")
        verb(dsn, "pause", "s")
        since = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
        assert ["pause"] == [each["action"] for each in as_json(dsn, "history", "s", "--since", since)]
        assert "nothing has happened since 2099-01-01T00:00Z\n" == verb(
            dsn, "history", "s", "--since", "2099-01-01T00:00Z"
        )
        assert "add Z for UTC" in verb(dsn, "history", "--since", "2026-01-01", status=2)


class TestExplain:
    def test_without_a_time_it_explains_the_latest_and_the_next(self, dsn: str) -> None:
        write(dsn, "s", "0 0 1 1 *", last_enqueued_at=LONG_AGO, timezone="Asia/Tokyo")
        shown = verb(dsn, "explain", "s").splitlines()
        assert "s at " in shown[0]
        assert " 00:00:00 JST in Asia/Tokyo)" in shown[0]
        assert shown[1].startswith("  no leader: it has been due for ")
        assert any(line.startswith("  not yet due: ") for line in shown)
        assert ["no leader", "not yet due"] == [each["reason"] for each in as_json(dsn, "explain", "s")]

    def test_a_time_without_an_offset_is_local_in_the_schedules_zone_and_it_says_so(self, dsn: str) -> None:
        write(dsn, "s", timezone="Europe/Berlin")
        shown = verb(dsn, "explain", "s", "--at", "2026-03-28T09:30").splitlines()
        assert "2026-03-28T09:30 is read as local time in Europe/Berlin, the schedule's zone" == shown[0]
        assert "s at 2026-03-28 08:30:00Z (Sat 2026-03-28 09:30:00 CET in Europe/Berlin)" == shown[1]
        assert "  not a fire: '0 9 * * *' in Europe/Berlin does not fire then" == shown[2]
        assert "  the fires around it: 2026-03-28 08:00:00Z and 2026-03-29 07:00:00Z" == shown[3]
        [told] = as_json(dsn, "explain", "s", "--at", "2026-03-28T09:30+02:00")
        assert "2026-03-28T07:30:00Z" == told["at"]

    def test_a_local_time_that_comes_twice_is_explained_twice(self, dsn: str) -> None:
        write(dsn, "s", "30 2 * * *", timezone="Europe/Berlin", last_enqueued_at="2026-10-01T00:00:00Z")
        shown = verb(dsn, "explain", "s", "--at", "2025-10-26 02:30")
        assert "02:30:00 comes twice on 2025-10-26 in Europe/Berlin\n" in shown
        at = [each["at"] for each in as_json(dsn, "explain", "s", "--at", "2025-10-26 02:30")]
        assert ["2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z"] == at

    def test_a_local_time_that_does_not_exist_is_explained_by_the_first_instant_after(self, dsn: str) -> None:
        write(dsn, "s", "30 2 * * *", timezone="Europe/Berlin")
        shown = verb(dsn, "explain", "s", "--at", "2026-03-29T02:30")
        assert "02:30:00 does not exist on 2026-03-29 in Europe/Berlin: the clock goes from 02:00:00" in shown
        assert "s at 2026-03-29 01:00:00Z (Sun 2026-03-29 03:00:00 CEST in Europe/Berlin)" in shown

    def test_a_removed_schedules_zone_comes_from_its_history(self, dsn: str) -> None:
        write(dsn, "s", timezone="Asia/Tokyo")
        verb(dsn, "remove", "s", "--by", "ops")
        shown = verb(dsn, "explain", "s", "--at", "2099-01-01T09:00")
        assert "read as local time in Asia/Tokyo" in shown
        assert "  not registered: the schedule had been removed at 20" in shown

    @pytest.mark.parametrize(
        ("time", "said"),
        [("yesterday", "--at is 'yesterday': give ISO 8601"), ("9999-12-31T23:59-10:00", "ISO 8601")],
    )
    def test_what_cannot_be_read_is_status_2(self, dsn: str, time: str, said: str) -> None:
        write(dsn, "s")
        assert said in the_only_line(verb(dsn, "explain", "s", "--at", time, status=2))

    def test_a_zone_that_is_not_known_needs_an_offset(self, dsn: str) -> None:
        write(dsn, "s", timezone="Mars/Phobos")
        assert "--at has no offset, and the schedule's zone is of no help" in the_only_line(
            verb(dsn, "explain", "s", "--at", "2026-01-01T09:00", status=2)
        )
        assert "  broken: " in verb(dsn, "explain", "s")

    def test_control_characters_of_others_do_not_reach_the_terminal(self, dsn: str) -> None:
        write(dsn, "s", paused_at=LONG_AGO, paused_by="\x1b[31mred")
        shown = verb(dsn, "explain", "s", "--at", "2026-01-01T09:00Z")
        assert "\x1b" not in shown
        assert r"paused by \x1b[31mred since" in shown


class TestVerifySince:
    def test_a_log_without_events_since_then_says_that_nothing_was_checked(self, dsn: str) -> None:
        said = verb(dsn, "verify", "--since", "2099-01-01T00:00Z")
        assert "nothing was checked, for no event was recorded since 2099-01-01T00:00Z" in said
        assert "accounted for" not in said
        assert "every due instant is accounted for" in verb(dsn, "verify")

    def test_a_time_without_an_offset_gets_a_remedy_for_a_shell(self, dsn: str) -> None:
        said = the_only_line(verb(dsn, "verify", "--since", "2026-01-01T00:00", status=2))
        assert "add Z for UTC, or an offset, as in 2026-03-29T00:00Z" in said
        assert "datetime" not in said


class TestCompletion:
    def complete(self, arguments: list[str], incomplete: str) -> list[str]:
        shell = ShellComplete(root, {}, "awa-cron", "_AWA_CRON_COMPLETE")
        return [each.value for each in shell.get_completions(arguments, incomplete)]

    def test_names_come_from_the_database(self, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        write(dsn, "daily")
        write(dsn, "daily_digest", queue="mail")
        write(dsn, "weekly")
        monkeypatch.setenv("AWA_CRON_DSN", dsn)
        for name in ("show", "pause", "resume", "trigger", "cancel", "remove", "history", "explain"):
            assert ["daily", "daily_digest"] == self.complete([name], "da"), name
        assert ["default", "mail"] == self.complete(["queue", "pause"], "")
        assert ["explain"] == self.complete([], "exp")

    @pytest.mark.parametrize("dsn", ["", "postgresql://u@127.0.0.1:1/x", "nonsense"])
    def test_failure_is_silent(
        self, dsn: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("AWA_CRON_DSN", dsn)
        assert [] == self.complete(["show"], "")
        assert ("", "") == capfd.readouterr()

    def test_the_shell_asks_like_this(self, dsn: str) -> None:
        write(dsn, "daily")
        script = commands.run(AWA_CRON_DSN=dsn, _AWA_CRON_COMPLETE="bash_source")
        assert "complete -o nosort -F _awa_cron_completion awa-cron" in script.stdout
        answer = commands.run(
            AWA_CRON_DSN=dsn, _AWA_CRON_COMPLETE="bash_complete", COMP_WORDS="awa-cron show d", COMP_CWORD="2"
        )
        assert (0, "plain,daily\n", "") == (answer.returncode, answer.stdout, answer.stderr)
