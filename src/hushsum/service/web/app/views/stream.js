// Start a stream: what every step shows, and one claim for all of them.
import { get } from "../api.js";
import { attempt, empty, field, number, numberIn, select } from "../explorer/controls.js";
import { announce, h } from "../explorer/dom.js";
import { loading } from "../parts/feedback.js";
import { concerns, mark, showProblem } from "../parts/form_errors.js";
import { gauge, standing } from "../parts/gauge.js";
import { pageHead } from "../parts/page_head.js";
import { allBounded, columnsForm } from "../release/columns_form.js";
import { confirmStep } from "../release/confirm_step.js";
import { formatOf, headerOf, headOf, isText, RECORDS } from "../release/file_columns.js";
import { fileForm } from "../release/file_form.js";
import { kernelForm, personForm } from "../release/kernel_form.js";
import { termsForm } from "../release/terms_form.js";

const METHODS = [
  ["grid", "Grid: up to four columns"],
  ["fourier_features", "Fourier features: smooth kernels"],
  ["race", "Hash rows: hash kernels"],
];
const SHOWN = [["all", "all records so far"], ["window", "the last steps only"], ["decay", "older records count less"]];

export async function streamView(place, id) {
  place.append(loading("the dataset"));
  const [dataset, kernels] = await Promise.all([get(`/datasets/${id}`), get("/kernels")]);
  const journey = new AbortController();
  const body = h("div", {});
  place.replaceChildren(
    pageHead("Start a stream", {
      from: { href: `#/datasets/${id}`, name: dataset.name },
      text: "A function is released again at every step, while records come in. All steps together keep one claim, which is paid now.",
    }),
    body,
  );
  if (standing(dataset.budget).exhausted) {
    body.replaceChildren(empty("The budget is spent", "Nothing more can be released from this dataset."));
    return undefined;
  }
  form(body, dataset, kernels, journey.signal, null);
  return () => journey.abort();
}

/** `names` are the columns of a file whose header was read here, or null where they are typed. */
function form(body, dataset, kernels, signal, names) {
  const { relation } = dataset.budget.terms;
  const budget = h("div", {});
  const look = () => {
    kernel.look();
    most.hidden = shows.value !== "window";
    rate.hidden = shows.value !== "decay";
    const { rho, epsilon } = terms.promise() ?? {};
    budget.replaceChildren(gauge(dataset.budget, { next: rho ?? epsilon ?? 0 }));
  };
  const terms = termsForm(dataset, () => look());
  const like = h("input", { type: "file", accept: RECORDS, onchange: () => chosen(like.files[0]) });
  const file = fileForm({ names, changed: () => columns.rebuild() });
  const columns = columnsForm(names, () => look(), { dates: file.dates });
  const kernel = kernelForm(kernels, () => look());
  const method = select(METHODS, "grid");
  const horizon = number({ min: 1, max: 16384, step: 1, value: "365" });
  const shows = select(SHOWN, "all", { onchange: look });
  const window = number({ min: 1, step: 1, value: "7" });
  const decay = number({ min: 0, max: 1, value: "0.97" });
  const most = field("How many steps", window);
  const rate = field("Weight of a step after one more", decay, { hint: "0.97 halves the weight of records in 23 steps." });
  // It hides the column of ids among the others, and so calls `look`.
  const person = personForm(dataset, names, columns, ", over all steps");
  const own = [["method", method], ["horizon", horizon], ["window", window], ["decay", decay]]; // prettier-ignore
  const controls = [...terms.names, ...kernel.names, ...person.names, ...own, ...file.names];

  /** Choose from the columns of a file, if its header names them. */
  async function chosen(example) {
    const head = example && (await headOf(example, formatOf(example.name), file.written().encoding));
    const found = head && isText(head) ? headerOf(head) : null;
    if (found) form(body, dataset, kernels, signal, found);
    else if (example) mark(like, "its header could not be read here: type the names of the columns");
  }

  function request() {
    const bounds = columns.bounds();
    return {
      name: terms.name(),
      columns: columns.chosen(),
      ...file.written(),
      ...kernel.request(),
      ...(allBounded(bounds) ? { bounds } : {}),
      method: method.value,
      horizon: numberIn(horizon),
      ...(shows.value === "window" ? { window: numberIn(window) } : {}),
      ...(shows.value === "decay" ? { decay: numberIn(decay) } : {}),
      ...person.request(),
      relation,
      ...terms.promise(),
    };
  }

  const said = h("div", {});
  const made = h(
    "form",
    {
      class: "stack",
      onsubmit: async (event) => {
        event.preventDefault();
        said.replaceChildren();
        await confirmed();
      },
    },
    said,
    h(
      "div",
      { class: "card stack" },
      field("A file like those of the steps", like, {
        hint: "To choose its columns below. Only its first line is read, in this browser, and nothing is sent. Leave it out to type their names.",
      }),
      columns.node,
      h(
        "div",
        { class: "fields" },
        kernel.fields,
        field("Method", method),
        person.fields,
      ),
      file.node,
    ),
    h(
      "div",
      { class: "card stack" },
      h("h2", {}, "Steps"),
      h(
        "div",
        { class: "fields" },
        field("Number of steps", horizon, { hint: "The horizon, such as 365 days. It cannot be extended. Empty: no end, with more noise in each step." }),
        field("Each step shows", shows),
        most,
        rate,
      ),
    ),
    h(
      "div",
      { class: "card stack" },
      h("h2", {}, "Privacy and name"),
      // Nothing is predicted from a number of records here.
      h("div", { class: "fields" }, terms.fields.filter((each) => !each.contains(terms.recordsControl))),
      budget,
    ),
    h("div", { class: "row" }, h("button", {}, "Show the claim")),
  );
  const show = () => body.replaceChildren(made);

  async function confirmed() {
    const place = h("div", { class: "stack" });
    const paths = { claim: `/datasets/${dataset.id}/streams/claims`, release: `/datasets/${dataset.id}/streams` };
    await attempt(async () => {
      await confirmStep(place, { dataset, terms: request(), paths, signal }, () => {
        announce("The stream is started.");
        location.hash = `#/datasets/${dataset.id}`;
      }, show);
      body.replaceChildren(place);
      body.querySelector("button")?.focus({ preventScroll: true });
    }, (problem) => showProblem(problem, concerns(problem, controls) ? controls : [], said));
  }

  columns.rebuild();
  look();
  show();
}
