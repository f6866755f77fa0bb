// Details of the cells of the overview, which hover and focus open: they are placed at the cell, inside of the window;
// Escape closes them.
"use strict";
(() => {
  const MARGIN = 8; // pixels to the edge of the window
  const root = document.documentElement.classList;

  function place(cell) {
    const more = cell?.querySelector(".more");
    if (!more) return;
    const box = cell.getBoundingClientRect();
    const isBelow = box.bottom + more.offsetHeight + MARGIN < innerHeight;
    more.style.left = `${Math.max(MARGIN, Math.min(box.left, innerWidth - more.offsetWidth - MARGIN))}px`;
    more.style.top = `${isBelow ? box.bottom : box.top - more.offsetHeight}px`;
  }

  function open(event) {
    const cell = event.target.closest?.(".cell");
    if (!cell || cell.contains(event.relatedTarget)) return;
    root.remove("without-details");
    place(cell);
  }

  const placeOpen = () => document.querySelectorAll(".cell:is(:hover, :focus-visible)").forEach(place);

  document.addEventListener("mouseover", open);
  document.addEventListener("focusin", open);
  document.addEventListener("scroll", placeOpen, { capture: true, passive: true });
  document.addEventListener("htmx:afterSwap", placeOpen);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") root.add("without-details");
  });
})();
