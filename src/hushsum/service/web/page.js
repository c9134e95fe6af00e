"use strict";
// The token lives in this tab alone, and travels in a header: there is no cookie that another site could use.
const byId = (id) => document.getElementById(id);
const KEY = "hushsum-token";

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

async function ask(path) {
  const answer = await fetch(path, { headers: { authorization: "Bearer " + sessionStorage.getItem(KEY) } });
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.detail || "The service refused."), { status: answer.status });
  return body;
}

function functionCard(each) {
  const card = element("article", undefined, "card");
  card.append(element("h3", each.name));
  card.append(element("p", each.facts.claim.sentence));
  const kernel = each.facts.kernel;
  const columns = each.facts.columns ? each.facts.columns.join(", ") : "unnamed columns";
  card.append(element("p", `${kernel.name} kernel on ${columns} · ${each.id}`, "facts"));
  return card;
}

function datasetCard(each) {
  const card = element("article", undefined, "card");
  const budget = each.budget;
  card.append(element("h3", each.name));
  const exact = (text) => { const [a, b] = String(text).split("/"); return Number(a) / Number(b || 1); };
  const name = exact(budget.terms.budget.rho) > 0 ? "rho" : "epsilon";
  const spent = exact(budget.spent[name]);
  const total = exact(budget.terms.budget[name]);
  const symbol = name === "rho" ? "ρ" : "ε";
  const short = (value) => Number(value.toPrecision(3)).toString();
  card.append(element("p", `${symbol} ${short(spent)} spent of ${short(total)}`));
  const gauge = element("div", undefined, "gauge");
  gauge.setAttribute("role", "img");
  gauge.setAttribute("aria-label", `${Math.round((100 * spent) / total)} % of the budget is spent`);
  const bar = element("div");
  bar.style.width = `${Math.min(100, (100 * spent) / total)}%`;
  gauge.append(bar);
  card.append(gauge);
  card.append(element("p", `${budget.releases} released · ${each.id}`, "facts"));
  return card;
}

function fill(id, title, items, card, none) {
  const place = byId(id);
  place.replaceChildren(element("h2", title));
  if (!items.length) { place.append(element("p", none, "hint")); return; }
  const cards = element("div", undefined, "cards");
  cards.append(...items.map(card));
  place.append(cards);
}

async function show() {
  const me = await ask("/me");
  byId("inside-title").textContent = `${me.name}, ${me.role}`;
  byId("functions").replaceChildren();
  byId("datasets").replaceChildren();
  if (me.scopes.includes("query")) {
    fill("functions", "Functions", await ask("/functions"), functionCard, "No function yet that you may ask.");
  }
  if (me.scopes.includes("upload")) {
    fill("datasets", "Datasets", await ask("/datasets"), datasetCard, "No dataset yet.");
  }
  byId("sign-in").hidden = true;
  byId("inside").hidden = false;
  byId("inside-title").focus();
}

function leave(text) {
  sessionStorage.removeItem(KEY);
  byId("inside").hidden = true;
  byId("sign-in").hidden = false;
  byId("message").textContent = text || "";
}

async function enter() {
  byId("message").textContent = "";
  try { await show(); } catch (error) { leave(error.message); }
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, byId("token").value.trim());
  byId("token").value = "";
  enter();
});
byId("leave").addEventListener("click", () => leave());
if (sessionStorage.getItem(KEY)) enter();
