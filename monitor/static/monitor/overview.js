// Escape closes the details of a cell, which hover and focus open.
"use strict";

const root = document.documentElement.classList;
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") root.add("without-details");
});
for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, () => root.remove("without-details"));
