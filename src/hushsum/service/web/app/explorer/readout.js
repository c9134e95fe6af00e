// One point: its coordinates, typed or clicked, and its answer.

import { h, refill } from "../dom.js";
import { field, number, numberIn } from "../parts/fields.js";
import { sentence, withError, writer } from "../format.js";
import { valueName } from "./picture.js";

/**
 * Fields for the shown axes, and a place for the answer. `moved(axis, value)` is called when a number is typed. Where
 * queries are limited, none is sent automatically: a button calls `ask`.
 */
export function readout(subject, moved, ask = null) {
  const fields = h("div", { class: "fields" });
  const output = h("div", { class: "readout", role: "status", "aria-live": "polite", "aria-atomic": "true" });
  const others = h("div", { class: "others" });
  const node = h(
    "section",
    { "aria-label": "One point" },
    h("h2", {}, "At a point"),
    fields,
    others,
    subject.questions !== null && ask !== null &&
      h("button", { type: "button", class: "quiet ask-point", onclick: ask }, "Query this point"),
    output,
  );
  let inputs = new Map();
  return {
    node,
    others,
    /** Show fields for these axes. */
    offer(axes, at) {
      inputs = new Map(
        axes.map((axis) => [
          axis,
          number({
            value: tidy(at[axis]),
            onchange: (event) => numberIn(event.target) !== null && moved(axis, numberIn(event.target)),
          }),
        ]),
      );
      fields.replaceChildren(...axes.map((axis) => field(subject.labels[axis], inputs.get(axis))));
    },
    place(at) {
      for (const [axis, input] of inputs) {
        if (document.activeElement !== input || numberIn(input) !== at[axis]) input.value = tidy(at[axis]);
      }
    },
    /** The answer, or the difference of two and both of them. */
    report(state, { own, others, shown }) {
      const name = valueName(subject, state);
      if (shown.label) refill(output, classWords(subject, name, shown));
      else if (others) {
        refill(output, numberWords(name, shown), [[subject, own], [state.other, others]].map(([{ title }, answers]) =>
          small(`${title}: ${inline(answers)}`)
        ));
      } else refill(output, subject.counts && state.of === "sum" ? countWords(shown) : numberWords(name, shown));
    },
    fail: (problem) => output.replaceChildren(h("p", { class: "wrong" }, sentence(problem.message))),
  };
}

/** A coordinate with just enough digits to distinguish it from its neighbours. */
export const tidy = (value) => String(Number(value.toPrecision(6)));

function numberWords(name, { value, stderr, lower, upper }) {
  const { value: number, error } = withError(value[0], stderr[0]);
  return [
    small(name),
    h("span", { class: "big-number" }, number, error !== "unknown" && h("small", {}, ` ± ${error}`)),
    lower[0] !== null && small(interval({ stderr, lower, upper })),
    error === "unknown" && small("this model reports no error at a point"),
  ];
}

/** A count of records: about so many, or fewer than so many where the error is larger. */
function countWords(answers) {
  const [value, error, lower, upper] = ["value", "stderr", "lower", "upper"].map((part) => answers[part][0]);
  if (error === null || value === null) return numberWords("records near here", answers);
  const { value: number, error: exactly } = withError(value, error);
  const few = lower !== null && lower <= 0;
  return [
    few
      ? h("span", { class: "big-number" }, `fewer than ${whole(Math.max(1, upper))}`, h("small", {}, " records near here"))
      : h(
        "span",
        { class: "big-number" },
        `about ${whole(value, error)}`,
        h("small", {}, ` records near here, ± ${whole(Math.max(1, error))}`),
      ),
    small(few ? `estimate ${number} ± ${exactly}: no different from 0` : interval(answers)),
  ];
}

/** A whole number of records, with as many digits as its error justifies: 26,000 where it is ± 400. */
export function whole(value, error = 1) {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, error))) - 1);
  return (Math.round(value / step) * step).toLocaleString("en").replace("-", "−");
}

const inline = (answers) => {
  const { value, error } = withError(answers.value[0], answers.stderr[0]);
  return error === "unknown" ? value : `${value} ± ${error}`;
};

function interval({ stderr, lower, upper }) {
  const write = writer(stderr[0]);
  return `95 %: ${write(lower[0])} to ${write(upper[0])}`;
}

function classWords(subject, name, { label, scores, stderr }) {
  const write = writer(stderr[0]);
  const each = scores && subject.classes.map((one, at) => `${one} ${write(scores[0][at])}`).join(" · ");
  return [
    small("predicted class"),
    h("span", { class: "big-number" }, label[0]),
    each && small(`${name}: ${each}${stderr[0] === null ? "" : `, each ± ${write(stderr[0])}`}`),
  ];
}

const small = (text) => h("span", { class: "small soft" }, text);
