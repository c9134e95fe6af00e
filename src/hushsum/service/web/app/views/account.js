// The user's account and tokens.
import { get, post } from "../api.js";
import { facts } from "../explorer/claims.js";
import { attempt, checkbox, field, number, numberIn, text } from "../explorer/controls.js";
import { h } from "../explorer/dom.js";
import { day } from "../explorer/format.js";
import { pageHead } from "../parts/page_head.js";
import { showSecret, tokenTable } from "../parts/tokens.js";
import { me } from "../session.js";

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
    const text = ({ id }) =>
      id === me().token ? "It is the one you are signed in with: you will be signed out." : "Its user is signed out at once.";
    list.replaceChildren(tokenTable(await get("/tokens"), { own: me().token, text, said, revoked: refresh }));
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
          await attempt(async () => {
            const token = await post("/tokens", request);
            said.replaceChildren();
            await made();
            showSecret(secrets, "Your new token", token.secret);
          }, said);
        },
      },
      h("div", { class: "fields" }, field("Label", label, { hint: "What it is for." }), field("Days", days, { hint: "It expires no later than the token that you use now." })),
      h("fieldset", {}, h("legend", { class: "label" }, "Scopes"), h("div", { class: "choices" }, scopes)),
      h("div", { class: "row" }, h("button", {}, "Issue it")),
    ),
  );
}
