"""Who may see the page and change things through it, over plain HTTP. P38."""

from __future__ import annotations

import html
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests import postgres
from tests.integration import commands
from tests.integration.test_cli import execute, fetch
from tests.integration.ui_server import TOKEN, Page, serving

PAGES = ("/cron", "/cron/digest", "/cron/digest?ask=resume", "/queues", "/dead", "/history")


@pytest.fixture(scope="module")
def database(server_dsn: str, databases: postgres.Databases) -> Iterator[str]:
    name = databases.take()
    dsn = postgres.on_database(server_dsn, name)
    execute(dsn, "INSERT INTO awa.cron_jobs (name, cron_expr, kind) VALUES ('digest', '0 9 * * *', 'send')")
    yield dsn
    databases.give_back(name)


@pytest.fixture(scope="module")
def page(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with serving(database, tmp_path_factory.mktemp("ui")) as served:
        yield served


def paused(dsn: str) -> bool:
    return bool(
        fetch(dsn, "SELECT paused_at IS NOT NULL AS paused FROM awa.cron_jobs WHERE name = 'digest'")[0]["paused"]
    )


def test_nothing_is_shown_without_the_token(page: Page) -> None:
    for path in PAGES:
        for headers in ({}, {"Cookie": f"awa_cron_{page.port}=guess"}, {"Authorization": "Bearer guess"}):
            refused = page.ask(path, signed_in=False, headers=headers)
            assert 401 == refused.status, (path, headers)
            assert "digest" not in refused.text
    assert 401 == page.ask("/cron?token=a-guess-that-is-wrong", signed_in=False).status
    assert 401 == page.ask(f"/cron?token={TOKEN}x", signed_in=False).status


def test_the_link_signs_in_and_the_token_leaves_the_address(page: Page) -> None:
    opened = page.ask(f"/cron?q=a%26b&token={TOKEN}", signed_in=False)
    assert (303, "/cron?q=a%26b") == (opened.status, opened.headers["location"])
    cookie = opened.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie, "the cookie proves the token and does not show it"
    assert 200 == page.ask("/cron").status
    assert 200 == page.ask("/cron", signed_in=False, headers={"Authorization": f"Bearer {TOKEN}"}).status
    away = page.ask(f"//elsewhere.example/?token={TOKEN}", signed_in=False)
    assert "/elsewhere.example/" == away.headers["location"]


def test_a_pasted_token_signs_in_too(page: Page) -> None:
    assert 401 == page.post("/sign-in", {"token": "a-guess-that-is-wrong"}).status
    signed = page.post("/sign-in", {"token": TOKEN})
    assert (303, "/cron") == (signed.status, signed.headers["location"])
    assert 403 == page.post("/sign-in", {"token": TOKEN}, headers={"Origin": "http://elsewhere.example"}).status


def test_changes_come_from_this_page_and_no_other(page: Page, database: str) -> None:
    form = {"secret": page.ask("/cron").secret, "name": "digest"}
    foreign = (
        {"Origin": "http://elsewhere.example"},
        {"Origin": f"http://localhost:{page.port}"},
        {"Origin": f"http://127.0.0.1:{page.port + 1}"},
        {"Origin": f"http://127.0.0.1:{page.port}.elsewhere.example"},
        {"Origin": f"ftp://127.0.0.1:{page.port}"},
        {"Origin": "null"},
        {"Origin": ""},  # not sent at all
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://elsewhere.example"},
    )
    for headers in foreign:
        assert 403 == page.post("/do/pause", form, headers=headers).status, headers
        assert not paused(database), headers
    assert "comes from another site" in page.post("/do/pause", form, headers={"Origin": "null"}).words
    silent = page.post("/do/pause", form, headers={"Origin": ""}).words
    assert "has no Origin header" in silent
    assert "another site" not in silent
    assert 303 == page.post("/do/pause", form, headers={"Sec-Fetch-Site": "same-origin"}).status
    assert paused(database)
    assert 303 == page.post("/do/resume", form).status
    assert not paused(database)


def test_changes_need_the_token_and_the_secret_of_a_form(page: Page, database: str) -> None:
    secret = page.ask("/cron").secret
    sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": page.origin}
    body = f"name=digest&secret={secret}"
    assert 401 == page.ask("/do/pause", method="POST", body=body, signed_in=False, headers=sent).status
    for wrong in ("", "guess", secret[:-1]):
        assert 403 == page.post("/do/pause", {"name": "digest", "secret": wrong}).status
    assert 403 == page.post("/do/pause", {"name": "digest"}).status
    assert not paused(database)


def test_another_host_name_is_not_served(page: Page) -> None:
    for host in ("elsewhere.example", f"127.0.0.1.elsewhere.example:{page.port}", "10.0.0.1", "[", ""):
        for path in ("/cron", "/health", "/static/page.css", f"/cron?token={TOKEN}"):
            refused = page.ask(path, headers={"Host": host})
            assert 403 == refused.status, (host, path)
            assert "set-cookie" not in refused.headers
    for host in ("localhost", f"localhost:{page.port}", f"[::1]:{page.port}", f"LOCALHOST:{page.port}"):
        assert 200 == page.ask("/cron", headers={"Host": host}).status, host


def test_every_answer_is_locked_down(page: Page) -> None:
    answers = [page.ask(path) for path in (*PAGES, "/static/page.js", "/nowhere", "/cron?state=nonsense")]
    answers += [page.ask("/cron", signed_in=False), page.ask("/cron", headers={"Host": "elsewhere.example"})]
    answers += [page.post("/do/pause", {}), page.ask("/cron", method="DELETE", headers={"Origin": page.origin})]
    assert {200, 400, 401, 403, 404, 405} == {answer.status for answer in answers}
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "*" not in policy
        assert "DENY" == answer.headers["x-frame-options"]
        assert "nosniff" == answer.headers["x-content-type-options"]
        assert "same-origin" == answer.headers["referrer-policy"]
        assert "server" not in answer.headers
        assert " style=" not in answer.text, "the policy would ignore it"
    assert "no-store" == page.ask("/cron").headers["cache-control"]


def test_a_read_only_page_has_no_forms_and_takes_none(database: str, page: Page, tmp_path: Path) -> None:
    with serving(database, tmp_path, "--read-only") as reading:
        for path in PAGES:
            shown = reading.ask(path)
            assert 200 == shown.status
            assert 'method="post"' not in shown.text.lower()
        secret = page.ask("/cron").secret  # the same token makes the same secret
        for what in ("pause", "trigger", "remove", "purge-dead"):
            assert 403 == reading.post(f"/do/{what}", {"name": "digest", "id": "1", "secret": secret}).status
        assert not paused(database)


NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}",
    "a/b?c=d#e&f%2Fg",
    "..",
    ".",
    "pause",
    "/leading",
    "trailing/",
    "back\\slash",
    "Größe 🌊",
    "right\u202eleft",
    " spaces ",
)


def test_every_name_is_shown_as_text_and_its_links_lead_to_it(dsn: str, tmp_path: Path) -> None:
    for name in NAMES:
        execute(
            dsn,
            "INSERT INTO awa.cron_jobs (name, cron_expr, kind, queue, paused_at, paused_by, args)"
            f" VALUES ($n${name}$n$, '61 <i> *', $n${name}$n$, $n${name}$n$, now(), $n${name}$n$, '[\"<u>\"]')",
        )
    execute(
        dsn,
        """
        INSERT INTO awa.jobs (kind, queue, state, errors) VALUES ('<i>', '<u>', 'failed', ARRAY['"<s>"'::jsonb]);
        INSERT INTO awa.cron_events (clock, action, name, actor) VALUES (now(), '<i>', '<u>', '<s>');
        """,
    )
    with serving(dsn, tmp_path) as page:
        listed = page.ask("/cron")
        links = [html.unescape(part.partition('"')[0]) for part in listed.text.split('class="name" href="')[1:]]
        assert len(NAMES) == len(links)
        steps = [link for link in links if link.partition("?")[0].rpartition("/")[2] in {".", ".."}]
        assert [] == steps, "browsers take these for steps between folders"
        answers = [page.ask(path) for path in ("/cron?q=<i>", "/queues", "/dead?queue=<u>", "/history")]
        for link in links:
            answers += [page.ask(link), page.ask(link + ("&" if "?" in link else "?") + "ask=resume")]
        assert [] == [answer.words for answer in answers if answer.status != 200]
        said = page.change("trigger", name=NAMES[0], by="<i>ops</i>")
        cookies = page.cookie + "; " + said.headers["set-cookie"].partition(";")[0]
        answers += [listed, page.ask("/cron", headers={"Cookie": cookies})]
    for answer in answers:
        for tag in ("<script>alert", "<img", "<i>", "<u>", "<s>", "</script><", "onmouseover='", 'onerror="'):
            assert tag not in answer.text, tag
        assert "\u202e" not in answer.words
    titles = {html.unescape(answer.text.partition("<title>")[2].partition(" · ")[0]) for answer in answers}
    for name in NAMES:
        assert name.replace("\u202e", "\\u202e") in titles


def test_a_change_leads_back_to_a_page_of_ours_whatever_the_form_says(page: Page) -> None:
    for back in (
        "//elsewhere.example",
        "https://elsewhere.example",
        "/cron\\..\\x",
        "/cron\r\nX: y",
        "javascript:1",
        "",
    ):
        assert "/cron" == page.change("trigger", name="digest", back=back).headers["location"], back
    assert (
        "/cron/digest?span=1h"
        == page.change("trigger", name="digest", back="/cron/digest?span=1h").headers["location"]
    )


def test_forms_that_make_no_sense_are_refused_with_the_reason(page: Page) -> None:
    said = {
        "pause": ({}, "lacks 'name'"),
        "retry-dead": ({"id": "1e3"}, "whole number"),
        "purge-dead": ({}, "lacks 'queue'"),
    }
    for what, (fields, reason) in said.items():
        refused = page.change(what, **fields)
        assert 400 == refused.status
        assert reason in refused.words
    assert 404 == page.change("pause", name="nobody").status
    assert 404 == page.change("explode", name="digest").status
    secret = page.ask("/cron").secret
    sent = {"Origin": page.origin, "Content-Type": "application/x-www-form-urlencoded"}
    for body in (f"secret={secret}&name=%ff", f"secret={secret}&name=%00", f"secret={secret}&name=" + "x" * 70_000):
        assert 400 == page.ask("/do/pause", method="POST", body=body, headers=sent).status
    assert (
        400 == page.ask("/do/pause", method="POST", body="{}", headers=sent | {"Content-Type": "text/plain"}).status
    )


def test_others_can_reach_it_only_with_a_token_of_ones_own(dsn: str, tmp_path: Path) -> None:
    refused = commands.run("ui", "--host", "0.0.0.0", "--dsn", dsn, timeout_s=20)  # or it would serve
    assert 2 == refused.returncode
    assert "--token" in refused.stderr
    short = commands.run("ui", "--token", "short", "--dsn", dsn, timeout_s=20)
    assert 2 == short.returncode
    assert "16 or more characters" in short.stderr
    with serving(dsn, tmp_path, "--host", "0.0.0.0", "--allow-host", "Cron.example.com") as page:
        assert TOKEN not in page.link
        assert 200 == page.ask("/cron", headers={"Host": "10.1.2.3"}).status, "an address cannot be rebound"
        assert 200 == page.ask("/cron", headers={"Host": "cron.example.com"}).status
        assert 403 == page.ask("/cron", headers={"Host": "elsewhere.example"}).status


def test_a_taken_port_is_told_with_the_remedy(dsn: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        refused = commands.run("ui", "--dsn", dsn, "--port", str(other.getsockname()[1]))
    assert 2 == refused.returncode
    assert "is taken" in refused.stderr
    assert "--port" in refused.stderr
    assert 2 == commands.run("ui", "--dsn", dsn, "--host", "no-such-host.invalid", "--token", TOKEN).returncode


def test_what_is_not_installed_is_told_with_the_command_that_installs_it(dsn: str) -> None:
    for package in ("starlette", "jinja2", "uvicorn"):
        program = f"import sys; sys.modules[{package!r}] = None; from awa_cron.cli import main; main()"
        told = subprocess.run(
            [sys.executable, "-c", program, "ui", "--dsn", dsn],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=commands.environment(),
        )
        assert 1 == told.returncode
        assert f"{package}, which is not installed: pip install 'awa-cron[ui]'" in told.stderr


def test_the_token_is_printed_once_and_logged_never(dsn: str, tmp_path: Path) -> None:
    with commands.running("ui", "--port", "0", "--dsn", dsn, cwd=tmp_path) as process:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        page, token = Page(link), link.partition("token=")[2]
        assert len(token) >= 32
        for path in (f"/cron?token={token}", f"/nowhere?token={token}", f"/cron/{quote(token)}?token=wrong"):
            page.ask(path, signed_in=False)
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=20)
    assert 0 == process.returncode
    assert token not in rest + errors
