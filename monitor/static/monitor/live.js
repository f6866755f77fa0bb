// Open pages stay current: htmx polls for updates, and ages keep counting. Menus close; a key leads to the search.
"use strict";
(() => {
  const TICK_MILLISECONDS = 1000;
  const arrived = new WeakMap(); // element -> when it was received, by the clock of this browser
  let lastUpdate = new Date();

  function age(seconds) {
    const size = Math.abs(seconds);
    if (size < 1) return "now";
    const year = 365.25 * 86400;
    const [unit, name] = size >= 2 * year ? [year, "years"] : [[86400, "d"], [3600, "h"], [60, "min"]].find(([u]) => size >= u) ?? [1, "s"];
    const text = `${Math.floor(size / unit)} ${name}`;
    return seconds > 0 ? `${text} ago` : `in ${text}`;
  }

  function due(seconds) {
    if (seconds >= 1) return `next run ${age(-seconds)}`;
    return seconds > -1 ? "due now" : `overdue by ${age(-seconds).replace(" ago", "")}`;
  }

  // Times in the zone of the reader, with UTC beside.
  const zone = document.body.dataset.zone || "UTC";
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
  function inZone(date) {
    return `${format.format(date)} ${zone === "UTC" ? "UTC" : `(${date.toISOString().slice(11, 16)} UTC)`}`;
  }

  // The reader chooses between ages and times, for this browser; a pointer over an age shows its time.
  let showsTimes = localStorage.getItem("ages") === "times";
  for (const choice of document.querySelectorAll("[data-ages]")) {
    choice.hidden = false;
    const box = choice.querySelector("input");
    box.checked = showsTimes;
    box.addEventListener("change", () => {
      showsTimes = box.checked;
      localStorage.setItem("ages", showsTimes ? "times" : "ages");
      tick();
    });
  }
  document.addEventListener("pointerover", ({ target }) => {
    const element = target.closest("time[title]");
    if (element) element.title = inZone(new Date(element.dateTime));
  });

  // An age counts from the moment at which its number arrived, also if an update gave the element a new one.
  function tick() {
    for (const element of document.querySelectorAll("time[data-age], time[data-due]")) {
      const { age: seconds, due: until } = element.dataset;
      const key = `${element.dateTime} ${until ?? seconds}`;
      if (arrived.get(element)?.key !== key) arrived.set(element, { key, at: performance.now() });
      const entry = arrived.get(element);
      const since = (performance.now() - entry.at) / 1000;
      let text;
      if (showsTimes) text = entry.time ??= inZone(new Date(element.dateTime)); // kept: a page may have a thousand
      else if (until === undefined) text = age(Number(seconds) + since);
      else text = due(Number(until) - since);
      if (element.textContent !== text) element.textContent = text;
    }
  }

  // The version of what is shown goes along; while it is the same, the answer is 304. After an outage, which the banner
  // shows, the first answer must bring the banner of now.
  let version = `"-${document.querySelector("#banner [data-state]")?.dataset.state ?? ""}"`;
  document.addEventListener("htmx:configRequest", (event) => {
    event.detail.headers["If-None-Match"] = version;
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const { xhr } = event.detail;
    const isOutage = xhr.status === 0 || xhr.status >= 500;
    version = xhr.getResponseHeader("ETag") ?? (isOutage ? '"-outage"' : version);
  });

  // A hidden tab sends no requests; it asks at once when it becomes visible.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) document.body.dispatchEvent(new Event("back"));
  });

  // Updates change only what differs, so that scroll positions, focus and selection stay. What the reader opened stays
  // open, what the reader typed or chose stays in its form, and interactive charts update themselves.
  const changedForms = new WeakSet();
  document.addEventListener("input", (event) => event.target.form && changedForms.add(event.target.form));
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) => !(name === "open" && node.matches("details"));
  Idiomorph.defaults.callbacks.beforeNodeMorphed = (node) => !(changedForms.has(node) || node.matches?.(".is-interactive"));

  document.addEventListener("htmx:afterSwap", (event) => {
    tick();
    if (event.detail.target.id !== "banner") lastUpdate = new Date();
    showLastUpdate();
  });
  document.addEventListener("htmx:afterSettle", announce);

  // Screen readers hear of a change of state, not of each update: of the components at fault, and of [data-announce].
  const stateOf = () => document.querySelector("#banner [data-state]")?.dataset.state ?? "";
  const pageOf = () => document.querySelector("[data-announce]")?.dataset.announce ?? "";
  let [state, page] = [stateOf(), pageOf()];
  function announce() {
    const [newState, newPage] = [stateOf(), pageOf()];
    const parts = [];
    if (newState !== state) parts.push(document.querySelector("#banner .banner")?.textContent ?? "gridcast has no problem.");
    if (newPage !== page) parts.push(newPage);
    [state, page] = [newState, newPage];
    if (parts.length) document.getElementById("announcement").textContent = parts.join(" ").replace(/\s+/g, " ").trim();
  }

  // Escape and a click outside close menus; / focuses the search.
  const openMenus = () => document.querySelectorAll("details.menu[open]");
  document.addEventListener("click", (event) => {
    for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      for (const menu of openMenus()) {
        menu.open = false;
        if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
      }
    }
    const isTyping = event.target.matches("input, select, textarea, [contenteditable]");
    const search = document.getElementById("search");
    if (event.key === "/" && search && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      search.focus();
      search.select();
    }
  });

  function showLastUpdate() {
    for (const element of document.querySelectorAll("[data-last-update]")) {
      element.textContent = inZone(lastUpdate);
    }
  }

  // The server cannot be reached: show that in the banner. The next update of the banner removes it.
  document.addEventListener("htmx:sendError", () => {
    const text = document.getElementById("web-unreachable").content.cloneNode(true);
    document.getElementById("banner").replaceChildren(text);
    showLastUpdate();
    announce();
  });

  // Where not all entries of a section fit, the current one is shown.
  for (const current of document.querySelectorAll(".tabs [aria-current]")) {
    const tabs = current.parentElement;
    tabs.scrollLeft = current.offsetLeft + current.offsetWidth + tabs.offsetLeft - tabs.clientWidth;
  }

  tick();
  setInterval(tick, TICK_MILLISECONDS);
})();
