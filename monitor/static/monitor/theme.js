// Before the first paint: light or dark, as stored on this device, else as it prefers; and the time zone.
"use strict";
(() => {
  const YEAR_SECONDS = 365 * 24 * 3600;
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
  const changed = () => document.dispatchEvent(new Event("themechange"));
  const stored = localStorage.getItem("theme");
  if (stored) root.dataset.theme = stored;
  prefersDark.addEventListener("change", changed);

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !/(^|; )timezone=/.test(document.cookie)) {
    document.cookie = `timezone=${zone}; path=/; max-age=${YEAR_SECONDS}; samesite=lax`;
  }

  function choose(theme) {
    if (theme) {
      root.dataset.theme = theme;
      localStorage.setItem("theme", theme);
    } else {
      delete root.dataset.theme;
      localStorage.removeItem("theme");
    }
    changed();
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const choice of document.querySelectorAll("[data-theme-choice]")) {
      choice.hidden = false;
      const current = choice.querySelector(`[value="${root.dataset.theme ?? ""}"]`);
      if (current) current.checked = true;
      choice.addEventListener("change", (event) => choose(event.target.value));
    }
    for (const toggle of document.querySelectorAll("[data-theme-toggle]")) {
      toggle.hidden = false;
      toggle.addEventListener("click", () => {
        choose(isDark() ? "light" : "dark");
      });
    }
    for (const button of document.querySelectorAll("[data-browser-zone]")) {
      button.hidden = !zone;
      button.value = zone ?? "";
      button.querySelector("span").textContent = zone;
    }
  });
})();
