// For administrators: accounts and their tokens.
import { ask, get, offered, post } from "../api.js";
import { attempt, button, field, NAMED, select, table, text } from "../explorer/controls.js";
import { announce, h } from "../explorer/dom.js";
import { day } from "../explorer/format.js";
import { dangerButton } from "../parts/confirm.js";
import { loading } from "../parts/feedback.js";
import { clearProblems, showProblem } from "../parts/form_errors.js";
import { identityCard } from "../parts/identity.js";
import { pageHead } from "../parts/page_head.js";
import { showSecret, tokenTable } from "../parts/tokens.js";
import { me } from "../session.js";

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
        [{ name: "Name", head: true }, { name: "Role" }, { name: "Since", minor: true }, { name: "State" }, { name: "" }],
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
      button("Tokens", () => showTokens(account), { look: "plain", of: `of ${account.name}` }),
      !account.disabled && account.id !== me().account && closing(account),
    );

  const closing = (account) =>
    dangerButton("Close", {
      of: `the account of ${account.name}`,
      title: `Close the account of ${account.name}?`,
      text: "All tokens of the account are revoked now. It cannot be reopened.",
      agree: "Close permanently",
      said,
      act: async () => {
        await ask("DELETE", `/accounts/${account.id}`);
        announce(`The account of ${account.name} is closed.`);
        await refresh();
      },
    });

  async function showTokens(account) {
    const path = `/accounts/${account.id}/tokens`;
    const text = () => `Its user, ${account.name} or another person, is signed out at once.`;
    const issue = () =>
      attempt(async () => {
        const made = await post(path, {});
        await showTokens(account);
        showSecret(secrets, `A token for ${account.name}`, made.secret);
      }, said);
    tokens.replaceChildren(
      h(
        "div",
        { class: "head" },
        h("h2", { tabindex: "-1" }, `Tokens of ${account.name}`),
        !account.disabled && button("Issue a token", issue, { look: "quiet" }),
      ),
      tokenTable(await get(path), { text, said, revoked: () => showTokens(account) }),
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
        const failed = async (problem) => {
          await made();
          showProblem(problem, names, said);
        };
        const done = await attempt(async () => {
          const account = await post("/accounts", { name: name.value.trim(), role: role.value });
          secret = (await post(`/accounts/${account.id}/tokens`, { label: "first" })).secret;
        }, failed);
        if (!done) return;
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
      h("div", { class: "field field-button" }, h("button", {}, "Create account")),
    ),
  );
}
