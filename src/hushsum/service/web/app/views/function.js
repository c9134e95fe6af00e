// One function: its claim, an explorer, its file, and for its owner its grants.

import { ask, bytes, get } from "../api.js";
import { announce, h } from "../dom.js";
import { explorer } from "../explorer/explorer.js";
import { setExplorer } from "../explorer/sets.js";
import { subjectOf } from "../explorer/subject.js";
import { claimFacts, claimSentence, facts } from "../parts/claims.js";
import { empty, loading, problemBox } from "../parts/feedback.js";
import { checkbox, field, text } from "../parts/fields.js";
import { pageHead } from "../parts/page_head.js";
import { table } from "../parts/tables.js";
import { may } from "../session.js";
import { bytesInWords, moment, short, withError } from "../format.js";
import { whatItIs } from "./functions.js";

export async function functionView(place, id) {
  place.append(loading("the function", 1));
  const response = await get(`/functions/${id}`);
  const said = h("div", {});
  const world = h("div", {});
  const save = response.download &&
    h("button", { type: "button", class: "quiet", onclick: () => download(response, said) }, "Download .hush");
  place.replaceChildren(
    pageHead(response.name, {
      from: { href: "#/functions", name: "Functions" },
      text: whatItIs(response.facts),
      actions: save ? [save] : [],
    }),
    said,
    claimSentence(response.facts.claim),
    h("section", { class: "section", "aria-label": "Explorer" }, world),
    h(
      "section",
      { class: "section" },
      h("h2", {}, "What it is"),
      h("div", { class: "card" }, facts([...claimFacts(response.facts.claim), ...described(response)])),
    ),
    response.owned && may("release") && (await grants(response)) || "",
  );
  return open(world, subjectOf(response));
}

function open(world, subject) {
  if (subject.kind === "sets") return setExplorer(world, subject);
  if (subject.kind === "none") {
    world.append(
      empty(
        "Nothing to plot",
        "This model has no answer at a single point. Download it, or query it from a program.",
      ),
    );
    return undefined;
  }
  return explorer(world, subject);
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
    ["Released", moment(created)],
    known.size && ["File", bytesInWords(known.size)],
    sha256 && ["SHA-256", h("code", {}, `${sha256.slice(0, 16)}…`)],
  ].filter(Boolean);
}

async function download({ id, name }, said) {
  try {
    const address = URL.createObjectURL(await bytes(`/functions/${id}/file`));
    h("a", { href: address, download: `${name}.hush` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    announce("The file is saved.");
  } catch (problem) {
    said.replaceChildren(problemBox(problem));
  }
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
          "Who may query it, besides you",
          [{ name: "Analyst", head: true }, { name: "File" }, { name: "" }],
          all.map((
            each,
          ) => [
            each.account,
            each.download ? "may download" : "asks only",
            h(
              "button",
              {
                type: "button",
                class: "plain danger",
                onclick: () =>
                  tried(
                    () => ask("DELETE", `/functions/${id}/grants/${encodeURIComponent(each.account)}`),
                    `The grant of ${each.account} is withdrawn.`,
                  ),
              },
              "Withdraw",
              h("span", { class: "unseen" }, ` the grant of ${each.account}`),
            ),
          ]),
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
  async function tried(action, done) {
    try {
      await action();
      said.replaceChildren();
      announce(done);
      await refresh();
    } catch (problem) {
      const unknown = problem.status === 404
        ? {
          kind: "not-found",
          message: "there is no open analyst's account of this name; check it with the administrator",
        }
        : problem;
      said.replaceChildren(problemBox(unknown, { heading: "h3" }));
    }
  }
  await refresh();
  return h(
    "section",
    { class: "section stack" },
    h("h2", {}, "Who may ask"),
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
          }, `${whom} may ask this function.`);
        },
      },
      said,
      h(
        "div",
        { class: "row row-end" },
        field("Analyst's name", name),
        file,
        h("button", { class: "quiet" }, "Grant"),
      ),
    ),
  );
}
