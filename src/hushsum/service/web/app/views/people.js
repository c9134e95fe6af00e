// For administrators: accounts and their tokens.

import { ask, get, offered, post } from "../api.js";
import { announce, h } from "../dom.js";
import { confirm } from "../parts/confirm.js";
import { loading, problemBox } from "../parts/feedback.js";
import { field, NAMED, select, text } from "../parts/fields.js";
import { clearProblems, showProblem } from "../parts/form_errors.js";
import { identityCard } from "../parts/identity.js";
import { pageHead } from "../parts/page_head.js";
import { showSecret } from "../parts/secret.js";
import { table } from "../parts/tables.js";
import { tokenTable } from "../parts/tokens.js";
import { me } from "../session.js";
import { day } from "../format.js";

const ROLES = [["analyst", "Analyst: queries functions"], ["owner", "Owner: uploads and releases"], [
  "administrator",
  "Administrator: manages accounts",
]];

export async function peopleView(place) {
  const said = h("div", { class: "stack" });
  const secrets = h("div", { class: "stack" });
  const list = h("div", { class: "section" }, loading("accounts", 1));
  const tokens = h("section", { class: "section", "aria-live": "polite" });
  place.append(
    pageHead("People", { text: "An administrator manages accounts, and sees neither datasets nor answers." }),
    newAccount(said, secrets, () => refresh()),
    said,
    secrets,
    list,
    tokens,
  );

  const provider = (await offered("/sign-in"))?.oidc ?? null;

  async function refresh() {
    const accounts = await get("/accounts");
    list.replaceChildren(
      table(
        "All accounts",
        [{ name: "Name", head: true }, { name: "Role" }, { name: "Since", minor: true }, { name: "State" }, {
          name: "",
        }],
        accounts.map((each) => [
          each.name,
          each.role,
          day(each.created),
          each.disabled
            ? h("span", { class: "tag" }, "closed")
            : h("span", { class: "tag tag-good" }, "open"),
          actions(each),
        ]),
        { quiet: true },
      ),
    );
  }

  const actions = (account) =>
    h(
      "div",
      { class: "row" },
      h(
        "button",
        { type: "button", class: "plain", onclick: () => showTokens(account) },
        "Tokens",
        h("span", { class: "unseen" }, ` of ${account.name}`),
      ),
      !account.disabled && account.id !== me().account &&
        h(
          "button",
          { type: "button", class: "plain danger", onclick: () => close(account) },
          "Close",
          h("span", { class: "unseen" }, ` the account of ${account.name}`),
        ),
    );

  async function close(account) {
    if (
      !(await confirm(
        `Close the account of ${account.name}?`,
        "All tokens of the account are revoked now. It cannot be reopened.",
        "Close permanently",
      ))
    ) return;
    await tried(
      said,
      () => ask("DELETE", `/accounts/${account.id}`),
      `The account of ${account.name} is closed.`,
    );
    await refresh();
  }

  async function showTokens(account) {
    const path = `/accounts/${account.id}/tokens`;
    const all = await get(path);
    tokens.replaceChildren(
      h(
        "div",
        { class: "head" },
        h("h2", { tabindex: "-1" }, `Tokens of ${account.name}`),
        !account.disabled && h("button", {
          type: "button",
          class: "quiet",
          onclick: async () => {
            const made = await tried(said, () => post(path, {}));
            if (!made) return;
            await showTokens(account);
            showSecret(secrets, `A token for ${account.name}`, made.secret);
          },
        }, "Issue a token"),
      ),
      tokenTable(all, async (token) => {
        if (
          !(await confirm(
            "Revoke this token?",
            `Its user, ${account.name} or another person, is signed out at once.`,
            "Revoke it",
          ))
        ) return;
        await tried(said, () => ask("DELETE", `/tokens/${token.id}`), "The token is revoked.");
        await showTokens(account);
      }),
    );
    if (provider && !account.disabled) {
      const identity = identityCard(account, provider);
      await identity.refresh();
      tokens.append(identity.node);
    }
    tokens.querySelector("h2").focus();
  }

  await refresh();
}

function newAccount(said, secrets, made) {
  const name = text(NAMED);
  const role = select(ROLES, "analyst");
  return h(
    "form",
    {
      class: "card stack make",
      "aria-label": "Create an account",
      onsubmit: async (event) => {
        event.preventDefault();
        const form = event.target;
        const names = [["name", name], ["role", role]];
        clearProblems(names, said);
        let secret;
        try {
          const account = await post("/accounts", { name: name.value.trim(), role: role.value });
          secret = (await post(`/accounts/${account.id}/tokens`, { label: "first" })).secret;
        } catch (problem) {
          if (problem.status === undefined) throw problem;
          await made();
          showProblem(problem, names, said);
          return;
        }
        await made();
        showSecret(secrets, `The token of ${name.value.trim()}`, secret);
        form.reset();
      },
    },
    h(
      "div",
      { class: "fields" },
      field("Name", name),
      field("Role", role),
      h(
        "div",
        { class: "field field-button" },
        h("button", {}, "Create account"),
      ),
    ),
  );
}

async function tried(said, action, done = null) {
  said.replaceChildren();
  try {
    const result = await action();
    if (done) announce(done);
    return result;
  } catch (problem) {
    if (problem.status === undefined) throw problem;
    said.replaceChildren(problemBox(problem));
    return null;
  }
}
