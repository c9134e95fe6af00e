// Runs before anything is drawn, so that a chosen theme never flashes the other one.
"use strict";
try {
  const chosen = localStorage.getItem("hushsum-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; then the system's theme holds.
}
