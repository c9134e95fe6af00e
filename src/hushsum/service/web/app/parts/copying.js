// Text to the clipboard, and files to the disk.

import { announce, h } from "../dom.js";

/** Put a text on the clipboard; where that is not allowed, show it selected so that it can be copied by hand. */
export async function copy(text, what, place) {
  try {
    await navigator.clipboard.writeText(text);
    announce(`${what} is copied.`);
    place?.replaceChildren();
    return true;
  } catch {
    const shown = h("textarea", { class: "copied code", readonly: true, rows: 5, "aria-label": what });
    shown.value = text;
    place?.replaceChildren(shown);
    shown.focus();
    shown.select();
    announce(`${what} is selected; copy it with the keyboard.`);
    return false;
  }
}

/** A button that copies; it says for a moment that it has. */
export function copyButton(name, what, text, place) {
  const button = h("button", {
    type: "button",
    class: "plain",
    onclick: async () => {
      if (!(await copy(text(), what, place))) return;
      button.textContent = "Copied";
      setTimeout(() => {
        button.textContent = name;
      }, 1500);
    },
  }, name);
  return button;
}

/** Save bytes or text under a name. */
export function save(content, name, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  announce(`${name} is saved.`);
}

/** A name that every disk takes. */
export const fileName = (text) => text.replace(/[\\/:*?"<>|\p{Cc}]+/gu, "-").trim() || "function";

/** One table as CSV. A cell that a spreadsheet would run as a formula is quoted with an apostrophe. */
export function csv(names, rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return [names, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
