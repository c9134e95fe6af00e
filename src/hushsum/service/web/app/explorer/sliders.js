// Where the axes that are not shown are cut.

import { freshId, h } from "../dom.js";
import { number, numberIn } from "../parts/fields.js";
import { tidy } from "./readout.js";

const MOST = 24;

/** A slider and a number for each of these axes. */
export function sliders(subject, axes, state, moved) {
  return [
    axes.slice(0, MOST).map((axis) =>
      slider(subject.labels[axis], state.ranges[axis], state.at[axis], (value) => moved(axis, value))
    ),
    axes.length > MOST &&
    h("p", { class: "hint" }, `and ${axes.length - MOST} more, in the middle of their ranges`),
  ];
}

function slider(label, [low, high], value, moved) {
  const id = freshId("slider");
  const range = h("input", {
    type: "range",
    id,
    min: low,
    max: high,
    step: (high - low) / 200,
    oninput: () => {
      typed.value = tidy(Number(range.value));
      moved(Number(range.value));
    },
  });
  range.value = value;
  const typed = number({
    "aria-label": `${label}, typed`,
    value: tidy(value),
    onchange: () => {
      if (numberIn(typed) === null) return;
      range.value = numberIn(typed);
      moved(numberIn(typed));
    },
  });
  return h("div", { class: "slider" }, h("label", { for: id }, label), range, typed);
}
