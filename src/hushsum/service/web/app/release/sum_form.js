// A function of kernel sums: which kernel, how wide, by which method.

import { h } from "../dom.js";
import { field, number, numberIn, select, text } from "../parts/fields.js";
import { columnLabel, kernelInWords, wayOf } from "../format.js";
import { allBounded, BANDWIDTH } from "./columns_form.js";
import { planPanel } from "./plan_panel.js";

const ABOUT = {
  gaussian: "falls off smoothly",
  matern: "between Gaussian and Laplacian",
  laplacian: "falls off sharply",
  euclidean: "hash, distance in space",
  manhattan: "hash, distance along the axes",
  angular: "hash, direction only",
  hamming: "hash, share of equal codes",
};

const capital = (name) => name.charAt(0).toUpperCase() + name.slice(1);

/** Every kernel of the service, those that are described first. */
function kernelChoices(kernels) {
  const order = Object.keys(ABOUT);
  const rank = ({ name }) => (order.includes(name) ? order.indexOf(name) : order.length);
  return [...kernels]
    .sort((one, other) => rank(one) - rank(other))
    .map(({ name }) => [name, capital(name) + (ABOUT[name] ? `: ${ABOUT[name]}` : "")]);
}

/** The fields for a new tally, and its plan. */
export function sumForm(dataset, { kernels, columns, terms, names, report }, changed) {
  const person = dataset.budget.terms.unit === "person";
  const kernel = select(kernelChoices(kernels), "gaussian", { onchange: changed });
  const bandwidth = number({ required: true, min: 0, oninput: changed });
  const who = personColumn(names, columns, person);
  const most = number({
    required: person,
    min: 1,
    step: 1,
    value: dataset.budget.terms.max_per_unit ?? "",
  });
  const width = field("Bandwidth", bandwidth, { hint: BANDWIDTH });
  const plan = planPanel(dataset, report);
  const hasWidth = () =>
    kernels.find(({ name }) => name === kernel.value).parameters.includes("bandwidth");
  const kernelRequest = () => ({
    kernel: kernel.value,
    ...(hasWidth() ? { bandwidth: numberIn(bandwidth) } : {}),
  });

  function whatIsMissing() {
    if (!columns.chosen().length) return "Choose a column.";
    if (bandwidth.required && !(numberIn(bandwidth) > 0)) return "Enter a bandwidth.";
    if (columns.halfBounded()) {
      return "Enter a lowest and a highest value for every column, the lower one first; or for none.";
    }
    if (!terms.promise()) return "Enter how much to spend.";
    if (!terms.records()) return "Enter the approximate number of records.";
    return null;
  }

  return {
    beside: plan.node,
    fields: [
      field("Similarity", kernel),
      width,
      ...(person
        ? [field("Column with the person's id", who), field("Most records per person", most)]
        : []),
    ],
    look() {
      width.hidden = !hasWidth();
      bandwidth.required = hasWidth();
      const missing = whatIsMissing();
      if (missing) return plan.clear(missing);
      const bounds = columns.bounds();
      plan.ask(
        question(
          { ...kernelRequest(), dim: columns.chosen().length },
          allBounded(bounds) ? bounds : null,
          terms.promise(),
          terms.records(),
          dataset,
          person ? numberIn(most) : null,
        ),
      );
    },
    leave: () => columns.bar("person", null),
    /** The request for a tally; null if there is no plan for it. */
    async tally() {
      const option = await plan.picked();
      if (!option) return null;
      const bounds = columns.bounds();
      const request = {
        columns: columns.chosen(),
        ...kernelRequest(),
        method: option.method,
        ...option.settings,
      };
      if (allBounded(bounds)) request.bounds = bounds;
      if (person) Object.assign(request, { unit_column: who.value.trim(), max_per_unit: numberIn(most) });
      return request;
    },
  };
}

/** The column of persons' ids: one of the file's, or typed. It is not a feature. */
function personColumn(names, columns, person) {
  if (!person) return text();
  const bar = () => columns.bar("person", control.value.trim() || null);
  const control = names
    ? select(names.map((each) => [each, each]), names[0], { onchange: bar })
    : text({ required: true, onchange: bar });
  bar();
  return control;
}

/** The plan of a tally that exists: its method is settled, only the promise is open. */
export function existingForm(dataset, tally, { terms, report }) {
  const { facts } = tally;
  const plan = planPanel(dataset, report);
  return {
    beside: plan.node,
    about: h(
      "p",
      { class: "soft" },
      `From a tally of ${facts.columns?.map(columnLabel).join(", ") ?? "sets"}: ${
        wayOf(facts.basis).toLowerCase()
      }, ${kernelInWords(facts.kernel)}.`,
    ),
    look() {
      const promise = terms.promise();
      if (!promise || !terms.records()) {
        plan.clear("Enter how much to spend, and the approximate number of records.");
        return;
      }
      plan.ask(question({ tally: tally.id }, null, promise, terms.records(), dataset, null));
    },
  };
}

function question(what, bounds, promise, records, dataset, most) {
  const request = { ...what, records, relation: dataset.budget.terms.relation };
  if (bounds) request.bounds = bounds;
  if (promise.rho) request.rho = promise.rho;
  else request.epsilon = [promise.epsilon];
  if (promise.delta) request.delta = promise.delta;
  if (most) request.max_per_unit = most;
  return request;
}
