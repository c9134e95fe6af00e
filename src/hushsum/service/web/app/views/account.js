// The user's account and tokens.

import { ask, get, post } from "../api.js";
import { h } from "../dom.js";
import { facts } from "../parts/claims.js";
import { confirm } from "../parts/confirm.js";
import { problemBox } from "../parts/feedback.js";
import { checkbox, field, number, numberIn, text } from "../parts/fields.js";
import { pageHead } from "../parts/page_head.js";
import { showSecret } from "../parts/secret.js";
import { tokenTable } from "../parts/tokens.js";
import { me } from "../session.js";
import { day } from "../format.js";

export async function accountView(place) {
  const said = h("div", { class: "stack" });
  const secrets = h("div", { class: "stack" });
  const list = h("div", {});
  place.append(
    pageHead("Your account"),
    h(
      "div",
      { class: "card" },
      facts([["Name", me().name], ["Role", me().role], ["Scopes of this token", me().scopes.join(", ")], [
        "Valid until",
        day(me().expires),
      ]]),
    ),
    h(
      "section",
      { class: "section stack" },
      h("h2", {}, "Your tokens"),
      said,
      secrets,
      list,
      newToken(said, secrets, () => refresh()),
    ),
  );

  async function refresh() {
    list.replaceChildren(tokenTable(await get("/tokens"), async (token) => {
      const mine = token.id === me().token;
      if (
        !(await confirm(
          "Revoke this token?",
          mine
            ? "It is the one you are signed in with: you will be signed out."
            : "Its user is signed out at once.",
          "Revoke it",
        ))
      ) return;
      try {
        await ask("DELETE", `/tokens/${token.id}`);
        await refresh();
      } catch (problem) {
        if (problem.status !== 401) said.replaceChildren(problemBox(problem));
      }
    }, { own: me().token }));
  }
  await refresh();
}

function newToken(said, secrets, made) {
  const label = text({ maxlength: 80 });
  const days = number({ min: 1, step: 1, placeholder: "longest" });
  const scopes = me().scopes.map((each) => checkbox(each, { value: each, checked: true }));
  return h(
    "details",
    {},
    h("summary", {}, "Another token, for a program"),
    h(
      "form",
      {
        class: "card stack",
        onsubmit: async (event) => {
          event.preventDefault();
          const request = {
            label: label.value.trim(),
            scopes: scopes.map((each) => each.firstChild).filter((each) => each.checked).map((each) =>
              each.value
            ),
          };
          if (numberIn(days) !== null) request.days = numberIn(days);
          try {
            const token = await post("/tokens", request);
            said.replaceChildren();
            await made();
            showSecret(secrets, "Your new token", token.secret);
          } catch (problem) {
            said.replaceChildren(problemBox(problem));
          }
        },
      },
      h("div", { class: "fields" }, field("Label", label, { hint: "What it is for." }), field("Days", days, { hint: "It expires no later than the token that you use now." })),
      h("fieldset", {}, h("legend", { class: "label" }, "Scopes"), h("div", { class: "choices" }, scopes)),
      h("div", { class: "row" }, h("button", {}, "Issue it")),
    ),
  );
}
