// The top of a view.
import { h } from "../explorer/dom.js";

/** A heading, where one came from, a line below, and what can be done here. */
export function pageHead(title, { from = null, text = null, actions = [] } = {}) {
  document.title = `${title} · Hushsum`;
  return h(
    "div",
    { class: "head" },
    h(
      "div",
      { class: "head-text" },
      from && h("p", { class: "crumb" }, h("a", { href: from.href }, from.name), " /"),
      h("h1", { tabindex: "-1" }, title),
      text && h("p", {}, text),
    ),
    actions.length > 0 && h("div", { class: "row" }, actions),
  );
}
