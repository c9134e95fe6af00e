// The functions that the user may query.

import { get } from "../api.js";
import { h } from "../dom.js";
import { claimNumbers, claimSentence } from "../parts/claims.js";
import { empty, loading } from "../parts/feedback.js";
import { pageHead } from "../parts/page_head.js";
import { may } from "../session.js";
import { columnLabel, day, modelTitle } from "../format.js";

export async function functionsView(place) {
  place.append(
    pageHead("Functions", { text: "Each answers any number of queries, under a claim that was paid once." }),
    loading("functions"),
  );
  const list = (await get("/functions")).reverse();
  place.lastChild.replaceWith(list.length ? h("ul", { class: "cards" }, list.map(card)) : nothing());
}

function nothing() {
  return may("upload")
    ? empty(
      "No function yet",
      "Release one from a dataset.",
      h("p", {}, h("a", { class: "button", href: "#/datasets" }, "Go to the datasets")),
    )
    : empty("No function yet", "An owner grants you functions by your name; they appear here.");
}

function card(each) {
  return h(
    "li",
    { class: "card card-link" },
    h("h2", {}, h("a", { href: `#/functions/${each.id}` }, each.name)),
    claimNumbers(each.facts.claim),
    claimSentence(each.facts.claim),
    h(
      "p",
      { class: "small soft" },
      `${whatItIs(each.facts)} · ${day(each.created)}${each.owned ? "" : " · granted to you"}`,
    ),
  );
}

/** A short description of a function. */
export function whatItIs(facts) {
  const columns = facts.columns?.map(columnLabel).join(", ") ?? "unnamed columns";
  if (facts.model) {
    return `${modelTitle(facts.model.kind)}${
      facts.model.target ? `: ${columnLabel(facts.model.target)} from ${columns}` : ` of ${columns}`
    }`;
  }
  return `Kernel sums over ${columns}, ${facts.kernel.name} kernel`;
}
