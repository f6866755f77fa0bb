// Pages stay up to date: htmx asks for news, ages count on, and what the reader does is not disturbed.
"use strict";
(() => {
  const TICK_MILLISECONDS = 1000;
  const arrived = new WeakMap(); // element -> when it came, by this browser's own clock

  function age(seconds) {
    const size = Math.abs(seconds);
    if (size < 1) return "now";
    const [unit, name] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([u]) => size >= u) ?? [1, "s"];
    const text = `${Math.floor(size / unit)} ${name}`;
    return seconds > 0 ? `${text} ago` : `in ${text}`;
  }

  function tick() {
    for (const element of document.querySelectorAll("time[data-age]")) {
      if (!arrived.has(element)) arrived.set(element, performance.now());
      const since = (performance.now() - arrived.get(element)) / 1000;
      const text = age(Number(element.dataset.age) + since);
      if (element.textContent !== text) element.textContent = text;
    }
  }

  // A tab that nobody sees asks for nothing; when it is seen again, it asks at once.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) document.body.dispatchEvent(new Event("back"));
  });

  // New content takes the place of old: keep where the reader has scrolled to, and the link he is at.
  let place = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const target = event.detail.target;
    const focused = target.contains(document.activeElement) ? document.activeElement : null;
    place = {
      scrolled: [...target.querySelectorAll(".scroll[id]")].map((box) => [box.id, box.scrollLeft, box.scrollTop]),
      opened: [...target.querySelectorAll("details[id][open]")].map((details) => details.id),
      focus: focused && (focused.id ? `#${focused.id}` : focused.href && `a[href="${focused.getAttribute("href")}"]`),
    };
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const [id, left, top] of place?.scrolled ?? []) document.getElementById(id)?.scrollTo(left, top);
    for (const id of place?.opened ?? []) document.getElementById(id)?.setAttribute("open", "");
    if (place?.focus && document.activeElement === document.body) {
      document.querySelector(place.focus)?.focus({ preventScroll: true });
    }
    place = null;
    tick();
  });

  // Nobody answers: say so where the service's other troubles are told. The banner's own news removes it again.
  document.addEventListener("htmx:sendError", () => {
    const text = document.getElementById("web-away").content.cloneNode(true);
    document.getElementById("banner").replaceChildren(text);
  });

  tick();
  setInterval(tick, TICK_MILLISECONDS);
})();
