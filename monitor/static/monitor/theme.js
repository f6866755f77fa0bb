// Set light or dark before the first paint: the choice stored on this device, else its preference.
"use strict";
(() => {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
  const changed = () => document.dispatchEvent(new Event("themechange"));
  const stored = localStorage.getItem("theme");
  if (stored) root.dataset.theme = stored;
  prefersDark.addEventListener("change", changed);
  document.addEventListener("DOMContentLoaded", () => {
    const toggle = document.querySelector("[data-theme-toggle]");
    toggle.hidden = false;
    toggle.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      localStorage.setItem("theme", root.dataset.theme);
      changed();
    });
  });
})();
