// The functions that the user may query: cards with pictures, found by name, column or dataset.
import { get } from "../api.js";
import { claimNumbers, inShort } from "../explorer/claims.js";
import { empty, field, select } from "../explorer/controls.js";
import { announce, h, refill } from "../explorer/dom.js";
import { count, day } from "../explorer/format.js";
import { subjectOf } from "../explorer/subjects.js";
import { checklist } from "../parts/checklist.js";
import { loading } from "../parts/feedback.js";
import { pageHead } from "../parts/page_head.js";
import { thumbnail } from "../parts/thumbnail.js";
import { may } from "../session.js";
import { serviceSource } from "../sources/service.js";
import { stepsOf } from "./film.js";
import { whatItIs } from "./function_words.js";

export async function functionsView(place) {
  place.append(
    pageHead("Functions", { text: "Each answers any number of queries, under a claim that was paid once." }),
    loading("functions"),
  );
  const [found, datasets] = await Promise.all([get("/functions"), may("upload") ? get("/datasets") : []]);
  const list = newest(found.reverse());
  if (!list.length) {
    place.lastChild.replaceWith(await nothing(datasets));
    return;
  }
  const names = new Map(datasets.map((each) => [each.id, each.name]));
  const cards = list.map((each) => ({ each, node: card(each, names.get(each.dataset), stepsIn(found, each)) }));
  const shown = h("ul", { class: "cards" }, cards.map(({ node }) => node));
  place.lastChild.replaceWith(h("div", { class: "stack" }, search(cards, names, shown), shown));
}

/** Of a stream the last step alone: it has a film of the others. */
const newest = (list) =>
  list.filter((each, at) => {
    const { stream } = each.facts;
    return !stream || list.findIndex((other) => other.facts.stream?.stream === stream.stream) === at;
  });

const stepsIn = (all, { facts: { stream } }) => (stream ? stepsOf(all, stream.stream).length : 0);

async function nothing(datasets) {
  if (may("release")) return await checklist({ datasets, functions: [] });
  return may("upload")
    ? empty(
      "No function yet",
      "Release one from a dataset.",
      h("p", {}, h("a", { class: "button", href: "#/datasets" }, "Go to the datasets")),
    )
    : empty("No function yet", "An owner grants you functions by your name; they appear here.");
}

/** Fields that hide the cards which do not match. */
function search(cards, names, shown) {
  const text = h("input", { type: "search", autocomplete: "off", spellcheck: "false", oninput: sift });
  const used = new Set(cards.map(({ each }) => each.dataset));
  const options = [...names].filter(([id]) => used.has(id));
  const dataset = select([["", "all datasets"], ...options], "", { onchange: sift });
  const none = h("p", { class: "soft", hidden: true }, "No function matches.");
  function sift() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = ({ each }) => {
      const about = `${each.name} ${names.get(each.dataset) ?? ""} ${whatItIs(each.facts)}`.toLowerCase();
      return words.every((word) => about.includes(word)) && ["", each.dataset].includes(dataset.value);
    };
    const found = cards.filter(matches);
    refill(shown, found.map(({ node }) => node));
    none.hidden = found.length > 0;
    announce(`${count(found.length, "function")} found.`);
  }
  return h(
    "div",
    { class: "stack-small", role: "search" },
    h("div", { class: "fields" }, field("Search", text), options.length > 1 && field("Dataset", dataset)),
    none,
  );
}

function card(each, dataset, steps) {
  const from = dataset ?? (each.owned ? "a deleted dataset" : "granted to you");
  return h(
    "li",
    { class: "card card-link card-function" },
    thumbnail(subjectOf(each, serviceSource(each))),
    h(
      "div",
      { class: "card-text" },
      h("h2", {}, h("a", { href: `#/functions/${each.id}` }, each.name)),
      h("p", { class: "soft" }, whatItIs(each.facts)),
      steps > 1 && h("p", {}, h("a", { href: `#/films/${each.facts.stream.stream}` }, `Film of ${steps} steps`)),
      claimNumbers(each.facts.claim),
      h("p", { class: "small soft" }, inShort(each.facts.claim)),
      h("p", { class: "small soft" }, `${from} · ${day(each.created)}`),
    ),
  );
}
