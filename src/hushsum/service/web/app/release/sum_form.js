// A function of kernel sums: which kernel, how wide, by which method.
import { h } from "../explorer/dom.js";
import { columnLabel, kernelInWords, wayOf } from "../explorer/format.js";
import { allBounded } from "./columns_form.js";
import { kernelForm, personForm } from "./kernel_form.js";
import { planPanel } from "./plan_panel.js";

/** The fields for a release of an upload, and its plan. */
export function sumForm(dataset, { kernels, columns, terms, upload, names, sample, written, report, declared }, changed) {
  const kernel = kernelForm(kernels, changed, declared?.bandwidth);
  const person = personForm(dataset, names, columns);
  const plan = planPanel(dataset, report);

  function whatIsMissing() {
    if (!columns.chosen().length) return "Choose a column.";
    if (kernel.lacksBandwidth()) return "Enter a bandwidth, or give public rows that decide it.";
    if (columns.halfBounded()) {
      return "Enter a lowest and a highest value for every column, the lower one first; or for none.";
    }
    if (!terms.promise()) return "Enter how much to spend.";
    if (!terms.records()) return "Enter the approximate number of records.";
    return null;
  }

  return {
    beside: plan.node,
    fields: [...kernel.fields, ...person.fields],
    look() {
      sample.offer(true);
      kernel.look(sample.id() !== null);
      const missing = whatIsMissing();
      if (missing) return plan.clear(missing);
      const bounds = columns.bounds();
      plan.ask(
        question(
          { ...kernel.request(), ...written(), dim: columns.chosen().length, relation: relationOf(dataset, written().drop_missing) },
          allBounded(bounds) ? bounds : null,
          terms.promise(),
          terms.records(),
          person.most(),
          sample.id(),
        ),
        { counted: kernel.counts() },
      );
    },
    leave: () => columns.bar("person", null),
    names: [...kernel.names, ...person.names],
    /** The request; null if there is no plan for it. The service plans again, with this method alone. */
    async request() {
      const option = await plan.picked();
      if (!option) return null;
      const bounds = columns.bounds();
      const request = {
        upload: upload.id,
        columns: columns.chosen(),
        records: terms.records(),
        method: option.method,
        ...written(),
        ...kernel.request(),
        ...person.request(),
        ...released(dataset, terms, written().drop_missing),
      };
      if (allBounded(bounds)) request.bounds = bounds;
      if (sample.id()) request.public = sample.id();
      return request;
    },
  };
}

/** Whether the sums of a kernel are counts of records: it is known, and never negative. */
const countsRecords = (kernels, name) => kernels.find((each) => each.name === name)?.signed === false;

/** The plan of a tally that exists: its method is settled, only the promise is open. */
export function existingForm(dataset, tally, { kernels, terms, sample, written, report }) {
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
    request: () => ({
      tally: tally.id,
      ...released(dataset, terms, facts.add_remove_only),
      ...(sample.id() ? { public: sample.id(), ...written() } : {}),
    }),
  };
}

/** What every release says of its claim. Persons and records follow from what is counted; of a graph the unit is chosen with the dataset. */
function released(dataset, terms, dropped) {
  const { unit } = dataset.budget.terms;
  const named = unit === "record" || unit === "person" ? {} : { unit };
  return { ...terms.promise(), ...named, relation: relationOf(dataset, dropped) };
}

/** Where records are left out, their number is not public: only add/remove can be claimed. */
const relationOf = (dataset, dropped) => (dropped ? "add/remove" : dataset.budget.terms.relation);

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
