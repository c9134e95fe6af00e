// Light or dark: as the system has it, until somebody chooses.

import { announce, h, s } from "./dom.js";

const KEY = "hushsum-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

const watchers = new Set();
/** Call when the colours change; charts that paint pixels need it. Returns how to stop. */
export function onTheme(action) {
  watchers.add(action);
  return () => watchers.delete(action);
}
const changed = () => watchers.forEach((each) => each());
system.addEventListener("change", changed);

const SUN = () => [
  s("circle", { cx: 12, cy: 12, r: 4 }),
  s("path", { d: "M12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4" }),
];
const MOON = () => [s("path", { d: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z" })];

/** The switch. Its name says what it does, its picture what is now. */
export function themeSwitch() {
  const button = h("button", { type: "button", class: "plain round", onclick: flip });
  function show() {
    const other = isDark() ? "light" : "dark";
    button.setAttribute("aria-label", `Use ${other} colours`);
    button.title = `Use ${other} colours`;
    button.replaceChildren(
      s("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" }, isDark() ? MOON() : SUN()),
    );
  }
  function flip() {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // Then it holds for this visit.
    }
    show();
    changed();
    announce(`The page is ${next} now.`);
  }
  system.addEventListener("change", show);
  show();
  return button;
}
