"""The command line on queues and jobs: cancel, queue, dead. P39."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from awa_cron.cli.root import root
from tests.integration.test_cli import execute, fetch


@pytest.fixture
def run(dsn: str) -> Any:
    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(root, arguments, env={"AWA_CRON_DSN": dsn}, catch_exceptions=False)

    execute(
        dsn,
        """
        INSERT INTO awa.cron_jobs (name, cron_expr, kind, queue) VALUES ('digest', '0 9 * * *', 'send', 'email');
        INSERT INTO awa.jobs (kind, queue, state, metadata) VALUES
            ('send', 'email', 'available', '{"cron_name": "digest"}'),
            ('send', 'email', 'running', '{"cron_name": "digest"}');
        INSERT INTO awa.jobs (kind, queue, state, attempt, max_attempts, finalized_at, errors, metadata) VALUES
            ('send', 'email', 'failed', 3, 3, '2026-01-01Z',
                ARRAY['{"error": "first"}', '{"error": "last\\nline"}']::jsonb[], '{"cron_name": "digest"}'),
            ('other', 'default', 'failed', 1, 1, '2026-01-02Z', '{}', '{}');
        """,
    )
    return invoke


def states(dsn: str) -> list[str]:
    return [row["state"] for row in fetch(dsn, "SELECT state FROM awa.jobs ORDER BY id")]


def test_cancel_says_how_many_of_each(dsn: str, run: Any) -> None:
    first = run("cancel", "digest")
    said = "digest: 1 cancelled before they began; 1 run and go on (--running cancels them too)\n"
    assert (0, said) == (first.exit_code, first.stdout)
    assert ["cancelled", "running", "failed", "failed"] == states(dsn)
    second = run("cancel", "digest", "--running", "--json")
    assert {"waiting": 0, "signalled": 1, "running": 0} == json.loads(second.stdout)
    third = run("cancel", "digest", "--running")
    said = "digest: 0 cancelled before they began; 0 cancelled while they ran, and told to stop\n"
    assert (0, said) == (third.exit_code, third.stdout)
    assert 3 == run("cancel", "nobody").exit_code
    history = run("history", "digest").stdout
    assert "cancel_jobs" in history
    assert "0 waiting, 1 running" in history


def test_queue_pause_and_resume_are_told_and_listed(dsn: str, run: Any) -> None:
    assert "email: paused\n" == run("queue", "pause", "email", "--by", "ops").stdout
    again = run("queue", "pause", "email", "--json")
    assert (0, {"name": "email", "changed": False}) == (again.exit_code, json.loads(again.stdout))
    listed = json.loads(run("queue", "list", "--json").stdout)
    assert ["default", "email"] == [each["name"] for each in listed]
    email = listed[1]
    assert ("ops", 1, 1, 1, 1) == tuple(
        email[field] for field in ("paused_by", "schedules", "waiting", "running", "dead")
    )
    assert email["paused_at"].endswith("Z")
    assert "paused by ops since 20" in run("queue", "list").stdout
    assert "queue paused" in run("list").stdout
    assert "queue email" in run("history").stdout
    assert "email: resumed\n" == run("queue", "resume", "email").stdout
    assert "email: was not paused\n" == run("queue", "resume", "email").stdout
    blank = run("queue", "pause", " ")
    assert 2 == blank.exit_code
    assert "queue is ' '" in blank.stderr


def test_dead_jobs_are_listed_with_their_errors(dsn: str, run: Any) -> None:
    shown = run("dead", "list").stdout
    assert "last line" in shown
    assert shown.index("other") < shown.index("last line"), "the latest first"
    (job,) = json.loads(run("dead", "list", "--schedule", "digest", "--json").stdout)
    assert ([{"error": "first"}, {"error": "last\nline"}], 3) == (job["errors"], job["attempt"])
    assert "2026-01-01T00:00:00Z" == job["died_at"]
    assert "no dead jobs\n" == run("dead", "list", "--queue", "none").stdout


def test_dead_jobs_are_retried_by_id_by_filter_or_all(dsn: str, run: Any) -> None:
    assert "retried 1 job\n" == run("dead", "retry", "3", "--attempts", "2").stdout
    row = fetch(dsn, "SELECT state, attempt, max_attempts FROM awa.jobs WHERE id = 3")[0]
    assert {"state": "available", "attempt": 3, "max_attempts": 5} == row
    missing = run("dead", "retry", "3", "4")
    assert 3 == missing.exit_code
    assert "not retried: 3: no dead job has that id and fits; retried: 4" in missing.stderr
    assert "retried 0 jobs\n" == run("dead", "retry", "--all").stdout


def test_dead_jobs_are_purged_only_when_they_are_named(dsn: str, run: Any) -> None:
    for arguments in ([], ["3", "--all"], ["--all", "--kind", "send"]):
        refused = run("dead", "purge", *arguments)
        assert 2 == refused.exit_code, arguments
        assert "give --all alone" in refused.stderr
    for before in ("yesterday", "2026-01-01T00:00"):
        assert 2 == run("dead", "purge", "--before", before).exit_code
    assert 4 == len(states(dsn))
    purged = run("dead", "purge", "--before", "2026-01-02T00:00Z", "--json")
    assert {"purged": [3]} == json.loads(purged.stdout)
    assert "purged 1 job\n" == run("dead", "purge", "--all").stdout
    assert ["available", "running"] == states(dsn)
    assert 2 == run("dead", "retry", "x").exit_code
    assert 2 == run("dead", "retry", "3", "--attempts", "0").exit_code


def test_an_empty_database_has_no_queues(dsn: str) -> None:
    shown = CliRunner().invoke(root, ["queue", "list"], env={"AWA_CRON_DSN": dsn})
    assert "no queues: no schedule or job names one\n" == shown.stdout
