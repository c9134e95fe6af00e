// How much of a budget is spent, on what, and what remains.
import { h } from "../explorer/dom.js";
import { count, exact, short } from "../explorer/format.js";

/** The sum that a budget bounds: its letter, and how to read it off a charge. */
export function measure(budget) {
  return budget.terms.accounting === "zcdp" ? { name: "rho", letter: "ρ" } : { name: "epsilon", letter: "ε" };
}

export function standing(budget) {
  const { name, letter } = measure(budget);
  const [total, spent, left] = [budget.terms.budget, budget.spent, budget.remaining].map((each) =>
    exact(each[name])
  );
  const deltas = [budget.terms.budget, budget.spent].map((each) => exact(each.delta));
  return {
    name,
    letter,
    total,
    spent,
    left,
    delta: deltas[0] > 0 ? { total: deltas[0], spent: deltas[1] } : null,
    exhausted: left <= 0,
  };
}

/** A bar with one part per release. `charges` are the costs in order; `next` is one that is only considered. */
export function gauge(budget, { charges = null, next = 0 } = {}) {
  const { letter, total, spent, left, delta } = standing(budget);
  const parts = (charges ?? (spent > 0 ? [spent] : [])).filter((each) => each > 0);
  const part = (size, name) => {
    const node = h("div", { class: name });
    node.style.width = `${Math.min(100, (100 * size) / total)}%`;
    return node;
  };
  const words = `${letter} ${short(spent)} of ${short(total)} is spent, ${short(left)} remains`;
  return h(
    "div",
    {},
    h(
      "div",
      { class: "gauge", role: "img", "aria-label": `${words}.` },
      parts.map((each) => part(each, "gauge-part")),
      next > 0 && part(Math.min(next, left), "gauge-part gauge-new"),
    ),
    h(
      "div",
      { class: "gauge-words" },
      h(
        "span",
        {},
        h("strong", {}, `${letter} ${short(spent)}`),
        ` of ${short(total)} spent`,
        delta && `, δ ${short(delta.spent)} of ${short(delta.total)}`,
      ),
      h(
        "span",
        {},
        h("strong", {}, `${letter} ${short(left)}`),
        " left",
        budget.releases > 0 && ` · ${count(budget.releases, "release")}`,
      ),
      next > 0 && h("span", { class: "gauge-legend" }, h("i", { class: "gauge-new", "aria-hidden": "true" }), `this release, ${letter} ${short(Math.min(next, left))}`),
    ),
  );
}
