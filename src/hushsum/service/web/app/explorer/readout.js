// One point: its coordinates, typed or clicked, and its answer.

import { h } from "../dom.js";
import { field, number, numberIn } from "../parts/fields.js";
import { short, withError } from "../words.js";

/** Fields for the shown axes, and a place for the answer. `moved(axis, value)` is called when a number is typed. */
export function readout(subject, moved) {
  const fields = h("div", { class: "fields" });
  const told = h("div", { class: "readout", role: "status", "aria-live": "polite", "aria-atomic": "true" });
  const others = h("div", { class: "others" });
  const node = h("section", { "aria-label": "One point" }, h("h2", {}, "At a point"), fields, others, told);
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
    tell(name, answers) {
      const { value, error } = withError(answers.value[0], answers.stderr[0]);
      const interval = answers.lower[0] === null
        ? null
        : `95 %: ${short(answers.lower[0], 4)} to ${short(answers.upper[0], 4)}`;
      const scores = answers.scores &&
        subject.classes.map((each, at) => `${each} ${short(answers.scores[0][at])}`).join(" · ");
      told.replaceChildren(...[
        h("span", { class: "small soft" }, answers.label ? "predicted class" : name),
        h(
          "span",
          { class: "big-number" },
          answers.label ? answers.label[0] : value,
          !answers.label && error !== "unknown" && h("small", {}, ` ± ${error}`),
        ),
        answers.label && scores ? h("span", { class: "small soft" }, `${name}: ${scores}`) : null,
        interval && !answers.label ? h("span", { class: "small soft" }, interval) : null,
        error === "unknown" && !answers.label
          ? h("span", { class: "small soft" }, "this model tells no error at a point")
          : null,
      ].filter(Boolean));
    },
    fail: (problem) => told.replaceChildren(h("p", { class: "wrong" }, problem.message)),
  };
}

/** A coordinate with digits enough to be told from its neighbours, and no more. */
export const tidy = (value) => String(Number(value.toPrecision(6)));
