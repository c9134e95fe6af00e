// What is shown: a map or a curve, along which columns, read as what.

import { h } from "../dom.js";
import { field, segments, select } from "../parts/fields.js";
import { caution } from "./comparison.js";

const labelled = (name, ...given) =>
  h("div", {}, h("span", { class: "label", "aria-hidden": "true" }, name), segments(name, ...given));

/** Which other function is shown with it, and how. */
function comparison(subject, state, others, arranged) {
  const options = [["", "nothing"], ...others.map(({ id, title }) => [id, title])];
  const taken = select(options, state.other?.id ?? "", {
    onchange: () => {
      state.other = others.find(({ id }) => id === taken.value) ?? null;
      arranged();
    },
  });
  const warning = state.other && caution(subject, state.other);
  return h(
    "div",
    { class: "stack-small" },
    field("Compare with", taken),
    state.other && segments("Comparison", [["overlay", "Overlay"], ["difference", "Difference"]], state.mode, (mode) => {
      state.mode = mode;
      arranged();
    }),
    warning && h("p", { class: "hint" }, warning),
  );
}

/** The controls. `arranged` is called when other axes are shown, `read` for another reading, `coloured` for other colours. */
export function choicesOf(subject, state, others, { arranged, read, coloured }) {
  const dim = subject.names.length;
  const [first, second] = state.shown;
  const axes = subject.labels.map((label, at) => [String(at), label]);
  const next = (axis) => (axis + 1) % dim;
  const arrange = (across, upwards) => {
    state.shown = [across, upwards === across ? next(across) : upwards];
    arranged();
  };
  const chosen = (event) => Number(event.target.value);

  const parts = [];
  if (dim > 1) {
    parts.push(
      labelled(
        "Drawn as",
        [["map", "Map"], ["curve", "Curve"]],
        second === null ? "curve" : "map",
        (as) => arrange(first, as === "curve" ? null : next(first)),
      ),
    );
    const across = field(
      "Across",
      select(axes, String(first), { onchange: (event) => arrange(chosen(event), second) }),
    );
    const rest = axes.filter(([at]) => Number(at) !== first);
    const upwards = second !== null && dim > 2 &&
      field("Upwards", select(rest, String(second), { onchange: (event) => arrange(first, chosen(event)) }));
    parts.push(h("div", { class: "fields" }, across, upwards));
  }
  if (subject.readings.length > 1) {
    const readings = subject.readings.map(([of, , name]) => [of, name]);
    parts.push(labelled("Reading", readings, state.of, (of) => {
      state.of = of;
      read();
    }));
  }
  if (second !== null && !subject.classes) {
    parts.push(labelled("Colour", [["value", "Value"], ["error", "Its error"]], state.layer, (layer) => {
      state.layer = layer;
      coloured();
    }));
  }
  if (others.length) parts.push(comparison(subject, state, others, arranged));
  return [
    h("h2", {}, "What is shown"),
    h("div", { class: "stack" }, parts, h("p", { class: "hint" }, subject.about)),
  ];
}
