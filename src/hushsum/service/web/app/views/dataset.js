// One dataset: its budget, the cost of every release, its uploads and tallies.
import { ask, get } from "../api.js";
import { facts } from "../explorer/claims.js";
import { empty, table } from "../explorer/controls.js";
import { h } from "../explorer/dom.js";
import { bytesInWords, columnLabel, exact, kernelInWords, moment, promise, short, wayOf } from "../explorer/format.js";
import { dangerButton } from "../parts/confirm.js";
import { loading } from "../parts/feedback.js";
import { gauge, standing } from "../parts/gauge.js";
import { pageHead } from "../parts/page_head.js";
import { streams } from "../parts/streams.js";
import { may } from "../session.js";

const DELETED =
  "Its uploads, tallies and models in exact mode are deleted, and nothing more is released from it. " +
  "The ledger keeps its history, and what was released stays public.";

export async function datasetView(place, id) {
  place.append(loading("the dataset"));
  const [dataset, ledger, uploads, tallies, functions] = await Promise.all([
    get(`/datasets/${id}`),
    may("release") ? get(`/datasets/${id}/ledger`) : null,
    get(`/datasets/${id}/uploads`),
    get(`/datasets/${id}/tallies`),
    may("query") ? get("/functions") : [],
  ]);
  const { exhausted } = standing(dataset.budget);
  const overTime = may("release") ? await streams(dataset, functions) : null;
  const names = new Map(functions.map((each) => [`${each.id}.hush`, each]));
  const release = may("release") &&
    h("a", { class: exhausted ? "button quiet" : "button", href: `#/datasets/${id}/release` }, "Upload and release");
  const stream = may("release") && !exhausted &&
    h("a", { class: "button quiet", href: `#/datasets/${id}/stream` }, "Start a stream");
  const said = h("div", {});
  const deleted = async () => {
    await ask("DELETE", `/datasets/${id}`);
    location.hash = "#/datasets";
  };
  const title = `Delete ${dataset.name}?`;
  const remove = dangerButton("Delete", { title, text: DELETED, agree: "Delete it", said, act: deleted });
  place.replaceChildren(
    pageHead(dataset.name, {
      from: { href: "#/datasets", name: "Datasets" },
      actions: release ? [release, stream, remove].filter(Boolean) : [],
    }),
    said,
    h(
      "div",
      { class: "stack" },
      exhausted && spent(),
      dataset.budget.warning && h("p", { class: "note note-warn" }, dataset.budget.warning),
      budget(dataset, ledger),
    ),
    overTime ?? "",
    h("section", { class: "section" }, h("h2", {}, "What was released"), history(dataset, ledger, names)),
    h("section", { class: "section" }, h("h2", {}, "Uploads and tallies"), waiting(place, id, uploads, tallies, said)),
  );
}

const spent = () =>
  h(
    "div",
    { class: "note note-warn", role: "note" },
    h("strong", {}, "The budget is spent. "),
    "Nothing more can be released from this dataset. Released functions still answer, and queries spend no budget.",
  );

function budget({ budget: response }, ledger) {
  const { name, letter } = standing(response);
  const charges = ledger?.history.map((each) => exact(each.charge[name])) ?? null;
  const terms = response.terms;
  return h(
    "section",
    { class: "card stack", "aria-label": "Budget" },
    gauge(response, { charges }),
    facts([
      ["Total", promise(terms.budget)],
      ["Accounting", { pure: "sum of ε", basic: "sums of ε and δ", zcdp: "sum of ρ" }[terms.accounting]],
      [
        "Protects",
        terms.unit === "person"
          ? `each person${terms.max_per_unit ? `, up to ${terms.max_per_unit} records` : ""}`
          : `each ${terms.unit}`,
      ],
      ["Largest next release", response.largest_pure_epsilon > 0 ? `ε ${short(response.largest_pure_epsilon)}` : "none"],
      name === "rho" && response.spent_epsilon !== null
        ? ["As ε", short(response.spent_epsilon)]
        : [letter, null],
    ]),
  );
}

function history(dataset, ledger, names) {
  if (ledger === null) return empty("Not shown", "This token may not read the ledger.", null, "h3");
  if (!ledger.history.length) {
    return empty("Nothing yet", "Every release is listed here, with its cost and the remaining budget.", null, "h3");
  }
  const { name, letter, total } = standing(dataset.budget);
  let left = total;
  const rows = ledger.history.map((each) => {
    left -= exact(each.charge[name]);
    const made = names.get(each.subject.output);
    return [
      made ? h("a", { href: `#/functions/${made.id}` }, made.name) : nameless(each),
      moment(each.at),
      each.who,
      short(exact(each.charge[name])),
      short(Math.max(0, Math.abs(left) < 1e-12 ? 0 : left)),
    ];
  });
  return h(
    "div",
    { class: "stack" },
    table("Releases, oldest first", [{ name: "Function", head: true }, { name: "When" }, { name: "By" }, {
      name: `Cost in ${letter}`,
      number: true,
    }, { name: `${letter} left`, number: true }], rows, { cards: true }),
    h(
      "details",
      {},
      h("summary", {}, "A receipt to keep elsewhere"),
      h(
        "p",
        { class: "small soft" },
        "The hash of the ledger's last entry. It proves later that no entry before it was changed.",
      ),
      h("p", { class: "code" }, `${ledger.receipt.ledger} · ${ledger.receipt.sequence} · ${ledger.receipt.hash}`),
    ),
  );
}

/** A release that is not a listed function: it is unfinished, or has no file that the ledger could name. */
function nameless({ step, subject }) {
  if (step !== "published") return "not finished";
  return subject.served ? "a model in exact mode" : "a release";
}

function waiting(place, id, uploads, tallies, said) {
  const open = uploads.filter((each) => each.state === "waiting");
  if (!open.length && !tallies.length) {
    return empty(
      "No uploads or tallies",
      "Uploads are listed here until they are counted, tallies until you delete them. Neither can be read back.",
      null,
      "h3",
    );
  }
  const named = (name) => ({ name });
  const remove = (what, path, text) =>
    dangerButton("Delete", {
      title: `Delete this ${what}?`,
      text,
      agree: "Delete it",
      said,
      act: async () => {
        await ask("DELETE", `/datasets/${id}/${path}`);
        place.replaceChildren();
        await datasetView(place, id);
      },
    });
  return h(
    "div",
    { class: "stack" },
    tallies.length > 0 &&
      table(
        "Confidential tallies",
        [{ name: "Columns", head: true }, ...["Method", "Kernel"].map(named), { name: "Cells", number: true }, ...["Counted", "", ""].map(named)],
        tallies.map((each) => [
          each.facts.columns?.map(columnLabel).join(", ") ?? "sets",
          wayOf(each.facts.basis),
          kernelInWords(each.facts.kernel),
          (each.facts.rows * each.facts.width).toLocaleString("en"),
          moment(each.created),
          may("release") ? h("a", { href: `#/datasets/${id}/release?tally=${each.id}` }, "Release from it") : "",
          remove("tally", `tallies/${each.id}`, "What was released from it stays public, and what it cost stays spent."),
        ]),
        { cards: true },
      ),
    open.length > 0 &&
      table(
        "Uploads that were not counted",
        [{ name: "File", head: true }, { name: "Format" }, { name: "Size", number: true }, ...["Uploaded", "Kept until", ""].map(named)],
        open.map((each) => [
          each.name ?? "without a name",
          each.format,
          bytesInWords(each.size),
          moment(each.created),
          moment(each.expires),
          remove("upload", `uploads/${each.id}`, "It was not counted. The file is deleted from the service."),
        ]),
        { cards: true },
      ),
  );
}
