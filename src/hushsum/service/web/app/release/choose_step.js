// Step 2: choose what to release, with its predicted error.
import { field } from "../explorer/controls.js";
import { announce, h, refill } from "../explorer/dom.js";
import { modelTitle } from "../explorer/format.js";
import { gauge } from "../parts/gauge.js";
import { columnsForm } from "./columns_form.js";
import { fileForm } from "./file_form.js";
import { modelForm } from "./model_form.js";
import { publicRows } from "./public_rows.js";
import { existingForm, sumForm } from "./sum_form.js";
import { termsForm } from "./terms_form.js";

const SUM = "kernel-sums";

/** `done({terms, names})`: the request for a release of an upload or of a tally, or for a model; `names` are its fields. */
export function chooseStep(place, { dataset, models, kernels, uploads, upload, columns: names, nameless, encoding, tally, declared }, done, back) {
  const look = () => {
    current?.look();
    const { rho, epsilon } = terms.promise() ?? {};
    refill(budget, gauge(dataset.budget, { next: rho ?? epsilon ?? 0 }));
  };
  const budget = h("section", { class: "card", "aria-label": "Budget" });
  const terms = termsForm(dataset, look, declared);
  const file = fileForm({ names, encoding, format: upload?.format, changed: () => (columns ? columns.rebuild() : look()) });
  const columns = tally ? null : columnsForm(names, look, { nameless, declared, dates: file.dates });
  const sample = publicRows(dataset, uploads, upload, look);
  const { written } = file;
  const goal = goals(models, arrange);
  const own = h("div", { class: "fields" });
  const more = h("details", {}, h("summary", {}, "More settings"));
  const about = h("div", {});
  const beside = h("div", { class: "two-beside stack" });
  // On narrow screens the panel is far below; screen readers have it anyway.
  const glance = h("p", { class: "glance", "aria-hidden": "true" });
  const report = (error) => refill(glance, "Predicted error ", h("strong", {}, error));
  let current = null;

  const form = h(
    "form",
    {
      class: "stack",
      onsubmit: async (event) => {
        event.preventDefault();
        const request = await current.request();
        if (request && terms.promise()) {
          const names = [...terms.names, ...(current.names ?? []), ["public", sample.control], ...file.names];
          return done({ terms: { ...request, name: terms.name() }, names });
        }
        announce(`Not yet: ${beside.querySelector("[role=status]").textContent}`);
        beside.scrollIntoView({ block: "nearest" });
      },
    },
    h(
      "div",
      { class: "card stack" },
      declared && h("p", { class: "note" }, "Sample records: made up by the service, so their columns, bounds and number are filled in. Of your own data, declare them from public knowledge."),
      !tally && models.length > 0 && field("Release", goal),
      about,
      columns?.node,
      own,
      more,
      sample.node,
      file.node,
    ),
    h("div", { class: "card stack" }, h("h2", {}, "Privacy and name"), h("div", { class: "fields" }, terms.fields)),
    h(
      "div",
      { class: "row go-on" },
      glance,
      h("button", {}, tally ? "Show the claim" : "Continue"),
      h("button", { type: "button", class: "quiet", onclick: back }, "Back"),
    ),
  );
  place.replaceChildren(h("div", { class: "two" }, form, beside));

  function arrange() {
    current?.leave?.();
    current = null;
    const kind = models.find((each) => each.name === goal.value);
    const next = tally
      ? existingForm(dataset, tally, { kernels, terms, sample, written, report })
      : kind
      ? modelForm(dataset, kind, { columns, terms, upload, names, sample, written, report }, look)
      : sumForm(dataset, { kernels, columns, terms, upload, names, sample, written, report, declared }, look);
    refill(own, next.fields);
    refill(about, next.about);
    more.replaceChildren(more.firstChild, h("div", { class: "fields" }, ...(next.more ?? [])));
    more.hidden = !next.more?.length;
    refill(beside, next.beside, budget);
    current = next;
    look();
  }
  columns?.rebuild();
  arrange();
}

function goals(models, onchange) {
  const control = h(
    "select",
    { onchange },
    h("option", { value: SUM }, "A function: records near a point"),
    models.length > 0 && h(
      "optgroup",
      { label: "A model" },
      models.map(({ name }) => h("option", { value: name }, modelTitle(name))),
    ),
  );
  control.value = SUM;
  return control;
}
