// A table of tokens, without their secrets.

import { h } from "../dom.js";
import { day, moment } from "../format.js";
import { table } from "./tables.js";

export function tokenTable(tokens, revoke, { own = null } = {}) {
  const state = (each) => {
    if (each.revoked) return h("span", { class: "tag tag-bad" }, `revoked ${day(each.revoked)}`);
    if (new Date(each.expires) < new Date()) return h("span", { class: "tag" }, "expired");
    return h("span", { class: "tag tag-good" }, own === each.id ? "in use here" : "valid");
  };
  return table(
    "Tokens, oldest first",
    [{ name: "Label", head: true }, { name: "Scopes", minor: true }, { name: "Issued", minor: true }, {
      name: "Until",
    }, {
      name: "State",
    }, { name: "" }],
    tokens.map((each) => [
      each.label || "–",
      each.scopes.join(", "),
      moment(each.created),
      day(each.expires),
      state(each),
      each.revoked ? "" : h(
        "button",
        {
          type: "button",
          class: "plain danger",
          onclick: () => revoke(each),
        },
        "Revoke",
        h("span", { class: "unseen" }, ` the token ${each.label || each.id}`),
      ),
    ]),
  );
}
