"""The system's Chromium, driven through Playwright; and what a machine without it is told."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext
    from playwright.sync_api import Page as Tab

Answer = TypeVar("Answer")

PICTURES = Path(__file__).parents[2] / "build" / "ui"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
REMEDY = "install Chromium (Debian: apt-get install chromium) and playwright (pip install 'awa-cron[browser]')"


@contextmanager
def a_browser() -> Iterator[Browser]:
    """Start the browser; without one the tests are skipped, or fail where CI says that it must be there."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415
    except ModuleNotFoundError:
        _missing("playwright is not installed")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        _missing("there is no Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield browser
        browser.close()


def _missing(what: str) -> None:
    message = f"{what}: {REMEDY}"
    if os.environ.get("AWA_CRON_REQUIRE_BROWSER"):
        pytest.fail(message)
    pytest.skip(message)


@contextmanager
def a_tab(browser: Browser, **options: Any) -> Iterator[Tab]:
    """Open a tab of its own cookies; what the browser complains of is the test's error."""
    context: BrowserContext = browser.new_context(
        **{"viewport": {"width": 1280, "height": 900}, "timezone_id": "Europe/Berlin", "locale": "en-GB"} | options
    )
    context.set_default_timeout(15_000)
    complaints: list[str] = []
    tab = context.new_page()
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("dialog", lambda dialog: complaints.append(f"a dialog: {dialog.message}"))
    foreign: list[str] = []
    tab.on("request", lambda request: foreign.append(request.url) if "//127.0.0.1:" not in request.url else None)
    yield tab
    context.close()
    assert [] == complaints
    assert [] == foreign, "the page works without internet"


def picture(tab: Tab, name: str, *, whole: bool = True) -> None:
    """Leave a picture of the page as an artefact."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=PICTURES / f"{name}.png", full_page=whole)


def beside(ask: Callable[..., Answer], *arguments: Any) -> Answer:
    """Run something that wants an event loop: Playwright's runs in this thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(ask, *arguments).result()


WIDTH = "() => Math.max(document.documentElement.scrollWidth, window.innerWidth)"

SMALLER_THAN_A_FINGER = """
  () => [...document.querySelectorAll("button, .button")]
    .filter((e) => e.checkVisibility() && e.offsetHeight < 36).length
"""

PALE = """() => {
  // Text whose contrast with what is behind it is below WCAG's 4.5, or 3 for large text.
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (rgb) => rgb.slice(0, 3).map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    const text = walk.currentNode.textContent.trim();
    if (!text || !element.checkVisibility() || element.closest(".hide")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(parse(style.color)), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (contrast < least) found.push(`${text}: ${contrast.toFixed(2)}`);
  }
  return found;
}"""

UNNAMED = """() => {
  // What a screen reader could not tell: fields, buttons, links and pictures without a name, doubled ids, tables
  // without headers.
  const found = [];
  const name = (e) => (e.getAttribute("aria-label") || e.textContent || "").trim();
  for (const e of document.querySelectorAll("a, button, summary, nav, [role=region], [role=group], svg[role=img]"))
    if (!name(e)) found.push(`no name: ${e.outerHTML.slice(0, 90)}`);
  for (const e of document.querySelectorAll("input:not([type=hidden])"))
    if (!e.labels.length) found.push(`no label: ${e.outerHTML.slice(0, 90)}`);
  for (const e of document.querySelectorAll("svg:not([role=img])"))
    if (e.getAttribute("aria-hidden") !== "true") found.push(`not hidden: ${e.outerHTML.slice(0, 60)}`);
  for (const e of document.querySelectorAll("table"))
    if (!e.querySelector("th[scope=col]")) found.push("a table without headers");
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) found.push(`twice: ${id}`);
  for (const e of document.querySelectorAll("[aria-labelledby]"))
    if (!document.getElementById(e.getAttribute("aria-labelledby"))) found.push(`nobody: ${e.id}`);
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (document.querySelectorAll("main").length !== 1) found.push("not one main");
  if (!document.documentElement.lang) found.push("no language");
  return found;
}"""
