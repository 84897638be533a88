"""/metrics and /health of the page's server, read as Prometheus and a load balancer do."""

from __future__ import annotations

import json
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.integration import commands
from tests.integration.test_cli import execute
from tests.integration.ui_server import TOKEN, Page, serving

FILLED = """
INSERT INTO awa.cron_jobs (name, cron_expr, kind, paused_at) VALUES
    ('a', '0 9 * * *', 'x', NULL), ('b', '0 9 * * *', 'x', now()), ('c', '61 * * * *', 'x', now());
INSERT INTO awa.cron_jobs (name, cron_expr, kind, next_fire_at, paused_at) VALUES
    ('late', '0 9 * * *', 'x', now() - interval '200 seconds', NULL),
    ('later', '0 9 * * *', 'x', now() - interval '100 seconds', NULL),
    ('just now', '0 9 * * *', 'x', now() + interval '1 hour', NULL),
    ('held', '0 9 * * *', 'x', now() - interval '1 day', now());
INSERT INTO awa.jobs (kind, queue, state, run_at) VALUES
    ('x', 'q', 'available', now() - interval '90 seconds'), ('x', 'q', 'available', now()),
    ('x', 'q', 'completed', now()), ('x', 'with "quotes"\\ and' || chr(10) || 'lines', 'failed', now());
INSERT INTO awa.queue_meta VALUES ('q', now(), NULL);
INSERT INTO awa.cron_events (clock, action, name, fires, job_ids, recorded_at) VALUES
    (
        now(), 'atomic_enqueue', 'a', ARRAY[now() - interval '3 seconds', now() - interval '2 seconds'], '{1, 2}',
        now()
    ),
    (now(), 'atomic_enqueue', 'a', ARRAY[now() - interval '2 hours'], '{3}', now() - interval '1 hour'),
    (now(), 'trigger', 'a', '{}', '{4}', now());
"""


def samples(page: Page, **headers: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = page.ask("/metrics", signed_in=False, headers=headers)
    assert 200 == answer.status, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(answer.text):
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, "each series once"
            found[key] = sample.value
    return found


def test_prometheus_reads_the_numbers_of_the_database(dsn: str, tmp_path: Path) -> None:
    execute(dsn, FILLED)
    with serving(dsn, tmp_path) as page:
        found = samples(page)

    def value(name: str, **labels: str) -> float | None:
        return found.get(("awa_cron_" + name, frozenset(labels.items())))

    assert 4 == value("schedules", state="active")
    assert 2 == value("schedules", state="paused")
    assert 1 == value("schedules", state="broken")
    assert 2 == value("queue_jobs", queue="q", state="available")
    assert None is value("queue_jobs", queue="q", state="completed")
    assert 1 == value("queue_jobs", queue='with "quotes"\\ and\nlines', state="failed")
    assert 90 <= (value("queue_oldest_seconds", queue="q") or 0) < 900
    assert 1 == value("queue_paused", queue="q")
    assert 2 == value("overdue_schedules")
    assert 200 <= (value("overdue_seconds") or 0) < 2000
    assert 0 == value("leader")
    assert 2 == value("recent_fires")
    assert 2 == value("recent_lateness_seconds", quantile="0.5")
    assert 3 == value("recent_lateness_seconds", quantile="1")
    assert 3 == value("last_event_id")
    assert not any("name" in dict(labels) or "schedule" in dict(labels) for _, labels in found), (
        "no series a schedule"
    )


def test_health_tells_whether_fires_can_become_jobs(dsn: str, tmp_path: Path) -> None:
    with serving(dsn, tmp_path) as page:
        nobody = page.ask("/health", signed_in=False)
        assert (503, "no leader", True) == (nobody.status, *of(nobody.text, "status", "database"))
        (tmp_path / "app.py").write_text(
            "import awa_cron\nclient = awa_cron.Client()\nclient.periodic('s', '* * * * * *', kind='secret_kind')\n"
        )
        with commands.running("run", "app:client", "--dsn", dsn, cwd=tmp_path):

            def fires() -> bool:
                answer = page.ask("/health", signed_in=False)
                return answer.status == 200 and of(answer.text, "last_enqueue_age_s") != [None]

            commands.eventually(fires, "somebody leads, and fires")
            led = page.ask("/health", signed_in=False)
            found = json.loads(led.text)
            assert ("ok", True, True) == (found["status"], found["database"], found["leader"])
            assert all(
                found[name] >= 0 for name in ("leader_age_s", "last_enqueue_age_s", "last_event_age_s", "overdue_s")
            )
            for secret in ("secret_kind", str(tmp_path), TOKEN, "actor"):
                assert secret not in led.text, "it is open to all, and names nobody"
            leading = samples(page)
            assert 1 == leading["awa_cron_leader", frozenset()]
            assert leading["awa_cron_last_enqueue_timestamp_seconds", frozenset()] > 1_700_000_000
        commands.eventually(lambda: page.ask("/health", signed_in=False).status == 503, "nobody leads")


def test_health_and_metrics_without_a_database(tmp_path: Path) -> None:
    with serving("postgresql://nobody@127.0.0.1:1/none", tmp_path) as page:
        health = page.ask("/health", signed_in=False)
        assert (503, "no database", False) == (health.status, *of(health.text, "status", "database"))
        assert 503 == page.ask("/metrics", signed_in=False).status
        assert 503 == page.ask("/cron").status


def test_where_others_can_reach_it_the_numbers_need_the_token(dsn: str, tmp_path: Path) -> None:
    with serving(dsn, tmp_path, "--host", "0.0.0.0") as page:
        assert 401 == page.ask("/metrics", signed_in=False).status
        assert 401 == page.ask("/metrics", signed_in=False, headers={"Authorization": "Bearer x"}).status
        assert samples(page, Authorization=f"Bearer {TOKEN}")
        assert 503 == page.ask("/health", signed_in=False).status, "open, as load balancers have no token"


def of(text: str, *names: str) -> list[object]:
    found = json.loads(text)
    return [found[name] for name in names]
