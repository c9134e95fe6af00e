// The start: routing by the address, the signed-in user, and the page frame.
import { ask, get, onSignedOut } from "./api.js";
import { problemBox } from "./explorer/controls.js";
import { announce, h } from "./explorer/dom.js";
import { themeSwitch } from "./explorer/theme.js";
import { replaceBubbles } from "./parts/form_errors.js";
import { forget, joinTabs, known, leave, may, me, token } from "./session.js";
import { accountView } from "./views/account.js";
import { datasetView } from "./views/dataset.js";
import { datasetsView } from "./views/datasets.js";
import { filmView } from "./views/film.js";
import { functionView } from "./views/function.js";
import { functionsView } from "./views/functions.js";
import { logView } from "./views/log.js";
import { peopleView } from "./views/people.js";
import { releaseView } from "./views/release.js";
import { signInView } from "./views/sign_in.js";
import { streamView } from "./views/stream.js";

const ROUTES = [
  [/^\/functions$/, functionsView, "query"],
  [/^\/functions\/(fn_[0-9a-f]+)$/, functionView, "query"],
  [/^\/films\/([0-9a-f]{32})$/, filmView, "query"],
  [/^\/datasets(\?new)?$/, datasetsView, "upload"],
  [/^\/datasets\/(ds_[0-9a-f]+)$/, datasetView, "upload"],
  [/^\/datasets\/(ds_[0-9a-f]+)\/release(?:\?tally=(ta_[0-9a-f]+))?$/, releaseView, "release"],
  [/^\/datasets\/(ds_[0-9a-f]+)\/stream$/, streamView, "release"],
  [/^\/people$/, peopleView, "admin"],
  [/^\/log$/, logView, "admin"],
  [/^\/account$/, accountView, null],
];
const PLACES = [
  { href: "#/functions", name: "Functions", scope: "query" },
  { href: "#/datasets", name: "Datasets", scope: "upload" },
  { href: "#/people", name: "People", scope: "admin" },
  { href: "#/log", name: "Log", scope: "admin" },
];
const lamp = themeSwitch();
replaceBubbles();

const main = document.getElementById("main");
let leaveView = () => {};
let turn = 0;

/** Show the view of the address. A view that is slower than the next click shows nothing. */
async function show({ first = false, notice = null } = {}) {
  const mine = ++turn;
  leaveView();
  leaveView = () => {};
  if (token() && me() === null) {
    try {
      known(await get("/me", { quiet: true }));
    } catch (problem) {
      if (mine !== turn) return;
      if (problem.status !== 401) {
        main.replaceChildren(h("div", { class: "narrow" }, problemBox(problem, { again: () => show() })));
        return;
      }
      forget();
      notice ??= problem;
    }
  }
  frame();
  const place = h("div", { class: "view" });
  const view = me() === null ? signInView(place, { notice, entered: () => show() }) : routed(place);
  main.replaceChildren(place);
  main.setAttribute("aria-busy", "true");
  scrollTo(0, 0);
  try {
    const leave = await view;
    if (mine !== turn) leave?.();
    else leaveView = leave ?? leaveView;
  } catch (problem) {
    // A problem has a status; anything else is a mistake of the page's, and belongs into the console.
    if (problem.status === undefined) throw problem;
    if (mine === turn && problem.status !== 401) {
      place.replaceChildren(problemBox(problem, { again: () => show() }));
    }
  }
  if (mine !== turn) return;
  main.removeAttribute("aria-busy");
  if (!first) place.querySelector("[role=alert], h1")?.focus({ preventScroll: true });
}

function routed(place) {
  const path = location.hash.slice(1);
  for (const [pattern, view, scope] of ROUTES) {
    const found = pattern.exec(path);
    if (found && (scope === null || may(scope))) return view(place, ...found.slice(1));
  }
  const home = PLACES.find(({ scope }) => may(scope))?.href ?? "#/account";
  // An unknown address leads to the user's start view.
  history.replaceState(null, "", home);
  frame();
  return routed(place);
}

function frame() {
  const path = location.hash;
  document.getElementById("nav").replaceChildren(
    ...PLACES.filter(({ scope }) => may(scope)).map(({ href, name }) =>
      h("a", { href, "aria-current": path.startsWith(href) ? "page" : null }, name)
    ),
  );
  document.getElementById("who").replaceChildren(
    lamp,
    ...(me() === null ? [] : [
      h("a", { class: "button plain", href: "#/account", "aria-label": `Your account: ${me().name}, ${me().role}` }, me().name),
      h("button", { type: "button", class: "plain", onclick: signOut }, "Sign out"),
    ]),
  );
}

async function signOut() {
  // A token from a sign-in is this browser's alone, so it is revoked. One that was typed in belongs to its owner.
  const mine = me();
  if (mine?.signed_in) await ask("DELETE", `/tokens/${mine.token}`, { quiet: true }).catch(() => {});
  leave();
  history.replaceState(null, "", "#/");
  announce("You are signed out.");
  show();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  // The address determines the view, so it must not change here.
  event.preventDefault();
  main.focus();
});
onSignedOut((problem) => show({ notice: problem }));
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#/")) show();
});
joinTabs(() => {
  announce("You signed out in another tab.");
  show();
}).then(() => show({ first: true }));
