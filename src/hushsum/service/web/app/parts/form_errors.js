// A refusal, shown at the field that it is about.
import { problemBox, ruleInWords } from "../explorer/controls.js";
import { freshId, h } from "../explorer/dom.js";
import { sentence } from "../explorer/format.js";

/** What was refused, by the name of the field in the request. */
function faultsOf(problem) {
  const faults = (problem.faults ?? []).map(({ at, rule }) => [at.replace(/^body\//, ""), ruleInWords(rule)]);
  if (problem.parameter) faults.push([problem.parameter, sentence(problem.message)]);
  else if (problem.kind === "data-refused") {
    // Records are refused for what they are; the field to change is in the advice.
    faults.push(...(problem.advised ?? []).map((each) => [each, sentence(problem.message)]));
  }
  return faults;
}

const controlOf = (name, names) => names.find(([each]) => name === each || name.startsWith(`${each}/`))?.[1];

/** Whether a problem is about one of these controls. */
export const concerns = (problem, names) => faultsOf(problem).some(([name]) => controlOf(name, names));

/**
 * Show a problem: at its fields, if the form has controls of these names, else in `place`. `names` are pairs of a name
 * in the request and the control for it. The first of them gets the focus.
 */
export function showProblem(problem, names, place) {
  clearProblems(names, place);
  const left = [];
  let first = null;
  for (const [name, text] of faultsOf(problem)) {
    const control = controlOf(name, names);
    if (!control) {
      left.push([name, text]);
      continue;
    }
    mark(control, text);
    first ??= control;
  }
  if (first === null || left.length) {
    place.replaceChildren(problemBox(problem, { heading: "h3" }));
  }
  (first ?? place.firstChild)?.focus();
}

/** Mark a control as wrong until it is changed. */
export function mark(control, text) {
  const id = freshId("wrong");
  const details = control.closest("details");
  if (details) details.open = true;
  const said = h("p", { class: "wrong", role: "alert", id }, sentence(text));
  const before = control.getAttribute("aria-describedby");
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", [before, id].filter(Boolean).join(" "));
  (control.closest(".control, .field") ?? control.parentElement).append(said);
  control.unmark = () => {
    said.remove();
    control.removeAttribute("aria-invalid");
    if (before) control.setAttribute("aria-describedby", before);
    else control.removeAttribute("aria-describedby");
    delete control.unmark;
  };
  control.addEventListener("input", () => control.unmark?.(), { once: true });
}

/** Say what is wrong with a control below it: the browser's bubble would cover its hint. */
export function replaceBubbles() {
  document.addEventListener("invalid", (event) => {
    const control = event.target;
    event.preventDefault();
    control.unmark?.();
    // What is wrong by a rule of the form is said by the form.
    if (!control.validity.customError) mark(control, control.validity.patternMismatch ? control.title : control.validationMessage);
    if (control.form.querySelector("input:invalid, select:invalid") === control) control.focus();
  }, true);
}

export function clearProblems(names, place) {
  for (const [, control] of names) control.unmark?.();
  place.replaceChildren();
}
