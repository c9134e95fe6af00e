// Who may sign in to an account with the service's provider, where it has one.
import { ask, get, post } from "../api.js";
import { attempt, field, text } from "../explorer/controls.js";
import { h, refill } from "../explorer/dom.js";

/** Show and change the link between an account and a person at the provider. */
export function identityCard(account, provider) {
  const path = `/accounts/${account.id}/identity`;
  const card = h("section", { class: "card stack", "aria-label": `Signing in with ${provider.name}` });

  async function refresh() {
    let linked = null;
    try {
      linked = await get(path);
    } catch (problem) {
      if (problem.status !== 404) throw problem;
    }
    const subject = text({ required: true, maxlength: 255, value: linked?.subject ?? "" });
    const said = h("div", {});
    const tried = async (action) => {
      await attempt(async () => {
        await action();
        await refresh();
      }, said);
    };
    refill(
      card,
      h("h3", {}, `Signing in with ${provider.name}`),
      h(
        "p",
        { class: "soft" },
        linked === null
          ? "Nobody can sign in until a person is linked to this account."
          : `${linked.subject} may sign in${linked.sub ? "" : ", and has not done so yet"}.`,
      ),
      said,
      h(
        "form",
        {
          class: "row row-end",
          onsubmit(event) {
            event.preventDefault();
            tried(() => post(path, { subject: subject.value.trim() }));
          },
        },
        field("The person's identity at the provider, such as an email address", subject),
        h("button", { class: "quiet" }, "Link"),
        linked !== null && h(
          "button",
          { type: "button", class: "plain danger", onclick: () => tried(() => ask("DELETE", path)) },
          "Unlink",
        ),
      ),
    );
  }

  return { node: card, refresh };
}
