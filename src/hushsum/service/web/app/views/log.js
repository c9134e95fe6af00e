// For administrators: who did what, newest first.

import { get } from "../api.js";
import { h } from "../dom.js";
import { empty, loading } from "../parts/feedback.js";
import { pageHead } from "../parts/page_head.js";
import { table } from "../parts/tables.js";
import { moment } from "../format.js";

const PAGE = 25;

export async function logView(place) {
  const list = h("div", { class: "stack" }, loading("the log", 1));
  place.append(
    pageHead("Log", {
      text: "Append-only. Queries are not logged, since they change nothing.",
    }),
    list,
  );
  const [last, accounts] = await Promise.all([lastSequence(), get("/accounts")]);
  const names = new Map(accounts.map((each) => [each.id, each.name]));
  const who = (id) => names.get(id) ?? id;

  async function show(newest) {
    const first = Math.max(0, newest - PAGE);
    const lines = (await get(`/log?after=${first}&limit=${PAGE}`)).reverse();
    if (!lines.length) {
      list.replaceChildren(empty("Nothing yet", "Every change is logged here."));
      return;
    }
    const turn = (name, to, possible) =>
      h("button", { type: "button", class: "quiet", disabled: !possible, onclick: () => show(to) }, name);
    list.replaceChildren(
      table(
        `Lines ${lines[lines.length - 1].sequence} to ${lines[0].sequence}, newest first`,
        [{ name: "When", head: true }, { name: "Who" }, { name: "What" }, { name: "Of what" }, {
          name: "Request",
          minor: true,
        }],
        lines.map((
          each,
        ) => [
          moment(each.at),
          who(each.account),
          each.action,
          names.has(each.object) ? names.get(each.object) : h("code", {}, each.object),
          h("code", {}, each.request),
        ]),
      ),
      h(
        "div",
        { class: "row" },
        turn("Newer", Math.min(last, newest + PAGE), newest < last),
        turn("Older", first, first > 0),
      ),
    );
  }
  await show(last);
}

/** The number of the newest line. The log is read from its oldest line on, so its end is looked for by doubling and halving. */
async function lastSequence() {
  const isAfter = async (sequence) => (await get(`/log?after=${sequence}&limit=1`)).length > 0;
  let low = 0;
  let high = 1024;
  while (await isAfter(high)) [low, high] = [high, high * 2];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await isAfter(middle)) low = middle;
    else high = middle;
  }
  return high;
}
