// What pages are made of: labelled controls, tables, problems, texts to copy and files to save.
import { announce, freshId, h } from "./dom.js";
import { sentence } from "./format.js";

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

export const text = (attributes = {}) => h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...attributes });
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

/** A button that does something; `of` says of what to those who do not see where it stands. */
export const button = (name, onclick, { look = null, of = null, ...more } = {}) =>
  h("button", { type: "button", class: look, onclick, ...more }, name, of && h("span", { class: "unseen" }, ` ${of}`));

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
        h("input", { type: "radio", name, value, checked: value === chosen, onchange: () => onchange(value) }),
        h("span", {}, label),
      )
    ),
  );
}

/** The number in a field, or null if there is none. */
export const numberIn = (
  control,
) => (control.value.trim() === "" || !Number.isFinite(Number(control.value)) ? null : Number(control.value));

// --- tables ------------------------------------------------------------------------------------------------------------

/**
 * `columns` are {name, number, head, minor}, the latter not shown on phones; `rows` lists of cells, one per column. A
 * `quiet` caption is for screen readers only: a heading shows it already. With `cards`, rows are cards on phones.
 */
export function table(caption, columns, rows, { small = false, foot = null, quiet = false, cards = false } = {}) {
  const cell = (tag, column, content, scope) =>
    h(tag, {
      class: [column.number && "number", column.minor && "minor"].filter(Boolean).join(" ") || null,
      scope,
      // Shown before the content where a row is a card; there the row of names is not seen.
      "data-name": cards && tag === "td" ? column.name || null : null,
    }, content);
  return h(
    "div",
    { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" },
    h(
      "table",
      { class: [small && "table-small", cards && "cards-narrow"].filter(Boolean).join(" ") || null },
      h("caption", { class: quiet ? "unseen" : null }, caption),
      h(
        "thead",
        {},
        h("tr", {}, columns.map((each) => cell("th", each, each.name || h("span", { class: "unseen" }, "Actions"), "col"))),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            row.map((content, at) =>
              columns[at].head
                ? cell("th", columns[at], content, "row")
                : cell("td", columns[at], content, null)
            ),
          )
        ),
      ),
      foot && h("tfoot", {}, h("tr", {}, foot.map((content, at) => cell("td", columns[at], content, null)))),
    ),
  );
}

// --- problems ----------------------------------------------------------------------------------------------------------

const TITLES = {
  "budget-exhausted": "The budget is not sufficient",
  "unauthenticated": "Not signed in",
  "forbidden": "Not allowed",
  "not-found": "Nothing here",
  "data-refused": "The records were refused",
  "file-refused": "The file was refused",
  "request-refused": "The form is not complete",
  "parameter-refused": "The parameters were refused",
  "claim-refused": "The claim was refused",
  "unknown-analyst": "No such analyst",
  "questions-spent": "No queries are left",
  "too-large": "Too large",
  "too-often": "Too many requests",
  "disk-full": "The service's disk is full",
  "quota-exceeded": "A limit is reached",
  "sharing-is-off": "Sharing is off",
  "unreachable": "No connection",
};

/** A rule that a field breaks, in words. */
export const ruleInWords = (rule) => RULES[rule] ?? rule.replace(/_/g, " ");

const RULES = {
  missing: "must be given",
  finite_number: "must be a number",
  string_pattern_mismatch: "has characters that are not allowed here",
  string_too_short: "must not be empty",
  string_too_long: "is too long",
  too_long: "has too many entries",
  greater_than: "is too small",
  less_than: "is too large",
  int_type: "must be an integer",
  float_type: "must be a number",
};

/** A problem: what is wrong and what helps, in the service's text. */
export function problemBox(problem, { heading = "h2", again = null } = {}) {
  const faults = (problem.faults ?? []).map((each) =>
    h(
      "li",
      {},
      h("code", {}, each.at.replace(/^body\//, "")),
      ` ${ruleInWords(each.rule)}`,
    )
  );
  return h(
    "div",
    { class: "problem", role: "alert", tabindex: "-1" },
    h(heading, {}, TITLES[problem.kind] ?? "Something went wrong"),
    h("p", {}, sentence(problem.message)),
    faults.length > 0 && h("ul", {}, faults),
    problem.request && h("p", { class: "small soft" }, "Request ", h("code", {}, problem.request)),
    again && h("p", {}, h("button", { type: "button", class: "quiet", onclick: again }, "Try again")),
  );
}

/** Nothing yet, and what to do about it. */
export function empty(title, text, action = null, heading = "h2") {
  return h("div", { class: "empty" }, h(heading, {}, title), h("p", {}, text), action);
}

/**
 * Do something, and say whether it was done. A problem, which has a status, is shown in a place or given to a function;
 * anything else is a mistake of the page's. What was aborted is neither.
 */
export async function attempt(action, failed) {
  try {
    await action();
    return true;
  } catch (problem) {
    if (problem.name === "AbortError") return false;
    if (problem.status === undefined) throw problem;
    if (typeof failed === "function") failed(problem);
    else failed.replaceChildren(problemBox(problem, { heading: "h3" }));
    return false;
  }
}

// --- texts and files ---------------------------------------------------------------------------------------------------

/** Put a text on the clipboard; where that is not allowed, show it selected so that it can be copied by hand. */
export async function copy(text, what, place) {
  try {
    await navigator.clipboard.writeText(text);
    announce(`${what} is copied.`);
    place?.replaceChildren();
    return true;
  } catch {
    const shown = h("textarea", { class: "copied code", readonly: true, rows: 5, "aria-label": what });
    shown.value = text;
    place?.replaceChildren(shown);
    shown.focus();
    shown.select();
    announce(`${what} is selected; copy it with the keyboard.`);
    return false;
  }
}

/** A button that copies; it says for a moment that it has. */
export function copyButton(name, what, text, place) {
  const button = h("button", {
    type: "button",
    class: "plain",
    onclick: async () => {
      if (!(await copy(text(), what, place))) return;
      button.textContent = "Copied";
      setTimeout(() => {
        button.textContent = name;
      }, 1500);
    },
  }, name);
  return button;
}

/** Save bytes or text under a name. */
export function save(content, name, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  announce(`${name} is saved.`);
}

/** A name that every disk takes. */
export const fileName = (text) => text.replace(/[\\/:*?"<>|\p{Cc}]+/gu, "-").trim() || "function";

/** One table as CSV. A cell that a spreadsheet would run as a formula is quoted with an apostrophe. */
export function csv(names, rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return [names, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
