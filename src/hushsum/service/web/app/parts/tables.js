// Tables that can be read aloud, and that scroll by themselves on narrow screens.

import { h } from "../dom.js";

/**
 * `columns` are {name, number, head, minor}, the latter not shown on phones; `rows` lists of cells, one per column. A
 * `quiet` caption is for screen readers only: a heading shows it already. With `cards`, rows are cards on phones.
 */
export function table(
  caption,
  columns,
  rows,
  { small = false, foot = null, quiet = false, cards = false } = {},
) {
  const cell = (tag, column, content, scope) =>
    h(tag, {
      class: [column.number && "number", column.minor && "minor"].filter(Boolean).join(" ") || null,
      scope,
      // Shown before the content where a row is a card; there the row of names is not seen.
      "data-name": cards && tag === "td" ? column.name || null : null,
    }, content);
  return h(
    "div",
    { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" },
    h(
      "table",
      { class: [small && "table-small", cards && "cards-narrow"].filter(Boolean).join(" ") || null },
      h("caption", { class: quiet ? "unseen" : null }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((each) =>
            cell("th", each, each.name || h("span", { class: "unseen" }, "Actions"), "col")
          ),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            row.map((content, at) =>
              columns[at].head
                ? cell("th", columns[at], content, "row")
                : cell("td", columns[at], content, null)
            ),
          )
        ),
      ),
      foot && h("tfoot", {}, h("tr", {}, foot.map((content, at) => cell("td", columns[at], content, null)))),
    ),
  );
}
