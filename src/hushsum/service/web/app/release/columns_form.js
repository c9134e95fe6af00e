// Which columns, and their declared bounds.
import { field, number, numberIn, text } from "../explorer/controls.js";
import { h } from "../explorer/dom.js";
import { columnLabel } from "../explorer/format.js";

const TYPED = "Their names, separated by commas.";
const NAMELESS =
  "The header could not be read: it has a number or nothing in the place of a name. Type the names of the header, separated by commas.";

/**
 * Column choice. `names` are those of the file, or null where they must be typed; `nameless` if its header has none;
 * `declared` is what is known of sample records, `dates` which columns are dates: their bounds are dates, too.
 */
export function columnsForm(names, changed, { nameless = false, declared = null, dates = null } = {}) {
  const typed = names === null
    ? text({ required: true, placeholder: "age, hours_per_week", onchange: () => rebuild() })
    : null;
  const boxes = names?.map((name, at) => ({
    name,
    box: h("input", {
      type: "checkbox",
      checked: declared ? declared.columns.includes(name) : at < 2 && names.length <= 6,
      onchange: () => rebuild(),
    }),
  })) ?? [];
  const bounds = new Map();
  const rows = h("div", {});
  const barred = new Map();

  const chosen = () =>
    (typed
      ? typed.value.split(",").map((each) => each.trim()).filter(Boolean)
      : boxes.filter(({ box }) => box.checked).map(({ name }) => name)).filter((each) =>
        ![...barred.values()].includes(each)
      );

  const isDate = (name) => dates?.has(name) ?? false;

  const pairs = () =>
    chosen().map((name) => {
      const [low, high] = bounds.get(name).map((each) => (isDate(name) ? dates.numberOf(each.value) : numberIn(each)));
      return low !== null && high !== null && low < high ? [low, high] : null;
    });

  function rebuild() {
    const now = chosen();
    for (const name of now) {
      if (!bounds.has(name)) {
        bounds.set(
          name,
          ["lowest", "highest"].map((end, side) =>
            number({
              "aria-label": `${end} ${columnLabel(name)}`,
              value: declared?.bounds[declared.columns.indexOf(name)]?.[side] ?? "",
              oninput: () => changed(),
            })
          ),
        );
      }
    }
    // A value that is of the other type is emptied by the browser.
    for (const name of now) for (const each of bounds.get(name)) each.type = isDate(name) ? "date" : "number";
    const kind = now.some(isDate) ? "pair pair-dates" : "pair";
    rows.replaceChildren(
      h(
        "div",
        { class: `${kind} pair-head`, "aria-hidden": "true" },
        h("span", {}, "column"),
        h("span", {}, "lowest"),
        h("span", {}, "highest"),
      ),
      ...now.map((name) =>
        h("div", { class: kind }, h("span", {}, columnLabel(name)), ...bounds.get(name))
      ),
    );
    changed();
  }

  const node = h(
    "div",
    { class: "stack" },
    typed ? field("Columns", typed, { hint: nameless ? NAMELESS : TYPED }) : h(
      "fieldset",
      {},
      h("legend", { class: "label" }, "Columns"),
      h("div", { class: "choices" }, boxes.map(({ name, box }) => h("label", { class: "choice" }, box, columnLabel(name)))),
    ),
    h(
      "fieldset",
      {},
      h("legend", { class: "label" }, "Bounds"),
      rows,
      h(
        "p",
        { class: "hint" },
        "Declare what is possible, from public knowledge. Do not take bounds from the records: that would reveal them. Values outside are clipped.",
      ),
    ),
  );
  return {
    node,
    rebuild,
    chosen,
    /** A column that is predicted, or that names the person, is not also a feature; null frees it again. */
    bar(role, name) {
      barred.set(role, name);
      for (const { name: each, box } of boxes) {
        box.closest("label").hidden = [...barred.values()].includes(each);
      }
      rebuild();
    },
    /** Whether bounds were begun and not finished, or are upside down. */
    halfBounded: () =>
      chosen().some((name) => bounds.get(name).some((each) => each.value !== "")) && !allBounded(pairs()),
    /** The declared pairs; null for a column whose pair is not complete or upside down. */
    bounds: pairs,
  };
}

const WIDTHS = {
  units: "in the columns' units: try a tenth of a range",
  bounds: "as a fraction of each column's range: try 0.1",
  "": "in the columns' units: try a tenth of a range. Where the ranges of two columns differ by more than ten times, it is a fraction of each: try 0.1",
};

/** What a bandwidth is, by the scale that is chosen. */
export const bandwidthHint = (scale = "") =>
  `The distance at which records count as near, ${WIDTHS[scale]}. Do not choose it by looking at the records.`;

export const allBounded = (pairs) => pairs.length > 0 && pairs.every((each) => each !== null);
