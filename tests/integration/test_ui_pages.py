"""The pages over plain HTTP: ten thousand schedules, rows that nobody can read, questions that make no sense."""

from __future__ import annotations

import re
from pathlib import Path

from tests.integration.test_cli import execute, fetch
from tests.integration.ui_server import Page, serving


def names(page: Page, path: str) -> list[str]:
    return re.findall(r'class="name" href="[^"]*">([^<]*)<', page.ask(path).text)


def test_ten_thousand_schedules_are_a_page_at_a_time(dsn: str, tmp_path: Path) -> None:
    execute(
        dsn,
        """
        INSERT INTO awa.cron_jobs (name, cron_expr, timezone, kind, paused_at)
        SELECT 'job ' || to_char(i, 'FM00000'), format('%s %s * * %s', i % 60, i / 60 % 24, i % 7),
            CASE i % 2 WHEN 0 THEN 'UTC' ELSE 'Europe/Berlin' END, 'kind-' || i % 10,
            CASE WHEN i % 1000 = 0 THEN now() END
        FROM generate_series(1, 10000) AS i
        """,
    )
    with serving(dsn, tmp_path) as page:
        assert [f"job {i:05}" for i in range(1, 51)] == names(page, "/cron")
        assert [f"job {i:05}" for i in range(9951, 10_001)] == names(page, "/cron?page=200")
        assert "9,951 to 10,000 of 10,000" in page.ask("/cron?page=999999").words
        assert ["job 00123"] == names(page, "/cron?q=JOB+00123")
        assert "1 to 50 of 1,000" in page.ask("/cron?q=KIND-7").words
        paused = page.ask("/cron?state=paused").words
        assert "all 10,000" in paused
        assert "paused 10" in paused
        page.change("pause", name="job 00001", by="ops")
        assert "paused 11" in page.ask("/cron").words, "what one has changed oneself is seen at once"
        assert len(page.ask("/cron").text) < 500_000


def test_what_is_overdue_can_be_looked_for(dsn: str, tmp_path: Path) -> None:
    execute(
        dsn,
        """
        INSERT INTO awa.cron_jobs (name, cron_expr, kind, anchored_at, next_fire_at, paused_at) VALUES
            ('late', '* * * * *', 'x', now() - interval '1 hour', now() - interval '59 minutes', NULL),
            ('held', '* * * * *', 'x', now() - interval '1 hour', now() - interval '59 minutes', now()),
            ('coming', '0 9 * * *', 'x', now(), now() + interval '1 day', NULL),
            ('never', '0 9 * * *', 'x', now(), 'infinity', NULL),
            ('unknown', '0 9 * * *', 'x', now(), NULL, NULL);
        """,
    )
    with serving(dsn, tmp_path) as page:
        assert ["late"] == names(page, "/cron?state=overdue")
        assert "overdue 1" in page.ask("/cron").words


DEATHS = """
INSERT INTO awa.cron_jobs (name, cron_expr, kind)
SELECT unnest('{all,last,once,none,soon}'::text[]), '0 9 * * *', 'x';
INSERT INTO awa.jobs (kind, state, finalized_at, metadata)
SELECT 'x', state, now(), jsonb_build_object('cron_name', name)
FROM unnest(
    '{all,all,all,all,all,last,last,once,once,none,none}'::text[],
    '{cancelled,failed,failed,failed,running,completed,failed,failed,completed,completed,available}'::text[]
) WITH ORDINALITY AS made (name, state, place) ORDER BY place;
"""


def test_one_sees_at_a_glance_that_jobs_die(dsn: str, tmp_path: Path) -> None:
    with serving(dsn, tmp_path) as page:
        assert 'class="count"' not in page.ask("/cron").text
        execute(dsn, DEATHS)
        for path in ("/cron", "/queues", "/dead", "/history", "/cron/all", "/cron/all?ask=pause"):
            assert "Dead jobs 5 History" in page.ask(path).words, path
        page.change("trigger", name="soon")
        rows = page.ask("/cron").text.split("<tr ")[1:]
        told = {found[1]: row for row in rows if (found := re.search(r'data-key="(\w+)"', row))}
        assert "last 3 jobs dead" in told["all"]
        assert "last job dead" in told["last"]
        for name in ("all", "last"):
            assert (False, True) == ('pill good"' in told[name], 'pill bad"' in told[name]), name
        for name in ("once", "none", "soon"):
            assert (True, False) == ('pill good"' in told[name], "dead" in told[name]), name
        assert "last 3 jobs dead" in page.ask("/cron/all").words


def test_a_dead_job_is_called_dead(dsn: str, tmp_path: Path) -> None:
    execute(dsn, DEATHS)
    with serving(dsn, tmp_path) as page:
        shown = page.ask("/cron/once").words
        assert [8] == [row["id"] for row in fetch(dsn, "SELECT id FROM awa.jobs WHERE id = 8 AND state = 'failed'")]
        assert " 8 dead " in shown
        assert "failed" not in shown


def test_questions_that_make_no_sense_are_answered_with_the_reason(dsn: str, tmp_path: Path) -> None:
    execute(dsn, "INSERT INTO awa.cron_jobs (name, cron_expr, kind) VALUES ('s', '0 9 * * *', 'x')")
    with serving(dsn, tmp_path) as page:
        for path, reason in (("/cron?state=x", "must be one of all"), ("/cron?span=x", "must be one of 10m")):
            refused = page.ask(path)
            assert (400, True) == (refused.status, reason in refused.words), path
        for path in (
            "/cron?page=-1",
            "/cron?page=x",
            "/cron?page=99999999999",
            "/cron/s?ask=x",
            "/cron?q=" + "x" * 4000,
        ):
            assert 200 == page.ask(path).status, path
        assert 404 == page.ask("/cron/nobody").status
        for path in ("/cron/%00", "/cron/s%00", "/cron?name=%00", "/dead?queue=%00", "/cron?q=%00"):
            refused = page.ask(path)
            assert (400, True) == (refused.status, "zero byte" in refused.words), path
        assert 404 == page.ask("/static/../app.py").status
        assert "is no time" in page.ask("/cron/s?at=x").words
        assert "in the years 1000 to 9000" in page.ask("/cron/s?at=0001-01-01").words


def test_rows_that_hold_anything_are_shown_all_the_same(dsn: str, tmp_path: Path) -> None:
    execute(
        dsn,
        """
        INSERT INTO awa.cron_jobs
            (name, cron_expr, timezone, kind, missed_fire_policy, last_enqueued_at, anchored_at)
        VALUES
            ('infinite', '0 9 * * *', 'UTC', 'x', 'coalesce', 'infinity', now()),
            ('ancient', '0 9 * * *', 'UTC', 'x', 'coalesce', '4000-01-01 BC', '-infinity'),
            ('nowhere', '0 9 * * *', 'Mars/Olympus', 'x', 'coalesce', NULL, now()),
            ('unpolitical', '0 9 * * *', 'UTC', 'x', 'sometimes', NULL, now()),
            ('never', '0 0 30 2 *', 'UTC', 'x', 'coalesce', NULL, now()),
            ('each second', '* * * * * *', 'UTC', 'x', 'catch_up', NULL, now() - interval '3 years');
        UPDATE awa.cron_jobs SET args = '[1, "x"]', metadata = '{"cron_name": [1]}', tags = '{"", "<b>"}';
        INSERT INTO awa.jobs (kind, state, errors, metadata, attempted_at, finalized_at) VALUES
            (
                'x', 'failed', ARRAY['[]', '1', 'null', '{"error": {}}']::jsonb[], '{"cron_name": "never"}', NULL,
                'infinity'
            ),
            ('x', 'failed', '{}', '{"cron_name": [1], "cron_fire_time": "soon"}', now(), NULL);
        INSERT INTO awa.cron_events (clock, action, name, details) VALUES
            (now(), 'sync', 'never', '{"dropped": 1, "change": null}'), ('infinity', 'cancel_jobs', 'never', '{}');
        """,
    )
    listed = [row["name"] for row in fetch(dsn, "SELECT name FROM awa.cron_jobs")]
    with serving(dsn, tmp_path) as page:
        paths = [
            f"/cron/{name.replace(' ', '%20')}{rest}"
            for name in listed
            for rest in ("", "?span=30d", "?ask=resume")
        ]
        for path in ("/cron", "/cron?span=30d", "/queues", "/dead", "/history", "/metrics", *paths):
            shown = page.ask(path)
            assert 200 == shown.status, (path, shown.words)
        assert "100,000" not in page.ask("/cron").words
