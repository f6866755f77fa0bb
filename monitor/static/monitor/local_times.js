// Times in the zone of the browser, beside UTC.
"use strict";
(() => {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const element of document.querySelectorAll("time[data-local]")) {
    element.textContent = format.format(new Date(element.dateTime));
    element.parentElement.hidden = false;
  }
  for (const heading of document.querySelectorAll("[data-local-heading]")) {
    heading.textContent = `Your time (${zone})`;
    heading.hidden = false;
  }
})();
