// The page of a shared function, as a page or as a widget in another site. It knows one link, and no token.

import { Problem } from "./api.js";
import { h } from "./dom.js";
import { explorer } from "./explorer/explorer.js";
import { setExplorer } from "./explorer/sets.js";
import { subjectOf } from "./explorer/subject.js";
import { claimFacts, claimSentence, facts } from "./parts/claims.js";
import { fileName, save } from "./parts/copying.js";
import { empty, loading, problemBox } from "./parts/feedback.js";
import { replaceBubbles } from "./parts/form_errors.js";
import { inShort, meaning } from "./parts/meaning.js";
import { linkOf, linkSource, sharedFile, sharedFunction } from "./sources/link.js";
import { linkRequests } from "./sources/requests.js";
import { themeSwitch } from "./theme.js";
import { whatItIs } from "./views/function_words.js";

const main = document.getElementById("main");
replaceBubbles();
const { key, embedded } = linkOf(location.pathname) ?? {};

async function show() {
  main.replaceChildren(loading("the function", 1));
  try {
    const response = await sharedFunction(key);
    view(response);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    main.replaceChildren(h("div", { class: "narrow" }, problemBox(problem, { heading: "h1", again: show })));
  }
}

function view(response) {
  document.title = response.name;
  document.body.classList.toggle("embedded", embedded);
  const place = h("div", {});
  const { claim } = response.facts;
  const download = response.download &&
    h("button", {
      type: "button",
      class: "quiet",
      onclick: async () => save(await sharedFile(key), `${fileName(response.name)}.hush`),
    }, "Download .hush");
  main.replaceChildren(
    h(
      "div",
      { class: "head" },
      h("div", { class: "head-text" }, h("h1", {}, response.name), h("p", {}, whatItIs(response.facts))),
      h("div", { class: "row" }, download, themeSwitch()),
    ),
    place,
    h(
      "section",
      { class: "section", "aria-label": "Privacy" },
      embedded
        ? h("details", {}, h("summary", {}, `Privacy: ${inShort(claim)}`), privacy(claim))
        : h("div", { class: "stack" }, h("h2", {}, "Privacy"), privacy(claim)),
    ),
  );
  const subject = subjectOf({ ...response, id: "shared" }, linkSource(key, response));
  if (subject.kind === "sets") setExplorer(place, subject);
  else if (subject.kind === "none") {
    place.append(empty("Nothing to plot", "This model has no answer at a single point."));
  } else {
    const requests = linkRequests(key, { model: Boolean(response.facts.model) });
    explorer(place, subject, { requests: embedded ? {} : requests, compact: embedded });
  }
}

const privacy = (claim) =>
  h(
    "div",
    { class: "card stack" },
    claimSentence(claim),
    meaning(claim),
    h("details", {}, h("summary", {}, "Details of the claim"), facts(claimFacts(claim))),
  );

show();
