// Steps 3 and 4: the claim, its confirmation, the job, the function.
import { follow, freshKey, post } from "../api.js";
import { claimFacts, claimSentence, facts, meaning } from "../explorer/claims.js";
import { attempt, problemBox } from "../explorer/controls.js";
import { h } from "../explorer/dom.js";
import { exact, promise as inNumbers, sentence, short } from "../explorer/format.js";
import { progress } from "../parts/feedback.js";
import { gauge, standing } from "../parts/gauge.js";
import { METHODS } from "./plan_panel.js";

const STATES = { queued: "Waiting for a worker", running: "Working", done: "Done", failed: "Failed" };

/** Follow a job with a bar; its result, or a Problem. */
export function worked(place, label, job, signal) {
  const bar = progress(label);
  place.replaceChildren(h("div", { class: "card" }, bar.node));
  return follow(
    job,
    (now) =>
      bar.report(
        now.state === "running" && now.progress !== null ? now.progress : null,
        `${label}: ${STATES[now.state].toLowerCase()}${
          now.state === "running" && now.progress ? `, ${Math.round(100 * now.progress)} %` : ""
        }`,
      ),
    signal,
  );
}

/**
 * Show the claim of `terms` and, once it is agreed to, release. `paths` are the routes of the claim and of the release.
 * Records are counted before anything is spent: `back` is given the problem if they are refused and the form has fields,
 * `names`; warnings about them are shown, and do not stop a second attempt.
 */
export async function confirmStep(place, { dataset, terms, names = [], paths, signal }, done, back) {
  const response = await post(paths.claim, terms);
  const { name, letter } = standing(dataset.budget);
  const cost = exact(response.cost[name]);
  // One key for this agreement: pressed twice, or after a lost connection, it is still one release.
  let key = freshKey();
  let stop = terms.upload ? { stop_at_warnings: true } : {};
  const said = h("div", { class: "stack" });
  const warned = h("div", { class: "stack-small" });
  const agree = h("button", { type: "button", onclick: release }, `Release, and spend ${inNumbers(response.cost)}`);
  const card = h(
    "div",
    { class: "card stack narrow-card" },
    h("h2", {}, "What this release claims"),
    response.option && response.advice.map((each) => h("p", { class: "note note-warn" }, sentence(each))),
    claimSentence(response.claim),
    meaning(response.claim),
    gauge(dataset.budget, { charges: null, next: cost }),
    h(
      "dl",
      { class: "figures" },
      [
        ["It costs", inNumbers(response.cost)],
        ["Remaining afterwards", `${letter} ${short(exact(response.remaining[name]))}`],
        response.option && ["Method", METHODS[response.option.method] ?? response.option.method],
      ].filter(Boolean).map(([what, amount]) => h("div", {}, h("dt", {}, what), h("dd", {}, amount))),
    ),
    h("p", { class: "soft" }, "Spent budget cannot be recovered, and a release cannot be undone."),
    h("details", {}, h("summary", {}, "Details of the claim"), facts(claimFacts(response.claim))),
    warned,
    h("div", { class: "row" }, agree, h("button", { type: "button", class: "quiet", onclick: () => back() }, "Back")),
  );
  place.replaceChildren(card, said);

  async function release() {
    agree.disabled = true;
    await attempt(async () => {
      const job = await post(paths.release, { ...terms, ...stop, confirm: response.confirm }, { headers: { "idempotency-key": key } });
      done(await worked(said, "Releasing", job, signal));
    }, (problem) => {
      agree.disabled = false;
      // Of the records or the parameters: the form has what may be changed. What is paid for is only repeated.
      if (names.length && problem.status === 422 && !problem.paid) return back(problem);
      if (problem.kind === "warnings") {
        // Nothing was spent. What is released in spite of them is another request.
        [key, stop] = [freshKey(), {}];
        agree.textContent = `Release all the same, and spend ${inNumbers(response.cost)}`;
        said.replaceChildren();
        warned.replaceChildren(
          h("p", { role: "status" }, "The records were counted, and nothing is spent yet. Read this first:"),
          ...problem.warnings.map((each) => h("p", { class: "note note-warn" }, sentence(each))),
        );
        return agree.focus();
      }
      said.replaceChildren(problemBox(problem, { heading: "h3" }));
      said.firstChild.focus();
    });
  }
}
