// Sign in with a token, or with an identity provider where the service offers one.
import { addressOf, ask, get, offered } from "../api.js";
import { field, problemBox } from "../explorer/controls.js";
import { announce, h } from "../explorer/dom.js";
import { forget, keep, known } from "../session.js";

const STEPS = [
  ["Upload", "An owner uploads records. They are counted into a confidential tally, then deleted."],
  ["Plan", "The error of each release option is predicted before any budget is spent."],
  ["Release", "The owner confirms a claim; the ledger is debited; noise is drawn once."],
  ["Query", "The function answers any number of queries, with standard errors, at no further cost."],
];

export async function signInView(place, { notice, entered }) {
  document.title = "Sign in · Hushsum";
  const said = h("div", { class: "said" });
  const secret = h("input", { type: "password", name: "token", autocomplete: "off", spellcheck: "false", required: true });
  const button = h("button", {}, "Sign in");
  const other = h("div", { class: "other" });
  const form = h(
    "form",
    {
      class: "stack",
      onsubmit: (event) => {
        event.preventDefault();
        enter(secret.value.trim());
      },
    },
    field("Your token", secret, { hint: "It is kept in the open tabs only, until the last one is closed." }),
    h("div", { class: "row" }, button, other),
  );
  place.append(
    h(
      "div",
      { class: "sign-in" },
      h(
        "div",
        {},
        h("h1", { tabindex: "-1" }, "Release a function of your private data once; query it any number of times."),
        h("ol", { class: "story" }, STEPS.map(([name, text]) => h("li", {}, h("strong", {}, name), h("span", {}, text)))),
      ),
      h("section", { class: "card stack", "aria-labelledby": "sign-in" }, h("h2", { id: "sign-in" }, "Sign in"), said, form),
    ),
  );
  if (notice) {
    said.replaceChildren(
      problemBox({
        kind: "unauthenticated",
        message: "The token was revoked or has expired; sign in with another one.",
      }, { heading: "h3" }),
    );
  }

  async function enter(given) {
    button.disabled = true;
    said.replaceChildren();
    try {
      keep(given);
      known(await get("/me", { quiet: true }));
      announce("You are signed in.");
      entered();
    } catch (problem) {
      forget();
      const wrong = problem.status === 401 || problem.status === undefined;
      said.replaceChildren(
        problemBox(
          wrong
            ? {
              kind: "unauthenticated",
              message:
                "This is not a valid token of this service: it is wrong, expired or revoked; check it, or ask the administrator for another.",
            }
            : problem,
          { heading: "h3" },
        ),
      );
      secret.focus();
      secret.select();
    } finally {
      button.disabled = false;
    }
  }

  try {
    await identityProvider(other, enter);
  } catch (problem) {
    if (problem.status === undefined) throw problem;
    said.replaceChildren(problemBox(problem, { heading: "h3" }));
  }
}

/** A button for the provider, and the end of its journey: the service gives the token for a one-time cookie. */
async function identityProvider(other, enter) {
  const response = await offered("/sign-in");
  if (!response?.oidc) return;
  if (location.hash === "#signed-in") {
    history.replaceState(null, "", "#/");
    const { secret } = await ask("POST", "/oidc/finish", {
      anonymous: true,
      quiet: true,
      headers: { "x-requested-with": "hushsum" },
    });
    await enter(secret);
    return;
  }
  other.append(h("a", { class: "button quiet", href: addressOf("/oidc/start") }, `Sign in with ${response.oidc.name}`));
}
