// Live updates: the page is fetched again, and what has changed in it is put in place. Without this, reloading does.
"use strict";

(() => {
  const STOPS = "a, button, summary, [tabindex]";
  const body = document.body;
  const everyMs = Number(body.dataset.every) * 1000;
  if (body.hasAttribute("data-ask-zone")) tellZone();
  if (!everyMs) return;

  const button = document.getElementById("live");
  const said = document.getElementById("live-said");
  let on = true;
  let failures = 0;
  button.parentElement.hidden = false;
  document.getElementById("reload").hidden = true;
  button.addEventListener("click", () => {
    on = !on;
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "Live" : "Still";
    if (on) update();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && on) update(); });
  setInterval(() => { if (on && !document.hidden) update(); }, everyMs);

  // Fires that were unfolded lie over the page: Escape, or a click elsewhere, puts them away.
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") fold(null); });
  document.addEventListener("click", (event) => fold(event.target));

  function fold(but) {
    for (const open of document.querySelectorAll(".next details[open]")) {
      if (open.contains(but)) continue;
      if (open.contains(document.activeElement)) open.querySelector("summary").focus();
      open.open = false;
    }
  }

  // The reader's zone is the browser's, unless they have said otherwise.
  function tellZone() {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (!zone || zone === "UTC") return;
    document.cookie = `awa_cron_zone=${zone}; path=/; samesite=strict; max-age=31536000`;
    if (document.cookie.includes("awa_cron_zone=")) update();
  }

  async function update() {
    let page;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
      if (answer.status === 401) return stop("The page was started again: open its new link.");
      if (!answer.ok) throw new Error(String(answer.status));
      page = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      failures += 1;
      if (failures === 2) said.textContent = "No answer; trying again.";
      return;
    }
    if (failures) said.textContent = "";
    failures = 0;
    const table = document.querySelector("[data-rows]");
    const fresh = page.querySelector("[data-rows]");
    if (table && fresh && keys(table) !== keys(fresh)) {
      if (!busy(table)) table.replaceWith(fresh);
      said.textContent = "The list has changed.";
    }
    for (const old of document.querySelectorAll("[data-live]")) {
      const now = page.getElementById(old.id);
      if (!now || now.dataset.key !== old.dataset.key || busy(old) || old.innerHTML === now.innerHTML) continue;
      const state = text(old, ".state, .pill");
      const place = [...old.querySelectorAll(STOPS)].indexOf(document.activeElement);
      old.replaceWith(now);
      if (place >= 0) now.querySelectorAll(STOPS)[place]?.focus();
      if (old.dataset.key && state !== text(now, ".state, .pill")) {
        now.classList.add("new");
        said.textContent = `${old.dataset.key}: ${text(now, ".state")}`;
      }
    }
  }

  // What the reader has unfolded, or writes in, is left alone.
  function busy(element) {
    const writes = document.activeElement instanceof HTMLInputElement && element.contains(document.activeElement);
    return writes || element.querySelector("details[open]") !== null;
  }

  function keys(table) {
    return [...table.querySelectorAll("[data-key]")].map((row) => row.dataset.key).join("\n");
  }

  function text(element, selector) {
    const found = element.querySelector(selector);
    return found ? found.textContent.replace(/\s+/g, " ").trim() : "";
  }

  function stop(why) {
    on = false;
    button.setAttribute("aria-pressed", "false");
    said.textContent = why;
  }
})();
