// Light or dark before the first paint: as chosen on this device, else as the device prefers.
"use strict";
(() => {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
  const changed = () => document.dispatchEvent(new Event("themechange"));
  const kept = localStorage.getItem("theme");
  if (kept) root.dataset.theme = kept;
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
