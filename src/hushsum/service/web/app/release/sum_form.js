// A function of kernel sums: which kernel, how wide, by which method.

import { h } from "../dom.js";
import { field, hintOf, number, numberIn, select, text } from "../parts/fields.js";
import { columnLabel, kernelInWords, wayOf } from "../format.js";
import { allBounded, bandwidthHint } from "./columns_form.js";
import { planPanel } from "./plan_panel.js";
import { settingField } from "./setting_field.js";

const ABOUT = {
  gaussian: "falls off smoothly",
  matern: "smooth to sharp",
  laplacian: "falls off sharply",
  euclidean: "hash, distance in space",
  manhattan: "hash, distance along the axes",
  angular: "hash, direction only",
  hamming: "hash, share of equal codes",
};

const capital = (name) => name.charAt(0).toUpperCase() + name.slice(1);

/** Every kernel of the service, those that are described first. */
export function kernelChoices(kernels) {
  const order = Object.keys(ABOUT);
  const rank = ({ name }) => (order.includes(name) ? order.indexOf(name) : order.length);
  return [...kernels]
    .sort((one, other) => rank(one) - rank(other))
    .map(({ name }) => [name, capital(name) + (ABOUT[name] ? `: ${ABOUT[name]}` : "")]);
}

/** The fields for a new tally, and its plan. */
export function sumForm(dataset, { kernels, columns, terms, names, sample, written, report, declared }, changed) {
  const person = dataset.budget.terms.unit === "person";
  const kernel = select(kernelChoices(kernels), "gaussian", { onchange: changed });
  const bandwidth = number({ required: true, min: 0, value: declared?.bandwidth ?? "", oninput: changed });
  const who = personColumn(names, columns, person);
  const most = number({
    required: person,
    min: 1,
    step: 1,
    value: dataset.budget.terms.max_per_unit ?? "",
  });
  const width = field("Bandwidth", bandwidth, { hint: bandwidthHint() });
  const plan = planPanel(dataset, report);
  const taken = () => kernels.find(({ name }) => name === kernel.value);
  const hasWidth = () => taken().parameters.includes("bandwidth");
  // One field for every setting that some kernel has; those of other kernels are hidden.
  const settings = new Map(
    kernels.flatMap((each) => each.settings).map((each) => [each.name, each]),
  );
  const further = [...settings.values()].map((each) => settingField(each, changed));
  const offered = (each) => taken().settings.some(({ name }) => name === each.name);
  const kernelRequest = () => ({
    kernel: kernel.value,
    ...(hasWidth() && numberIn(bandwidth) !== null ? { bandwidth: numberIn(bandwidth) } : {}),
    ...Object.fromEntries(
      further.filter((each) => offered(each) && each.value() !== undefined).map((each) => [each.name, each.value()]),
    ),
  });

  function whatIsMissing() {
    if (!columns.chosen().length) return "Choose a column.";
    if (bandwidth.required && !(numberIn(bandwidth) > 0)) return "Enter a bandwidth, or give public rows that decide it.";
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
      ...further.map((each) => each.node),
      ...(person
        ? [field("Column with the person's id", who), field("Most records per person", most)]
        : []),
    ],
    look() {
      sample.offer(true);
      width.hidden = !hasWidth();
      bandwidth.required = hasWidth() && sample.id() === null;
      for (const each of further) each.node.hidden = !offered(each);
      hintOf(bandwidth, bandwidthHint(further.find((each) => each.name === "scale")?.value()));
      const missing = whatIsMissing();
      if (missing) return plan.clear(missing);
      const bounds = columns.bounds();
      plan.ask(
        question(
          { ...kernelRequest(), ...written(), dim: columns.chosen().length, relation: relationOf(dataset, written().drop_missing) },
          allBounded(bounds) ? bounds : null,
          terms.promise(),
          terms.records(),
          person ? numberIn(most) : null,
          sample.id(),
        ),
        { counted: countsRecords(kernels, kernel.value) },
      );
    },
    leave: () => columns.bar("person", null),
    names: [
      ["kernel", kernel],
      ["bandwidth", bandwidth],
      ["unit_column", who],
      ["max_per_unit", most],
      ...further.map((each) => [each.name, each.control]),
    ],
    /** The request for a tally; null if there is no plan for it. */
    async tally() {
      const option = await plan.picked();
      if (!option) return null;
      const bounds = columns.bounds();
      const request = {
        columns: columns.chosen(),
        ...written(),
        ...kernelRequest(),
        method: option.method,
        ...option.settings,
      };
      if (allBounded(bounds)) request.bounds = bounds;
      if (sample.id()) request.public = sample.id();
      if (person) Object.assign(request, { unit_column: who.value.trim(), max_per_unit: numberIn(most) });
      return request;
    },
  };
}

/** Whether the sums of a kernel are counts of records: it is known, and never negative. */
const countsRecords = (kernels, name) => kernels.find((each) => each.name === name)?.signed === false;

/** The column of persons' ids: one of the file's, or typed. It is not a feature. */
export function personColumn(names, columns, person) {
  if (!person) return text();
  const bar = () => columns.bar("person", control.value.trim() || null);
  const control = names
    ? select(names.map((each) => [each, each]), names[0], { onchange: bar })
    : text({ required: true, onchange: bar });
  bar();
  return control;
}

/** The plan of a tally that exists: its method is settled, only the promise is open. */
export function existingForm(dataset, tally, { kernels, terms, sample, report }) {
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
      sample.offer(facts.columns !== null);
      const promise = terms.promise();
      if (!promise || !terms.records()) {
        plan.clear("Enter how much to spend, and the approximate number of records.");
        return;
      }
      plan.ask(question({ tally: tally.id, relation: relationOf(dataset, facts.add_remove_only) }, null, promise, terms.records(), null, null), {
        counted: countsRecords(kernels, facts.kernel.name),
      });
    },
  };
}

/** Where records are left out, their number is not public: only add/remove can be claimed. */
export const relationOf = (dataset, dropped) => (dropped ? "add/remove" : dataset.budget.terms.relation);

function question(what, bounds, promise, records, most, sample) {
  const request = { ...what, records };
  if (bounds) request.bounds = bounds;
  if (promise.rho) request.rho = promise.rho;
  else request.epsilon = [promise.epsilon];
  if (promise.delta) request.delta = promise.delta;
  if (most) request.max_per_unit = most;
  if (sample) request.public = sample;
  return request;
}
