// Links by which anybody may query a function: made and revoked by its owner, who sees each of them once.
import { addressOf, ask, get, post } from "../api.js";
import { attempt, checkbox, copyButton, empty, field, number, numberIn, table, text } from "../explorer/controls.js";
import { announce, h, refill } from "../explorer/dom.js";
import { day } from "../explorer/format.js";
import { dangerButton } from "./confirm.js";
import { clearProblems, showProblem } from "./form_errors.js";

/** The section of a function's page. */
export async function sharing({ id, name }) {
  const said = h("div", {});
  const list = h("div", {});
  const fresh = h("div", {});

  async function refresh() {
    const links = await get(`/functions/${id}/shares`);
    refill(
      list,
      links.length
        ? table(
          "Links, oldest first",
          [{ name: "Label", head: true }, { name: "Made" }, { name: "Embedded by" }, { name: "State" }, { name: "" }],
          links.map((each) => [
            each.label || "–",
            day(each.created),
            each.origins.length ? each.origins.join(", ") : "no site",
            state(each),
            each.works ? revokeButton(each) : "",
          ]),
          { quiet: true, cards: true },
        )
        : empty("Not shared", "Nobody can query this function without an account, until you make a link.", null, "h3"),
    );
  }

  const revokeButton = (each) =>
    dangerButton("Revoke", {
      of: `the link ${each.label || each.id}`,
      title: "Revoke this link?",
      text: "Whoever has it can no longer query the function. What they have seen stays public.",
      agree: "Revoke it",
      said,
      act: async () => {
        await ask("DELETE", `/shares/${each.id}`);
        fresh.querySelector(`[data-link="${each.id}"]`)?.remove();
        announce("The link is revoked.");
        await refresh();
      },
    });

  await refresh();
  return h(
    "section",
    { class: "section stack", "aria-labelledby": "sharing" },
    h("h2", { id: "sharing" }, "Public links"),
    list,
    fresh,
    linkForm(id, said, async (made) => {
      fresh.prepend(newLink(name, made));
      fresh.firstChild.focus();
      await refresh();
    }),
  );
}

function state(each) {
  if (each.revoked) return h("span", { class: "tag tag-bad" }, `revoked ${day(each.revoked)}`);
  if (!each.works) return h("span", { class: "tag" }, "expired");
  return h("span", { class: "tag tag-good" }, each.expires ? `works until ${day(each.expires)}` : "works");
}

function linkForm(id, said, made) {
  const label = text({ maxlength: 80 });
  const days = number({ min: 1, max: 3650, step: 1, placeholder: "no limit" });
  const origins = text({ placeholder: "https://www.example.org", inputmode: "url" });
  const download = checkbox("include the .hush file");
  const names = [["label", label], ["days", days], ["origins", origins]];
  return h(
    "form",
    {
      class: "card stack",
      "aria-label": "Make a public link",
      onsubmit: async (event) => {
        event.preventDefault();
        clearProblems(names, said);
        const request = {
          label: label.value.trim(),
          origins: origins.value.split(/[\s,]+/).filter(Boolean).map((each) => each.replace(/\/+$/, "")),
          download: download.firstChild.checked,
        };
        if (numberIn(days) !== null) request.days = numberIn(days);
        await attempt(async () => {
          const link = await post(`/functions/${id}/shares`, request);
          event.target.reset();
          await made(link);
        }, (problem) => showProblem(problem, names, said));
      },
    },
    h(
      "p",
      { class: "soft" },
      "Anybody with the link can see the function and its claim, and query it. They see nothing else of your account or dataset. Only this released function is shared, and it spends no budget.",
    ),
    h(
      "div",
      { class: "fields" },
      field("Label", label, { hint: "For you and the log; it is not shown to others." }),
      field("Days until it expires", days),
      field("Sites that may embed it", origins, { hint: "With https://, separated by commas. Leave empty for a link alone.", wide: true }),
    ),
    download,
    said,
    h("div", { class: "row" }, h("button", { class: "quiet" }, "Make a public link")),
  );
}

/** The link, which is shown once, and the text that embeds it. */
function newLink(name, { id, path, embed }) {
  const place = h("div", {});
  const link = addressOf(path.slice(path.indexOf("/shared/")));
  const title = name.replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;");
  const frame = embed &&
    `<iframe src="${addressOf(embed.slice(embed.indexOf("/shared/")))}" title="${title}" width="100%" height="640" loading="lazy" sandbox="allow-scripts allow-downloads"></iframe>`;
  const shown = (label, value) =>
    h(
      "div",
      { class: "stack-small" },
      h("strong", {}, label),
      h("output", { "aria-label": label }, value),
      h("div", { class: "row" }, copyButton("Copy", label, () => value, place)),
    );
  return h(
    "div",
    { class: "secret", role: "group", "aria-label": "The new link", "data-link": id, tabindex: "-1" },
    shown("The link", link),
    frame && shown("To embed it", frame),
    place,
    h("p", { class: "hint" }, "It is shown only once: the service stores a digest of it. Make another one if you lose it."),
  );
}
