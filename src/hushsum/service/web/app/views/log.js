// For administrators: who did what, newest first, by account, kind and day; to read or to save.
import { get } from "../api.js";
import { attempt, csv, empty, field, problemBox, save, select, table } from "../explorer/controls.js";
import { announce, h, refill } from "../explorer/dom.js";
import { moment } from "../explorer/format.js";
import { loading } from "../parts/feedback.js";
import { pageHead } from "../parts/page_head.js";

const PAGE = 25;
const EXPORTED = 1000;
const KINDS = [
  ["", "everything"],
  ["account", "accounts"],
  ["token", "tokens"],
  ["identity", "identities"],
  ["dataset", "datasets"],
  ["upload", "uploads"],
  ["tally", "tallies"],
  ["job", "jobs"],
  ["function", "functions"],
  ["grant", "grants"],
  ["link", "links"],
  ["shared", "sharing"],
];

export async function logView(place) {
  const list = h("div", { class: "stack" }, loading("the log", 1));
  const accounts = await get("/accounts");
  const who = select([["", "everybody"], ...accounts.map((each) => [each.id, each.name]), ["service", "the service"]], "", {
    onchange: first,
  });
  const what = select(KINDS, "", { onchange: first });
  const [since, until] = ["since", "until"].map((name) => h("input", { type: "date", name, onchange: first }));
  place.append(
    pageHead("Log", {
      text: "Append-only. Queries are not logged, since they change nothing.",
      actions: [h("button", { type: "button", class: "quiet", onclick: exportAll }, "Export CSV")],
    }),
    h(
      "form",
      { class: "fields make", "aria-label": "Filter the log", onsubmit: (event) => event.preventDefault() },
      field("Account", who),
      field("About", what),
      field("From", since),
      field("To", until),
    ),
    list,
  );

  const filter = () => {
    const given = { account: who.value, action: what.value, since: since.value, until: until.value };
    return Object.entries(given).filter(([, value]) => value).map(([name, value]) =>
      `&${name}=${encodeURIComponent(value)}`
    ).join("");
  };
  const read = (rest) => get(`/log?order=newest${filter()}${rest}`);

  /** The newest lines; `pages` are the ends of the pages before. */
  async function show(before, pages) {
    const lines = await read(`&limit=${PAGE + 1}${before ? `&before=${before}` : ""}`);
    const more = lines.length > PAGE;
    lines.length = Math.min(lines.length, PAGE);
    if (!lines.length) {
      refill(list, empty("Nothing here", "No line matches. Every change is logged."));
      return;
    }
    const turn = (name, possible, action) =>
      h("button", { type: "button", class: "quiet", disabled: !possible, onclick: () => trying(action) }, name);
    const last = lines[lines.length - 1].sequence;
    refill(
      list,
      table(
        `Lines ${last} to ${lines[0].sequence}, newest first`,
        [{ name: "When", head: true }, { name: "Who" }, { name: "What" }, { name: "Object" }, { name: "Request", minor: true }],
        lines.map((each) => [
          moment(each.at),
          each.account_name ?? each.account,
          each.action,
          named(each),
          h("code", {}, each.request),
        ]),
        { cards: true },
      ),
      h(
        "div",
        { class: "row" },
        turn("Newer", pages.length > 0, () => show(pages[pages.length - 1], pages.slice(0, -1))),
        turn("Older", more, () => show(last, [...pages, before])),
      ),
    );
  }

  const trying = (action) => attempt(action, (problem) => refill(list, problemBox(problem)));

  function first() {
    return trying(() => show(null, []));
  }

  async function exportAll() {
    await trying(async () => {
      const rows = [];
      let before = "";
      for (;;) {
        const lines = await read(`&limit=${EXPORTED}${before}`);
        rows.push(...lines);
        if (lines.length < EXPORTED) break;
        before = `&before=${lines[lines.length - 1].sequence}`;
        announce(`${rows.length} lines so far.`);
      }
      const names = ["sequence", "at", "account", "account_name", "action", "object", "object_name", "request"];
      save(csv(names, rows.map((line) => names.map((name) => line[name]))), "hushsum-log.csv", "text/csv");
    });
  }

  await show(null, []);
}

/** The name of an object, and its id where nothing else tells it apart. */
function named({ object, object_name: name }) {
  return name ? h("span", { title: object }, name) : h("code", {}, object);
}
