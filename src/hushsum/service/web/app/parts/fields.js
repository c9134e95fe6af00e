// Controls with their labels.

import { freshId, h } from "../dom.js";

/** A labelled control. `control` is an element; `hint` is read with it. */
export function field(label, control, { hint = null, wide = false } = {}) {
  control.id ||= freshId("field");
  const about = hint === null ? null : h("p", { class: "hint", id: `${control.id}-hint` }, hint);
  if (about) control.setAttribute("aria-describedby", about.id);
  return h(
    "div",
    { class: wide ? "field wide" : "field" },
    h("label", { for: control.id }, label),
    h("div", { class: "control" }, control, about),
  );
}

/** Another hint for a control that has one. */
export function hintOf(control, text) {
  const about = control.parentElement?.querySelector(`#${control.id}-hint`);
  if (about && about.textContent !== text) about.textContent = text;
}

/** What the service accepts as a name: letters and digits of any script, and some signs. */
const NAME_PATTERN = "[\\p{L}\\p{N}][\\p{L}\\p{M}\\p{N} ._\\-'’\\(\\),&+]*";

/** What a field for a name takes; the browser shows the title where the pattern is not met. */
export const NAMED = {
  required: true,
  maxlength: 80,
  pattern: NAME_PATTERN,
  title: "Letters, digits, spaces and . _ - ' ( ) , & + only, beginning with a letter or a digit.",
};

export const text = (attributes = {}) =>
  h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...attributes });
/** Numbers are typed, not spun: `step="any"` refuses no decimals. */
export const number = (attributes = {}) =>
  h("input", { type: "number", step: "any", autocomplete: "off", inputmode: "decimal", ...attributes });

/** A list to choose from; `options` are [value, text] pairs. */
export function select(options, chosen, attributes = {}) {
  const long = options.some(([, name]) => name.length > 18);
  const control = h("select", { class: long ? "long" : null, ...attributes }, options.map(([value, name]) => h("option", { value }, name)));
  if (chosen !== undefined && chosen !== null) control.value = chosen;
  return control;
}

export function checkbox(label, attributes = {}) {
  return h("label", { class: "choice" }, h("input", { type: "checkbox", ...attributes }), label);
}

/** A few choices side by side, one of them taken. */
export function segments(legend, options, chosen, onchange) {
  const name = freshId("choice");
  return h(
    "div",
    { class: "segments", role: "radiogroup", "aria-label": legend },
    options.map(([value, label]) =>
      h(
        "label",
        {},
        h("input", {
          type: "radio",
          name,
          value,
          checked: value === chosen,
          onchange: () => onchange(value),
        }),
        h("span", {}, label),
      )
    ),
  );
}

/** The number in a field, or null if there is none. */
export const numberIn = (
  control,
) => (control.value.trim() === "" || !Number.isFinite(Number(control.value)) ? null : Number(control.value));
