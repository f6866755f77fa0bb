// Open pages stay current: htmx polls for updates, ages keep counting, and scrolling and focus are kept.
"use strict";
(() => {
  const TICK_MILLISECONDS = 1000;
  const arrived = new WeakMap(); // element -> when it was received, by the clock of this browser
  let lastUpdate = new Date();

  function age(seconds) {
    const size = Math.abs(seconds);
    if (size < 1) return "now";
    const [unit, name] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([u]) => size >= u) ?? [1, "s"];
    const text = `${Math.floor(size / unit)} ${name}`;
    return seconds > 0 ? `${text} ago` : `in ${text}`;
  }

  function due(seconds) {
    if (seconds >= 1) return `next run ${age(-seconds)}`;
    return seconds > -1 ? "due now" : `overdue by ${age(-seconds).replace(" ago", "")}`;
  }

  function tick() {
    for (const element of document.querySelectorAll("time[data-age], time[data-due]")) {
      if (!arrived.has(element)) arrived.set(element, performance.now());
      const since = (performance.now() - arrived.get(element)) / 1000;
      const { age: seconds, due: until } = element.dataset;
      const text = until === undefined ? age(Number(seconds) + since) : due(Number(until) - since);
      if (element.textContent !== text) element.textContent = text;
    }
  }

  // A hidden tab sends no requests; it asks at once when it becomes visible.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) document.body.dispatchEvent(new Event("back"));
  });

  // Content is replaced: keep scroll positions, open details and the focus.
  let kept = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const target = event.detail.target;
    const focused = target.contains(document.activeElement) ? document.activeElement : null;
    kept = {
      scrolled: [...target.querySelectorAll(".scroll[id]")].map((box) => [box.id, box.scrollLeft, box.scrollTop]),
      opened: [...target.querySelectorAll("details[id][open]")].map((details) => details.id),
      focus: focused && (focused.id ? `#${focused.id}` : focused.href && `a[href="${focused.getAttribute("href")}"]`),
    };
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    for (const [id, left, top] of kept?.scrolled ?? []) document.getElementById(id)?.scrollTo(left, top);
    for (const id of kept?.opened ?? []) document.getElementById(id)?.setAttribute("open", "");
    if (kept?.focus && document.activeElement === document.body) {
      document.querySelector(kept.focus)?.focus({ preventScroll: true });
    }
    kept = null;
    tick();
    if (event.detail.target.id !== "banner") lastUpdate = new Date();
    showLastUpdate();
  });

  function showLastUpdate() {
    for (const element of document.querySelectorAll("[data-last-update]")) {
      element.textContent = `${lastUpdate.toISOString().slice(11, 16)} UTC`;
    }
  }

  // The server cannot be reached: show that in the banner. The next update of the banner removes it.
  document.addEventListener("htmx:sendError", () => {
    const text = document.getElementById("web-unreachable").content.cloneNode(true);
    document.getElementById("banner").replaceChildren(text);
    showLastUpdate();
  });

  tick();
  setInterval(tick, TICK_MILLISECONDS);
})();
