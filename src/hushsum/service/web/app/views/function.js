// One function: its claim, an explorer, its file, and for its owner its grants.
import { ask, bytes, get } from "../api.js";
import { claimFacts, claimSentence, facts, meaning } from "../explorer/claims.js";
import { attempt, button, checkbox, empty, field, fileName, problemBox, save, table, text } from "../explorer/controls.js";
import { announce, h } from "../explorer/dom.js";
import { openExplorer } from "../explorer/explorer.js";
import { bytesInWords, moment, short, withError } from "../explorer/format.js";
import { comparable, subjectOf } from "../explorer/subjects.js";
import { loading } from "../parts/feedback.js";
import { pageHead } from "../parts/page_head.js";
import { sharing } from "../parts/shared_links.js";
import { may } from "../session.js";
import { serviceRequests } from "../sources/requests.js";
import { serviceSource } from "../sources/service.js";
import { whatItIs } from "./function_words.js";

export async function functionView(place, id) {
  place.append(loading("the function", 1));
  const [response, all] = await Promise.all([get(`/functions/${id}`), get("/functions")]);
  const said = h("div", {});
  const world = h("div", {});
  const download = async () => save(await bytes(`/functions/${id}/file`), `${fileName(response.name)}.hush`);
  const file = response.download &&
    button("Download .hush", () => attempt(download, said), { look: "quiet" });
  place.replaceChildren(
    pageHead(response.name, {
      from: { href: "#/functions", name: "Functions" },
      text: whatItIs(response.facts),
      actions: file ? [file] : [],
    }),
    said,
    h(
      "div",
      { class: "stack-small" },
      claimSentence(response.facts.claim),
      response.facts.stream &&
        h("p", {}, h("a", { href: `#/films/${response.facts.stream.stream}` }, "Watch all steps as a film")),
      h(
        "details",
        {},
        h("summary", {}, "What this means"),
        h("div", { class: "card narrow-card" }, meaning(response.facts.claim, { heading: "h2" })),
      ),
    ),
    h("section", { class: "section", "aria-label": "Explorer" }, world),
    h(
      "section",
      { class: "section" },
      h("h2", {}, "What it is"),
      h("div", { class: "card" }, facts([...claimFacts(response.facts.claim), ...described(response)])),
    ),
    response.owned && may("release") && (await grants(response)) || "",
    response.owned && may("release") && response.facts.model?.mode !== "exact" && (await sharing(response)) || "",
  );
  const subjects = all.map((each) => subjectOf(each, serviceSource(each)));
  const subject = subjectOf(response, serviceSource(response));
  return openExplorer(world, subject, {
    others: subjects.filter((each) => comparable(subject, each)),
    requests: serviceRequests({ id, name: response.name, model: Boolean(response.facts.model) }),
  });
}

function described({ created, facts: known, sha256 }) {
  const counted = known.estimated_count
    ? withError(known.estimated_count.value, known.estimated_count.stderr)
    : null;
  const parameters = known.kernel?.parameters ?? {};
  return [
    counted && ["Records, estimated", `${counted.value} ± ${counted.error}`],
    parameters.bandwidth && ["Bandwidth", short(parameters.bandwidth)],
    known.basis && ["Table", `${known.basis}, ${known.rows} × ${known.width}`],
    known.model?.target && ["Predicts", known.model.target],
    known.stream && ["Stream", `step ${known.stream.step}${known.stream.horizon ? ` of ${known.stream.horizon}` : ""}; shows ${known.stream.shows}`],
    ["Released", moment(created)],
    known.size && ["File", bytesInWords(known.size)],
    sha256 && ["SHA-256", h("code", {}, `${sha256.slice(0, 16)}…`)],
  ].filter(Boolean);
}

async function grants({ id }) {
  const said = h("div", {});
  const list = h("div", {});
  const name = text({ required: true, maxlength: 80 });
  const file = checkbox("may download the file");
  async function refresh() {
    const all = await get(`/functions/${id}/grants`);
    list.replaceChildren(
      all.length
        ? table(
          "Analysts with access",
          [{ name: "Analyst", head: true }, { name: "Access" }, { name: "" }],
          all.map((each) => [each.account, each.download ? "query and download" : "query", withdraw(each.account)]),
          { quiet: true },
        )
        : empty(
          "Only you",
          "Grant the function to analysts by name. What they learn or download cannot be withdrawn.",
          null,
          "h3",
        ),
    );
  }
  const withdraw = (account) => {
    const onclick = () =>
      tried(() => ask("DELETE", `/functions/${id}/grants/${encodeURIComponent(account)}`), `The grant of ${account} is withdrawn.`);
    return button("Withdraw", onclick, { look: "plain danger", of: `the grant of ${account}` });
  };
  const unknown = "there is no analyst's account of this name that is open; check it with the administrator";
  const failed = (problem) => {
    const shown = problem.status === 404 ? { kind: "not-found", message: unknown } : problem;
    said.replaceChildren(problemBox(shown, { heading: "h3" }));
  };
  const tried = (action, done) =>
    attempt(async () => {
      await action();
      said.replaceChildren();
      announce(done);
      await refresh();
    }, failed);
  await refresh();
  return h(
    "section",
    { class: "section stack" },
    h("h2", {}, "Access"),
    list,
    h(
      "form",
      {
        class: "card stack",
        "aria-label": "Grant the function",
        onsubmit: (event) => {
          event.preventDefault();
          const whom = name.value.trim();
          tried(async () => {
            await ask("PUT", `/functions/${id}/grants/${encodeURIComponent(whom)}`, {
              body: { download: file.firstChild.checked },
            });
            event.target.reset();
          }, `${whom} may query this function.`);
        },
      },
      said,
      h("div", { class: "row row-end" }, field("Analyst's name", name), file, h("button", { class: "quiet" }, "Grant")),
    ),
  );
}
