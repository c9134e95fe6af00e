// An owner's datasets, each with its budget; and the form that makes one.
import { get, post } from "../api.js";
import { attempt, checkbox, empty, field, NAMED, number, numberIn, select, text } from "../explorer/controls.js";
import { h } from "../explorer/dom.js";
import { day } from "../explorer/format.js";
import { checklist } from "../parts/checklist.js";
import { loading } from "../parts/feedback.js";
import { clearProblems, showProblem } from "../parts/form_errors.js";
import { gauge, standing } from "../parts/gauge.js";
import { pageHead } from "../parts/page_head.js";
import { may } from "../session.js";

export async function datasetsView(place, fresh) {
  const form = may("release") ? newDataset() : null;
  const open = form && h("button", {
    type: "button",
    "aria-expanded": "false",
    onclick: () => {
      form.hidden = !form.hidden;
      open.setAttribute("aria-expanded", String(!form.hidden));
      if (!form.hidden) form.querySelector("input").focus();
    },
  }, "New dataset");
  place.append(
    pageHead("Datasets", {
      text: "A dataset has a privacy budget. Every release spends part of it.",
      actions: open ? [open] : [],
    }),
  );
  if (form) place.append(form);
  const list = h("div", {}, loading("datasets"));
  place.append(list);
  const [datasets, functions] = await Promise.all([get("/datasets"), may("query") ? get("/functions") : []]);
  const found = datasets.reverse();
  const first = may("release") && !functions.some((each) => each.owned) &&
    (await checklist({ datasets: found, functions: [] }));
  list.replaceChildren(
    h(
      "div",
      { class: "stack" },
      first || null,
      found.length > 0 && h("ul", { class: "cards" }, found.map(card)),
      !found.length && !first && empty("No dataset yet", "An owner with permission to release creates one."),
    ),
  );
  if (fresh && open) open.click();
}

function card(each) {
  const { exhausted } = standing(each.budget);
  return h(
    "li",
    { class: "card card-link" },
    h(
      "div",
      { class: "row" },
      h("h2", {}, h("a", { href: `#/datasets/${each.id}` }, each.name)),
      exhausted && h("span", { class: "tag tag-bad" }, "Budget spent"),
    ),
    gauge(each.budget),
    h("p", { class: "small soft" }, `Protects each ${each.budget.terms.unit} · created ${day(each.created)}`),
  );
}

const KINDS = [["pure", "ε alone"], ["basic", "ε and δ"], ["zcdp", "ρ (zero-concentrated)"]];

const UNITS = ["record", "person", "adjacency row", "edge", "directed edge"].map((unit) => [unit, `each ${unit}`]);

function newDataset() {
  const name = text(NAMED);
  const kind = select(KINDS, "pure");
  const epsilon = number({ required: true, min: 0, value: "1" });
  const delta = number({ min: 0, max: 1, value: "1e-6" });
  const rho = number({ min: 0, value: "0.5" });
  const unit = select(UNITS, "record");
  const most = number({ min: 1, step: 1 });
  const replace = checkbox("Protect against replacing, not adding or removing");
  const said = h("div", {});
  const names = [["name", name], ["epsilon", epsilon], ["delta", delta], ["rho", rho], ["max_per_unit", most]];
  const shown = {
    epsilon: field("Total ε", epsilon, { hint: "1 is a common choice; smaller is safer. See the scale with every claim." }),
    delta: field("Total δ", delta),
    rho: field("Total ρ", rho),
    most: field("Most records per person", most),
  };
  const adapt = () => {
    shown.epsilon.hidden = kind.value === "zcdp";
    shown.delta.hidden = kind.value !== "basic";
    shown.rho.hidden = kind.value !== "zcdp";
    shown.most.hidden = unit.value !== "person";
    epsilon.required = kind.value !== "zcdp";
  };
  kind.addEventListener("change", adapt);
  unit.addEventListener("change", adapt);
  adapt();
  const form = h(
    "form",
    {
      class: "card stack make",
      hidden: true,
      "aria-label": "New dataset",
      onsubmit: async (event) => {
        event.preventDefault();
        const request = {
          name: name.value.trim(),
          unit: unit.value,
          relation: replace.firstChild.checked ? "replace" : "add/remove",
        };
        if (kind.value === "zcdp") request.rho = numberIn(rho);
        else request.epsilon = numberIn(epsilon);
        if (kind.value === "basic") request.delta = numberIn(delta);
        if (unit.value === "person" && numberIn(most) !== null) request.max_per_unit = numberIn(most);
        clearProblems(names, said);
        await attempt(async () => {
          const made = await post("/datasets", request);
          location.hash = `#/datasets/${made.id}`;
        }, (problem) => showProblem(problem, names, said));
      },
    },
    h(
      "div",
      { class: "fields" },
      field("Name", name),
      field("Budget counts", kind),
      shown.epsilon,
      shown.delta,
      shown.rho,
      field("Protect", unit),
      shown.most,
    ),
    replace,
    h(
      "p",
      { class: "hint" },
      "Everything except the amount is fixed permanently, and nothing may be chosen by looking at the records.",
    ),
    said,
    h("div", { class: "row" }, h("button", {}, "Create the dataset")),
  );
  return form;
}
