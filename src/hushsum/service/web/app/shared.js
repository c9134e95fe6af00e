// The page of a shared function, as a page or as a widget in another site. It knows one link, and no token.
import { Problem } from "./api.js";
import { fileName, problemBox, save } from "./explorer/controls.js";
import { h } from "./explorer/dom.js";
import { openExplorer } from "./explorer/explorer.js";
import { functionPage } from "./explorer/local.js";
import { subjectOf } from "./explorer/subjects.js";
import { loading } from "./parts/feedback.js";
import { replaceBubbles } from "./parts/form_errors.js";
import { linkOf, linkSource, sharedFile, sharedFunction } from "./sources/link.js";
import { linkRequests } from "./sources/requests.js";
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
  const { name: title, facts } = response;
  document.title = title;
  document.body.classList.toggle("embedded", embedded);
  const download = async () => save(await sharedFile(key), `${fileName(title)}.hush`);
  const actions = response.download ? [h("button", { type: "button", class: "quiet", onclick: download }, "Download .hush")] : [];
  const place = functionPage(main, { title, about: whatItIs(facts), claim: facts.claim, actions, embedded });
  const requests = embedded ? {} : linkRequests(key, { model: Boolean(facts.model) });
  openExplorer(place, subjectOf({ ...response, id: "shared" }, linkSource(key, response)), { requests, compact: embedded });
}

show();
