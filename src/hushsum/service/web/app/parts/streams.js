// The streams of a dataset: the steps so far, and the next one.
import { follow, freshKey, get, post } from "../api.js";
import { inShort } from "../explorer/claims.js";
import { attempt, field, problemBox } from "../explorer/controls.js";
import { announce, h } from "../explorer/dom.js";
import { formatOf, RECORDS, sent } from "../release/file_columns.js";
import { stepsOf } from "../views/film.js";
import { progress } from "./feedback.js";

/** A section with all streams of a dataset; null if there is none. */
export async function streams(dataset, functions) {
  const found = await get(`/datasets/${dataset.id}/streams`);
  if (!found.length) return null;
  const all = new Map(functions.map((each) => [each.id, each]));
  return h("section", { class: "section stack" }, h("h2", {}, "Streams"), found.map((each) => card(dataset, each, all)));
}

function card(dataset, stream, all) {
  const said = h("div", {});
  const status = h("p", { class: "soft" });
  const link = h("div", { class: "row" });
  const file = h("input", { type: "file", accept: RECORDS });
  const button = h("button", { class: "quiet" }, "Take the next step");
  const leave = new AbortController();

  function show({ released, horizon, shows, functions }) {
    status.textContent = `${released} ${horizon ? `of ${horizon} ` : ""}steps; shows ${shows}. ${sentenceOf(stream.claim)}`;
    const id = all.get(functions[functions.length - 1])?.facts.stream?.stream;
    link.replaceChildren(
      id ? h("a", { class: "button", href: `#/films/${id}` }, `Film of ${stepsOf([...all.values()], id).length} steps`) : "",
    );
    button.disabled = Boolean(horizon) && released >= horizon;
  }

  async function step(event) {
    event.preventDefault();
    button.disabled = true;
    await attempt(async () => {
      const uploads = file.files.length ? [await uploaded(file.files[0])] : [];
      const bar = progress("Releasing the step");
      said.replaceChildren(bar.node);
      const job = await post(`/datasets/${dataset.id}/streams/${stream.id}/steps`, { uploads }, {
        headers: { "idempotency-key": freshKey() },
      });
      await follow(job, ({ progress: part }) => bar.report(part, "Releasing the step"), leave.signal);
      said.replaceChildren();
      event.target.reset();
      const [streamsNow, functions] = await Promise.all([get(`/datasets/${dataset.id}/streams`), get("/functions")]);
      for (const each of functions) all.set(each.id, each);
      show(streamsNow.find((each) => each.id === stream.id));
      announce("The step is released.");
    }, (problem) => {
      said.replaceChildren(problemBox(problem, { heading: "h3" }));
      button.disabled = false;
    });
  }

  async function uploaded(chosen) {
    const bar = progress(`Uploading ${chosen.name}`);
    said.replaceChildren(bar.node);
    const made = await sent(dataset, chosen, formatOf(chosen.name) ?? "csv", (part) =>
      bar.report(part, `Uploading ${chosen.name}`));
    return made.id;
  }

  show(stream);
  return h(
    "article",
    { class: "card stack" },
    h("h3", {}, stream.name),
    status,
    link,
    h(
      "form",
      { class: "stack-small", "aria-label": `The next step of ${stream.name}`, onsubmit: step },
      field("Records since the last step", file, {
        hint: "Take steps at fixed times, also without records: a step that is taken only when something happens reveals it.",
      }),
      said,
      h("div", { class: "row" }, button),
    ),
  );
}

const sentenceOf = (claim) => `All steps together: ${inShort(claim)}, paid at the start.`;
