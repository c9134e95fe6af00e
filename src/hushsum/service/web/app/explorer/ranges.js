// The range of each axis: declared with the function, or entered.

import { h } from "../dom.js";
import { number, numberIn } from "../parts/fields.js";
import { remember, remembered } from "../storage.js";

const key = (id) => `hushsum-ranges-${id}`;

/** The ranges that are known: declared, or typed earlier in this tab; null if there are none. */
export function knownRanges(subject) {
  const count = subject.names.length;
  if (subject.bounds) {
    return subject.bounds.length === count ? subject.bounds : subject.names.map(() => subject.bounds[0]);
  }
  const kept = remembered(key(subject.id));
  return kept?.length === count ? kept : null;
}

/** A form with a low and a high for every column. */
export function rangeForm(subject, ranges, taken, { heading, hint }) {
  const said = h("p", { class: "wrong", role: "alert" });
  const rows = subject.labels.map((label, at) => {
    const [low, high] = ["lowest", "highest"].map((end, side) =>
      number({
        required: true,
        "aria-label": `${end} ${label}`,
        value: ranges ? String(ranges[at][side]) : "",
      })
    );
    return { low, high, node: h("div", { class: "pair" }, h("span", {}, label), low, high) };
  });
  return h(
    "form",
    {
      class: "stack",
      onsubmit: (event) => {
        event.preventDefault();
        const found = rows.map(({ low, high }) => [numberIn(low), numberIn(high)]);
        const wrong = found.findIndex(([low, high]) => low === null || high === null || !(low < high));
        said.textContent = wrong < 0 ? "" : `The highest ${subject.labels[wrong]} must be above the lowest.`;
        if (wrong >= 0) {
          rows[wrong].low.focus();
          return;
        }
        remember(key(subject.id), found);
        taken(found);
      },
    },
    heading && h("h2", {}, heading),
    hint && h("p", { class: "soft" }, hint),
    h(
      "div",
      {},
      h(
        "div",
        { class: "pair pair-head", "aria-hidden": "true" },
        h("span", {}, "column"),
        h("span", {}, "from"),
        h("span", {}, "to"),
      ),
      rows.map((each) => each.node),
    ),
    said,
    h("div", { class: "row" }, h("button", { class: ranges ? "quiet" : null }, "Show this range")),
  );
}
