// The predicted error of each release option, updated live before anything is spent.
import { post } from "../api.js";
import { attempt } from "../explorer/controls.js";
import { h, settled } from "../explorer/dom.js";
import { sentence, short } from "../explorer/format.js";

export const METHODS = {
  race: "Hash rows",
  grid: "Grid",
  fourier_features: "Fourier features",
  landmarks: "Landmarks",
  monomials: "Monomials",
};
const ABOUT = {
  race: "any number of columns",
  grid: "one to four bounded columns",
  fourier_features: "many columns, Gaussian kernel",
  landmarks: "several bounded columns",
  monomials: "polynomial kernels, exactly",
};

/** A panel that follows the form. `picked()` waits for the option taken, null if there is none; `report` receives each error. */
export function planPanel(dataset, report) {
  const list = h("div", { class: "options", role: "radiogroup", "aria-label": "Release option" });
  const words = h("p", { class: "small soft", role: "status" }, "Fill in the form to see it.");
  const big = h("p", { class: "big-number" }, "–");
  const node = h(
    "section",
    { class: "card stack", "aria-label": "Predicted error" },
    h("div", {}, h("h2", {}, "Predicted error"), big, words),
    list,
  );
  const say = (error) => {
    big.textContent = error;
    report(error);
  };
  let options = [];
  let taken = null;
  let preferred = null;
  let turn = 0;

  // A user who continues while a request is pending must get its result, not the previous one.
  let answered = Promise.resolve();
  let tellAnswered = () => {};

  // Errors are planned for means, between 0 and 1; of a kernel that counts records they are shown as records.
  let records = null;
  const amount = (error) => (records === null ? `± ${short(error, 2)}` : `± ${short(error * records, 2)} records`);

  const send = settled(250, async (question) => {
    const mine = ++turn;
    await attempt(async () => {
      const plan = await post(`/datasets/${dataset.id}/plans`, question);
      if (mine === turn) show(plan, question);
    }, (problem) => {
      if (mine === turn) clear(sentence(problem.message));
    });
  });

  function ask(question, { counted }) {
    records = counted ? question.records : null;
    tellAnswered();
    answered = new Promise((done) => {
      tellAnswered = done;
    });
    send(question);
  }

  async function picked() {
    let last;
    do {
      last = answered;
      await last;
    } while (last !== answered);
    return taken;
  }

  function clear(text) {
    options = [];
    taken = null;
    list.replaceChildren();
    say("–");
    words.textContent = text;
    tellAnswered();
  }

  function show(plan, { delta = 0 }) {
    // The best of each method is enough to choose from; of those that make this very promise, with whole cells.
    const best = new Map();
    for (const each of plan.options) {
      if (!each.requested || each.delta !== delta || each.settings.rounded) continue;
      if (!best.has(each.method) || each.error < best.get(each.method).error) best.set(each.method, each);
    }
    options = [...best.values()].sort((one, other) => one.error - other.error);
    if (!options.length) {
      clear("No release option fits: choose other columns, or another kernel.");
      return;
    }
    const worst = options[options.length - 1].error;
    list.replaceChildren(...options.map((each) => {
      const bar = h("i");
      bar.style.width = `${Math.max(2, (100 * each.error) / worst)}%`;
      return h(
        "label",
        { class: "option" },
        h("input", {
          type: "radio",
          name: "option",
          value: each.method,
          onchange: () => {
            preferred = each.method;
            take(each);
          },
        }),
        h("span", { class: "option-name" }, METHODS[each.method] ?? each.method),
        h("span", { class: "number" }, amount(each.error)),
        h("span", { class: "small soft" }, ABOUT[each.method] ?? ""),
        h("span", { class: "small soft number" }, each.best ? "best" : ""),
        h("span", { class: "option-bar", "aria-hidden": "true" }, bar),
      );
    }));
    take(options.find((each) => each.method === preferred) ?? options[0]);
  }

  function take(option) {
    taken = option;
    for (const input of list.querySelectorAll("input")) input.checked = input.value === taken.method;
    say(amount(taken.error));
    const parts = `noise ${amount(taken.noise)}, approximation ${amount(taken.approximation)}`;
    // Errors at two densities differ where the density is only guessed.
    const both = taken.sparse_error === taken.dense_error
      ? ""
      : ` Where few records are near, the error is ${amount(taken.sparse_error)}; where most are near, ${
        amount(taken.dense_error)
      }.`;
    words.textContent = records === null
      ? `at a typical point, where values lie between 0 and 1: ${parts}.${both} Nothing is spent yet.`
      : `near a typical point, of about ${records.toLocaleString("en")}: ${parts}. As a share of all: ± ${
        short(taken.error, 2)
      }.${both} Nothing is spent yet.`;
    tellAnswered();
  }

  return {
    node,
    ask,
    clear(text) {
      turn += 1;
      send.cancel();
      clear(text);
    },
    picked,
  };
}
