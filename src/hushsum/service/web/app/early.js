// Runs before anything is drawn, so that neither another theme nor the words for browsers without scripts flash up.
"use strict";
document.documentElement.dataset.script = "on";
try {
  const chosen = localStorage.getItem("hushsum-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; then the system's theme holds.
}
