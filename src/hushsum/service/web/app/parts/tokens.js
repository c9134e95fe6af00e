// Tokens: a table of them without their secrets, and a secret that is shown once, until its reader says that it is saved.
import { ask } from "../api.js";
import { button, table } from "../explorer/controls.js";
import { announce, h } from "../explorer/dom.js";
import { day, moment } from "../explorer/format.js";
import { dangerButton } from "./confirm.js";

/** `revoked(token)` is called after a token was revoked; `text(token)` says beforehand what that means. */
export function tokenTable(tokens, { own = null, text, said, revoked }) {
  const state = (each) => {
    if (each.revoked) return h("span", { class: "tag tag-bad" }, `revoked ${day(each.revoked)}`);
    if (new Date(each.expires) < new Date()) return h("span", { class: "tag" }, "expired");
    return h("span", { class: "tag tag-good" }, own === each.id ? "in use here" : "valid");
  };
  const revoke = (each) =>
    dangerButton("Revoke", {
      of: `the token ${each.label || each.id}`,
      title: "Revoke this token?",
      text: text(each),
      agree: "Revoke it",
      said,
      act: async () => {
        await ask("DELETE", `/tokens/${each.id}`);
        announce("The token is revoked.");
        await revoked(each);
      },
    });
  const names = [{ name: "Label", head: true }, { name: "Scopes", minor: true }, { name: "Issued", minor: true }];
  return table(
    "Tokens, oldest first",
    [...names, { name: "Until" }, { name: "State" }, { name: "" }],
    tokens.map((each) => [
      each.label || "–",
      each.scopes.join(", "),
      moment(each.created),
      day(each.expires),
      state(each),
      each.revoked ? "" : revoke(each),
    ]),
  );
}

/** Show a secret above earlier ones, which stay: nothing else removes them. */
export function showSecret(place, title, secret) {
  const shown = h("output", { "aria-label": "The token" }, secret);
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(secret);
      announce("The token is copied.");
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(shown);
      announce("The token is selected; copy it with the keyboard.");
    }
  });
  const box = h(
    "div",
    { class: "secret", role: "group", "aria-label": title, tabindex: "-1" },
    h("strong", {}, title),
    shown,
    h("p", { class: "hint" }, "It is shown only once. The service stores a digest and cannot show it again."),
    h("div", { class: "row" }, copy, button("I have saved it", () => box.remove(), { look: "quiet" })),
  );
  place.prepend(box);
  box.focus();
}
