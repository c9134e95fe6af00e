// What a view shows when there is nothing yet, or something went wrong.

import { h } from "../dom.js";
import { sentence } from "../format.js";

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
  int_type: "must be a whole number",
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

/** While something is fetched: as high as what will come, so that nothing jumps. */
export function loading(what, number = 3) {
  return h(
    "div",
    { role: "status", "aria-label": `Loading ${what}` },
    h(
      "div",
      { class: "cards", "aria-hidden": "true" },
      Array.from({ length: number }, () => h("div", { class: "skeleton" })),
    ),
  );
}

/** A bar for long work; `report(fraction or null, words)`. */
export function progress(label) {
  const bar = h("progress", { max: 1, "aria-label": label });
  const words = h("p", { class: "small soft", role: "status" }, label);
  const node = h("div", { class: "progress" }, bar, words);
  return {
    node,
    report(fraction, text) {
      if (fraction === null) bar.removeAttribute("value");
      else bar.value = fraction;
      if (text !== undefined && words.textContent !== text) words.textContent = text;
    },
  };
}
