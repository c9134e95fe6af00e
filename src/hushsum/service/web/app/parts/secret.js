// A token that is shown once, until its reader says that it is saved.

import { announce, h } from "../dom.js";

/** Show a token above earlier ones, which stay: nothing else removes them. */
export function showSecret(place, title, secret) {
  const box = secretBox(title, secret);
  place.prepend(box);
  box.focus();
}

function secretBox(title, secret) {
  const shown = h("output", { "aria-label": "The token" }, secret);
  const copy = h("button", {
    type: "button",
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(secret);
        announce("The token is copied.");
        copy.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(shown);
        announce("The token is selected; copy it with the keyboard.");
      }
    },
  }, "Copy");
  const box = h(
    "div",
    { class: "secret", role: "group", "aria-label": title, tabindex: "-1" },
    h("strong", {}, title),
    shown,
    h(
      "p",
      { class: "hint" },
      "It is shown only once. The service stores a digest and cannot show it again.",
    ),
    h(
      "div",
      { class: "row" },
      copy,
      h("button", { type: "button", class: "quiet", onclick: () => box.remove() }, "I have saved it"),
    ),
  );
  return box;
}
