// From records to a public function, in four steps.
import { freshKey, get, post } from "../api.js";
import { attempt, empty } from "../explorer/controls.js";
import { announce, h, remembered } from "../explorer/dom.js";
import { sampleKey } from "../parts/checklist.js";
import { loading } from "../parts/feedback.js";
import { showProblem } from "../parts/form_errors.js";
import { gauge, standing } from "../parts/gauge.js";
import { pageHead } from "../parts/page_head.js";
import { chooseStep } from "../release/choose_step.js";
import { confirmStep, worked } from "../release/confirm_step.js";
import { uploadStep } from "../release/upload_step.js";

const STEPS = ["Records", "Choice", "Claim", "Function"];

export async function releaseView(place, id, tallyId) {
  place.append(loading("the dataset"));
  const [dataset, uploads, tallies, models, kernels] = await Promise.all([
    get(`/datasets/${id}`),
    get(`/datasets/${id}/uploads`),
    get(`/datasets/${id}/tallies`),
    get("/models"),
    get("/kernels"),
  ]);
  const journey = new AbortController();
  const steps = h("ol", { class: "steps", "aria-label": "Steps" });
  const said = h("div", { class: "said" });
  const body = h("div", {});
  const known = { dataset, models, kernels, uploads: uploads.filter((each) => each.state === "waiting"), tallies };
  place.replaceChildren(
    pageHead("Upload and release", { from: { href: `#/datasets/${id}`, name: dataset.name } }),
    steps,
    said,
    body,
  );
  if (standing(dataset.budget).exhausted) {
    steps.remove();
    body.replaceChildren(
      h(
        "div",
        { class: "stack" },
        empty("The budget is spent", "Nothing more can be released from this dataset. Released functions still answer."),
        h("div", { class: "card" }, gauge(dataset.budget)),
      ),
    );
    return undefined;
  }

  function at(number) {
    said.replaceChildren();
    steps.replaceChildren(
      ...STEPS.map((name, index) =>
        h("li", { class: index < number ? "done" : null, "aria-current": index === number ? "step" : null }, h("span", {}, name)),
      ),
    );
    announce(`Step ${number + 1} of ${STEPS.length}: ${STEPS[number]}`);
  }

  function start() {
    at(0);
    uploadStep(body, known, (found) => (found.upload?.format === "tally" ? takeOver(found.upload) : choose(found)));
  }

  /** An uploaded tally is counted already; the service only checks it. */
  async function takeOver(upload) {
    await attempt(async () => {
      const key = { headers: { "idempotency-key": freshKey() } };
      const job = await post(`/datasets/${id}/tallies`, { upload: upload.id }, key);
      const made = await worked(body, "Checking the tally", job, journey.signal);
      choose({ tally: (await get(`/datasets/${id}/tallies`)).find((each) => each.id === made.tally) });
    }, (problem) => {
      start();
      showProblem(problem, [], said);
    });
  }

  function choose(found) {
    at(1);
    chooseStep(body, { ...known, ...found }, (choice) => {
      // The form keeps its values, whatever happens next.
      const form = [...body.childNodes];
      const again = (problem) => {
        at(1);
        body.replaceChildren(...form);
        if (problem) showProblem(problem, choice.names, said);
      };
      return attempt(() => claim(choice, again), again);
    }, start);
    body.querySelector("input, select")?.focus({ preventScroll: true });
  }

  async function claim({ terms, names }, again) {
    at(2);
    body.replaceChildren(loading("the claim", 1));
    const now = await get(`/datasets/${id}`);
    const of = `/datasets/${id}/${terms.model ? "models" : "releases"}`;
    const paths = { claim: terms.model ? `${of}/claims` : `/datasets/${id}/claims`, release: of };
    await confirmStep(body, { dataset: now, terms, names, paths, signal: journey.signal }, finished, again);
    body.querySelector("button").focus({ preventScroll: true });
  }

  function finished({ function: made }) {
    at(3);
    announce("The function is released.");
    location.hash = `#/functions/${made}`;
  }

  const given = tallies.find((each) => each.id === tallyId);
  const sample = remembered(sampleKey(id));
  const brought = known.uploads.find((each) => each.id === sample?.upload.id);
  if (given) choose({ tally: given });
  else if (brought) choose({ upload: brought, columns: sample.header, declared: sample });
  else start();
  return () => journey.abort();
}
