"""The page in a real browser: each action clicked, its effect seen in the database; keyboard, phone, dark. P38."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tests import postgres
from tests.integration import commands, ui_scene
from tests.integration.test_cli import execute, fetch
from tests.integration.ui_browser import (
    PALE,
    SMALLER_THAN_A_FINGER,
    UNNAMED,
    WIDTH,
    a_browser,
    a_tab,
    beside,
    picture,
)
from tests.integration.ui_server import Page, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

EVERY_MS = 5_100
"""A little more than from one live update to the next."""
PATHS = {
    "list": "/cron",
    "one": "/cron/exchange_rates",
    "paused": "/cron/sync_crm?span=1h&at=",
    "broken": "/cron/old_import",
    "resume": "/cron/sync_crm?ask=resume",
    "remove": "/cron/heartbeat?ask=remove",
    "cancel": "/cron/heartbeat?ask=cancel",
    "queues": "/queues",
    "dead": "/dead",
    "history": "/history",
    "nothing": "/cron?q=nothing+fits",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as started:
        yield started


@pytest.fixture(scope="module")
def played(browser: Browser, server_dsn: str, databases: postgres.Databases) -> Iterator[str]:
    """A database with two hours of history; it is copied, never used."""

    async def play() -> None:
        session = await asyncpg.connect(postgres.on_database(server_dsn, name))
        await ui_scene.play(postgres.on_database(server_dsn, name), session)
        await session.close()

    name = databases.take()
    beside(asyncio.run, play())
    yield name
    databases.give_back(name)


@pytest.fixture
def scene(played: str, server_dsn: str) -> Iterator[str]:
    name = f"{played}_scene"
    beside(execute, server_dsn, f'CREATE DATABASE "{name}" TEMPLATE "{played}"')
    yield postgres.on_database(server_dsn, name)
    beside(execute, server_dsn, f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def page(scene: str, tmp_path: Path) -> Iterator[Page]:
    with serving(scene, tmp_path) as served:
        yield served


@pytest.fixture
def tab(browser: Browser, page: Page) -> Iterator[Tab]:
    with a_tab(browser) as opened:
        opened.goto(page.opening)
        yield opened


def rows(dsn: str, question: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in beside(fetch, dsn, question)]


def newest(dsn: str) -> tuple[Any, ...]:
    """The newest event: action, schedule, label."""
    return rows(dsn, "SELECT action, name, actor FROM awa.cron_events ORDER BY id DESC LIMIT 1")[0]


def said(tab: Tab) -> str:
    return tab.locator(".said").inner_text()


def test_a_schedule_is_paused_with_a_label(scene: str, tab: Tab) -> None:
    tab.get_by_role("link", name="Pause… heartbeat").click()
    tab.get_by_label("Your name, for the history").fill("Zoë")
    tab.get_by_role("button", name="Pause").click()
    assert "heartbeat is paused." == said(tab)
    assert ("pause", "heartbeat", "Zoë") == newest(scene)
    assert [("Zoë",)] == rows(
        scene, "SELECT paused_by FROM awa.cron_jobs WHERE name = 'heartbeat' AND paused_at IS NOT NULL"
    )
    tab.locator("#state").get_by_text("paused", exact=True).wait_for()
    tab.reload()
    assert 0 == tab.locator(".said").count(), "it is said once"
    tab.get_by_role("link", name="Remove…").click()
    assert "Zoë" == tab.get_by_label("Your name, for the history").input_value(), "the label is remembered"


def test_a_resume_shows_first_what_it_would_do(scene: str, tab: Tab) -> None:
    due = rows(
        scene,
        "SELECT floor(extract(epoch FROM now() - last_enqueued_at) / 120)::int"
        " FROM awa.cron_jobs WHERE name = 'sync_crm'",
    )
    tab.get_by_role("link", name="Resume… sync_crm").click()
    preview = tab.locator(".preview").inner_text()
    assert f"{due[0][0]} jobs for {due[0][0]} missed fires" in " ".join(preview.split())
    assert 10 == tab.locator(".instants time").count()
    tab.get_by_role("button", name="Resume").click()
    assert "sync_crm fires again." == said(tab)
    assert [] == rows(scene, "SELECT 1 FROM awa.cron_jobs WHERE name = 'sync_crm' AND paused_at IS NOT NULL")


def test_going_back_changes_nothing(scene: str, tab: Tab) -> None:
    before = newest(scene)
    for name in ("Resume… sync_crm", "Pause… heartbeat"):
        tab.goto(tab.url.partition("/cron")[0] + "/cron")
        tab.get_by_role("link", name=name).click()
        tab.get_by_role("link", name="Back, and change nothing").click()
    assert before == newest(scene)


def test_a_trigger_makes_a_job_at_once(scene: str, tab: Tab) -> None:
    tab.get_by_role("button", name="Trigger invoice_run").click()
    made = rows(scene, "SELECT id, metadata ->> 'cron_name' FROM awa.jobs ORDER BY id DESC LIMIT 1")[0]
    assert f"Job {made[0]} of invoice_run waits in queue billing." == said(tab)
    assert "invoice_run" == made[1]
    assert "trigger" == newest(scene)[0]


def test_jobs_are_cancelled_those_that_run_only_if_told(scene: str, tab: Tab) -> None:
    beside(
        execute,
        scene,
        """
        UPDATE awa.jobs SET state = 'available' WHERE kind = 'beat';
        UPDATE awa.jobs SET state = 'running', attempted_by = 'w', heartbeat_at = now()
        WHERE id = (SELECT max(id) FROM awa.jobs WHERE kind = 'beat')
        """,
    )
    tab.goto(tab.url + "/heartbeat")
    tab.get_by_role("link", name="Cancel jobs…").click()
    tab.get_by_role("button", name="Cancel its jobs").click()
    assert "1 run and go on." in said(tab)
    tab.get_by_role("link", name="Cancel jobs…").click()
    tab.get_by_label("Also those that run").check()
    tab.get_by_role("button", name="Cancel its jobs").click()
    assert "0 cancelled before they began, 1 told to stop." in said(tab)
    assert [("cancelled",)] == rows(scene, "SELECT DISTINCT state FROM awa.jobs WHERE kind = 'beat'")


def test_a_schedule_is_removed_after_asking_and_its_history_stays(scene: str, tab: Tab) -> None:
    tab.get_by_role("link", name="old_import", exact=True).click()
    tab.get_by_role("link", name="Remove…").click()
    assert [("old_import",)] == rows(scene, "SELECT name FROM awa.cron_jobs WHERE name = 'old_import'")
    tab.get_by_role("button", name="Remove").click()
    assert "old_import is removed; its jobs stay." == said(tab)
    assert [] == rows(scene, "SELECT name FROM awa.cron_jobs WHERE name = 'old_import'")
    assert 0 == tab.get_by_role("link", name="old_import").count()
    tab.goto(tab.url + "/old_import")
    tab.get_by_role("cell", name="remove", exact=True).wait_for()


def test_queues_are_paused_and_resumed(scene: str, tab: Tab) -> None:
    tab.get_by_role("link", name="Queues").click()
    tab.get_by_role("button", name="Pause queue crm").click()
    assert "Queue crm is paused." == said(tab)
    assert [("crm",), ("media",)] == rows(
        scene, "SELECT queue FROM awa.queue_meta WHERE paused_at IS NOT NULL ORDER BY 1"
    )
    tab.get_by_role("button", name="Resume queue media").click()
    assert [("crm",)] == rows(scene, "SELECT queue FROM awa.queue_meta WHERE paused_at IS NOT NULL")
    tab.get_by_role("link", name="Schedules", exact=True).click()
    badge = tab.locator("tr", has=tab.get_by_role("link", name="sync_crm", exact=True)).get_by_text(
        "queue paused", exact=True
    )
    badge.wait_for()


def test_dead_jobs_get_a_second_life_or_go(scene: str, tab: Tab) -> None:
    dead = [id_ for (id_,) in rows(scene, "SELECT id FROM awa.jobs_dead ORDER BY id")]
    tab.get_by_role("link", name="Dead jobs").click()
    tab.get_by_text("2 errors, the last: TimeoutError").first.click()
    tab.get_by_text("Traceback …").first.wait_for()
    tab.get_by_role("button", name=f"Retry job {dead[0]}").click()
    assert f"Job {dead[0]} waits again." == said(tab)
    tab.locator("summary", has_text=f"Delete… job {dead[1]}").click()
    tab.get_by_role("button", name=f"Delete for good job {dead[1]}").click()
    assert "1 dead job is deleted." == said(tab)
    assert [(dead[0], "available")] == rows(
        scene, f"SELECT id, state FROM awa.jobs WHERE id IN ({dead[0]}, {dead[1]})"
    )
    tab.get_by_text("No dead jobs").wait_for()


def test_the_list_is_searched_filtered_and_paged(scene: str, tab: Tab) -> None:
    beside(
        execute,
        scene,
        "INSERT INTO awa.cron_jobs (name, cron_expr, kind)"
        " SELECT 'many_' || to_char(i, 'FM0000'), '0 9 * * *', 'many' FROM generate_series(1, 120) AS i",
    )
    tab.locator(".schedules tbody tr[data-key]").nth(49).wait_for()
    assert 50 == tab.locator(".schedules tbody tr[data-key]").count()
    tab.get_by_label("Find a schedule").fill("MANY 0 9")
    tab.get_by_label("Find a schedule").press("Enter")
    tab.get_by_text("1 to 50 of 120").wait_for()
    tab.get_by_role("link", name="later names").click()
    tab.get_by_role("link", name="later names").click()
    tab.get_by_text("101 to 120 of 120").wait_for()
    tab.get_by_role("link", name="many_0120", exact=True).wait_for()
    tab.goto(tab.url.partition("?")[0])
    tab.get_by_role("link", name="broken 1").click()
    assert ["old_import"] == tab.locator(".schedules .name").all_inner_texts()


def test_an_instant_is_explained_on_the_clock_of_its_zone(tab: Tab) -> None:
    tab.goto(tab.url + "/daily_digest")
    tab.get_by_label("An instant, in Pacific/Auckland").fill("2020-01-01 09:00")
    tab.get_by_role("button", name="Explain").click()
    assert "before the anchor" in tab.locator(".answer").inner_text().lower()
    assert "2019-12-31 21:00:00 CET" in tab.locator(".answer").inner_text()
    tab.get_by_label("An instant, in Pacific/Auckland").fill("yesterday")
    tab.get_by_role("button", name="Explain").click()
    assert "'yesterday' is no time" in tab.get_by_role("alert").inner_text()


def test_times_are_shown_in_the_readers_zone_too(tab: Tab) -> None:
    tab.goto(tab.url + "/daily_digest")
    tab.get_by_role("cell", name="09:00:00 NZ").first.wait_for()
    tab.get_by_role("cell", name="21:00:00 CET").first.wait_for()
    tab.get_by_label("Your zone").fill("America/New_York")
    tab.get_by_role("button", name="Set").click()
    assert tab.url.endswith("/daily_digest")
    tab.get_by_role("cell", name="15:00:00 EST").first.wait_for()


def test_what_changes_comes_by_itself_and_leaves_the_reader_alone(browser: Browser, page: Page, scene: str) -> None:
    pause = (
        "UPDATE awa.cron_jobs SET paused_at = now(), paused_by = 'ben' WHERE name IN ('heartbeat', 'thumbnails')"
    )
    with a_tab(browser) as tab:
        tab.clock.install()
        tab.goto(page.opening)
        tab.wait_for_load_state("networkidle")  # the answer in the reader's zone must not come after the change
        row = tab.locator("tr", has=tab.get_by_role("link", name="heartbeat", exact=True))
        unfolded = tab.locator("tr", has=tab.get_by_role("link", name="thumbnails", exact=True))
        unfolded.locator("summary").click()
        beside(execute, scene, pause)
        tab.clock.run_for(EVERY_MS)
        row.get_by_text("by ben").wait_for()
        assert tab.locator("details[open]").count() == 1, "what the reader has unfolded stays so"
        tab.get_by_text("heartbeat: paused").wait_for()
        assert tab.locator("#live-said[role=status]").count() == 1, "it is said to those who do not see it"
        tab.keyboard.press("Escape")
        assert tab.locator("details[open]").count() == 0
        tab.clock.run_for(EVERY_MS)
        unfolded.get_by_text("by ben").wait_for()

        tab.get_by_role("button", name="Live").click()
        assert "false" == tab.locator("#live").get_attribute("aria-pressed")
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.clock.run_for(10 * EVERY_MS)
        assert [] == asked
        beside(execute, scene, "UPDATE awa.cron_jobs SET paused_at = NULL WHERE name = 'heartbeat'")
        tab.get_by_role("button", name="Still").click()
        row.get_by_text("by ben").wait_for(state="detached")


def test_everything_works_without_a_script(browser: Browser, page: Page, scene: str) -> None:
    with a_tab(browser, java_script_enabled=False) as tab:
        tab.goto(page.opening)
        assert tab.locator("#live").is_hidden()
        tab.get_by_text("Reload the page").wait_for()
        tab.get_by_role("button", name="Trigger heartbeat").click()
        assert said(tab).startswith("Job ")
        tab.get_by_role("link", name="Pause… heartbeat").click()
        tab.get_by_role("button", name="Pause").click()
        assert ("pause", "heartbeat") == newest(scene)[:2]
        tab.get_by_role("link", name="Resume…").click()
        tab.get_by_role("button", name="Resume").click()
        assert ("resume", "heartbeat") == newest(scene)[:2]
        tab.get_by_label("Your zone").fill("Asia/Tokyo")
        tab.get_by_role("button", name="Set").click()
        assert "JST" in tab.locator("#clock").inner_text()


def test_the_keyboard_is_enough_and_one_sees_where_one_is(scene: str, tab: Tab) -> None:
    tab.keyboard.press("Tab")
    assert "Skip to the content" == focused(tab)
    assert tab.locator(".skip").bounding_box()["y"] >= 0, "the link is seen once it has the focus"  # type: ignore[index]
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    assert "q" == tab.evaluate("document.activeElement.id"), "what is above the content is skipped"
    walk_to(tab, "heartbeat")
    walk_to(tab, "Pause… heartbeat")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**ask=pause")
    walk_to(tab, "Pause")
    tab.keyboard.press("Space")
    tab.locator(".said").wait_for()
    assert ("pause", "heartbeat") == newest(scene)[:2]


def focused(tab: Tab) -> str:
    return " ".join(str(tab.evaluate("document.activeElement.textContent")).split())


def walk_to(tab: Tab, text: str) -> None:
    for _ in range(120):
        tab.keyboard.press("Tab")
        outline = tab.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
        assert outline >= 2, f"no focus is seen on {focused(tab)!r}"
        if focused(tab) == text:
            return
    raise AssertionError(f"no way to {text!r} with the keyboard")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_can_be_read_in_light_and_dark(browser: Browser, page: Page, scheme: str) -> None:
    with a_tab(browser, color_scheme=scheme) as tab:
        tab.goto(page.opening)
        for name, path in PATHS.items():
            tab.goto(page.origin + path)
            picture(tab, f"{name}-{scheme}")
            assert [] == tab.evaluate(PALE), name
            assert [] == tab.evaluate(UNNAMED), name
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert (max(ground) < 60) == (scheme == "dark")


@pytest.mark.parametrize("width", [375, 320])
def test_nothing_is_wider_than_a_phone(browser: Browser, page: Page, scene: str, width: int) -> None:
    beside(
        execute,
        scene,
        """
        UPDATE awa.cron_jobs SET kind = repeat('k', 200), args = to_jsonb(repeat('a', 3000))
        WHERE name = 'exchange_rates';
        INSERT INTO awa.cron_jobs (name, cron_expr, kind, queue)
        VALUES (repeat('n', 200), '0 9 * * *', 'x', repeat('q', 200))
        """,
    )
    with a_tab(browser, viewport={"width": width, "height": 812}, has_touch=True, is_mobile=True) as tab:
        tab.goto(page.opening)
        for name, path in (PATHS | {"long": "/cron/" + "n" * 200}).items():
            tab.goto(page.origin + path)
            picture(tab, f"{name}-phone-{width}")
            assert tab.evaluate(WIDTH) <= width, name
        tab.goto(page.origin + "/cron")
        tab.locator("summary").first.click()
        assert tab.evaluate(WIDTH) <= width, "with the next fires unfolded"
        assert 0 == tab.evaluate(SMALLER_THAN_A_FINGER)


def test_nothing_moves_for_those_who_do_not_want_it(browser: Browser, page: Page) -> None:
    with a_tab(browser, reduced_motion="reduce") as tab:
        tab.goto(page.opening)
        tab.evaluate("document.querySelector('tr[data-key]').classList.add('new')")
        assert 0 == tab.evaluate("document.getAnimations().length")
    with a_tab(browser, reduced_motion="no-preference") as tab:
        tab.goto(page.opening)
        tab.evaluate("document.querySelector('tr[data-key]').classList.add('new')")
        assert tab.evaluate("document.getAnimations().length") > 0


def test_a_name_that_is_a_script_is_only_a_name(browser: Browser, page: Page, scene: str) -> None:
    name = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    beside(
        execute,
        scene,
        f"INSERT INTO awa.cron_jobs (name, cron_expr, kind) VALUES ('{name}', '0 9 * * *', '{name}')",
    )
    with a_tab(browser) as tab:
        tab.goto(page.opening)
        tab.get_by_role("link", name=name, exact=True).click()
        assert name == tab.get_by_role("heading", level=1).inner_text()
        tab.get_by_role("button", name="Trigger").click()
        assert name in said(tab)


def test_what_the_page_shows_of_a_timeline_is_told_in_words_too(tab: Tab) -> None:
    tab.goto(tab.url + "/exchange_rates?span=1h")
    drawn = tab.get_by_role("img", name="Timeline of exchange_rates")
    told = drawn.get_attribute("aria-label") or ""
    assert "to come" in told
    assert "coalesced" in told
    assert tab.locator("svg .t-coalesced").count() > 0
    assert told.partition(": ")[2] in tab.locator("figcaption").inner_text()
    tab.goto(tab.url.partition("/exchange")[0] + "/sync_crm?span=1h")
    assert tab.locator("svg .t-pause").count() == 1


def test_who_leads_and_since_when(browser: Browser, scene: str, page: Page, tmp_path: Path) -> None:
    """Its picture is docs/cron-page.png."""
    (tmp_path / "app.py").write_text("import awa_cron\nclient = awa_cron.Client()\n")
    with (
        commands.running("run", "app:client", "--no-work", "--dsn", scene, cwd=tmp_path),
        a_tab(browser, viewport={"width": 1180, "height": 860}) as tab,
    ):
        commands.eventually(lambda: page.ask("/health").status == 200, "somebody leads")
        tab.goto(page.opening)
        elected = rows(scene, "SELECT actor FROM awa.cron_events WHERE action = 'acquire_leader' ORDER BY id DESC")[
            0
        ][0]
        leader = " ".join(tab.locator("#leader").inner_text().split())
        assert leader.startswith(f"led by {elected}, for ")
        tab.get_by_role("button", name="Trigger invoice_run").click()
        tab.goto(page.origin + "/cron")
        picture(tab, "readme", whole=False)


def test_a_page_without_its_database_says_so_and_comes_back(
    browser: Browser, server_dsn: str, tmp_path: Path
) -> None:
    empty = "awa_cron_test_ui_empty"
    beside(execute, server_dsn, f"CREATE DATABASE {empty}")
    try:
        dsn = postgres.on_database(server_dsn, empty)
        with serving(dsn, tmp_path) as page, a_tab_that_may_fail(browser) as tab:
            tab.goto(page.opening)
            assert "awa-cron migrate" in tab.locator("main").inner_text()
            picture(tab, "no-schema")
            assert 0 == commands.run("migrate", "--dsn", dsn).returncode
            tab.wait_for_timeout(1_100)
            tab.reload()
            tab.get_by_text("No schedules yet").wait_for()
    finally:
        beside(execute, server_dsn, f"DROP DATABASE {empty} WITH (FORCE)")


class a_tab_that_may_fail:  # noqa: N801 -- a context manager, used like a function
    """A tab whose answers may be errors, which the browser reports on its console."""

    def __init__(self, browser: Browser) -> None:
        self._context = browser.new_context()

    def __enter__(self) -> Tab:
        return self._context.new_page()

    def __exit__(self, *_: object) -> None:
        self._context.close()
