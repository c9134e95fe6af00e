// A model: what it learns, from which columns, with which settings.

import { post } from "../api.js";
import { h, settled } from "../dom.js";
import { field, number, numberIn, select, text } from "../parts/fields.js";
import { sentence, short } from "../format.js";
import { allBounded, BANDWIDTH } from "./columns_form.js";

const MODES = [["file", "Any number of queries, from a file"], ["exact", "Exact answers, a limited number of queries"]];

/** The fields of one kind of model, and what it would claim. */
export function modelForm(dataset, kind, { columns, terms, upload, names, report }, changed) {
  const learns = kind.learns !== null;
  const aim = () => {
    columns.bar("target", target.value);
    changed();
  };
  const target = names
    ? select(names.map((each) => [each, each]), names[names.length - 1], { onchange: aim })
    : text({ required: true, onchange: aim });
  const classes = text({ required: true, placeholder: "no, yes", oninput: changed });
  const settings = kind.settings.map((each) => settingField(each, changed));
  const [first, more] = [settings.filter((each) => !each.known), settings.filter((each) => each.known)];
  const panel = claimPanel(report);
  const mode = select(MODES, "file", {
    onchange() {
      most.hidden = mode.value !== "exact";
      changed();
    },
  });
  const questions = number({ min: 1, max: 5000, step: 1, value: "1000", oninput: changed });
  const most = field("Queries in total", questions, {
    hint: "Distinct points, from all users together; at most 5,000.",
  });
  most.hidden = true;
  const modes = (kind.modes ?? []).includes("exact") ? [field("Answered", mode), most] : [];
  if (learns) columns.bar("target", target.value);
  terms.needDelta(kind.needs_delta);

  return {
    beside: panel.node,
    about: h("p", { class: "soft" }, kind.summary),
    fields: [
      ...(learns ? [field("Column to predict", target)] : []),
      ...(kind.learns === "label"
        ? [
          field("Its values", classes, {
            hint: "All possible values, separated by commas. Declare them; do not take them from the data.",
          }),
        ]
        : []),
      ...first.map((each) => each.node),
    ],
    more: [...modes, ...more.map((each) => each.node)],
    request() {
      const promise = terms.promise();
      const bounds = columns.bounds();
      if (!promise || why(promise, kind, dataset) || !columns.chosen().length || !allBounded(bounds)) {
        return null;
      }
      const given = {
        upload: upload.id,
        name: terms.name() || "unnamed",
        model: kind.name,
        columns: columns.chosen(),
        bounds,
        ...promise,
        settings: {},
      };
      if (mode.value === "exact") {
        Object.assign(given, { mode: "exact", most_questions: numberIn(questions) });
      }
      if (terms.records()) given.records = terms.records();
      if (learns) given.target = target.value.trim();
      if (kind.learns === "label") {
        given.classes = classes.value.split(",").map((each) => each.trim()).filter(Boolean);
      }
      for (const each of settings) if (each.value() !== undefined) given.settings[each.name] = each.value();
      return given.classes && given.classes.length < 2 ? null : given;
    },
    look() {
      const request = this.request();
      if (request) return panel.ask(dataset, request);
      const reason = why(terms.promise(), kind, dataset);
      panel.clear(reason ?? "Fill in the form, with bounds for every column, to see it.");
    },
    leave() {
      columns.bar("target", null);
      terms.needDelta(false);
    },
  };
}

/** Why the budget of this dataset does not suit such a model; null if it does. */
function why(promise, kind, dataset) {
  if (promise?.rho) {
    return "Models claim ε and δ, and the budget of this dataset is in ρ. Use a dataset with a budget of ε, or of ε and δ.";
  }
  if (kind.needs_delta && dataset.budget.terms.accounting === "pure") {
    return "This model needs a δ, and the budget of this dataset is in ε only. Use a dataset with a budget of ε and δ.";
  }
  return null;
}

/** One setting. `known` ones have a default and may be left alone. */
function settingField(setting, changed) {
  const name = setting.name.replace(/_/g, " ");
  const label = name.charAt(0).toUpperCase() + name.slice(1);
  // Defaults suit columns from −1 to 1; a bandwidth is in the columns' own units, so it must always be entered.
  const own = setting.name === "bandwidth";
  const known = !own && (setting.default !== null || setting.optional);
  if (setting.type === "pair") {
    const [low, high] = [0, 1].map((side) =>
      number({
        "aria-label": `${side ? "highest" : "lowest"} ${name}`,
        value: setting.default?.[side] ?? "",
        oninput: changed,
      })
    );
    return {
      name: setting.name,
      known: false,
      node: h(
        "fieldset",
        { class: "field" },
        h("legend", { class: "label" }, label),
        h("div", { class: "row row-tight" }, low, high),
        h("p", { class: "hint" }, setting.help),
      ),
      value: () => (numberIn(low) === null || numberIn(high) === null
        ? undefined
        : [numberIn(low), numberIn(high)]),
    };
  }
  const control = setting.type === "text" && setting.choices
    ? select(setting.choices.map((each) => [each, each]), setting.default, { onchange: changed })
    : text({
      placeholder: own || setting.default === null ? "" : String(setting.default),
      required: own,
      oninput: changed,
    });
  const value = () => {
    const typed = control.value.trim();
    if (typed === "") return undefined;
    return setting.type === "text" || setting.choices?.includes(typed) ? typed : Number(typed);
  };
  return {
    name: setting.name,
    known,
    node: field(label, control, { hint: own ? BANDWIDTH : setting.help || null }),
    value,
  };
}

function claimPanel(report) {
  const big = h("p", { class: "big-number" }, "–");
  const words = h("p", { class: "small soft", role: "status" }, "Fill in the form to see it.");
  let turn = 0;
  const say = (error) => {
    big.textContent = error;
    report(error);
  };
  const clear = (message) => {
    say("–");
    words.textContent = message;
  };
  const ask = settled(300, async (dataset, request) => {
    const mine = ++turn;
    try {
      const { predicted } = await post(`/datasets/${dataset.id}/models/claims`, request);
      if (mine !== turn) return;
      if (predicted?.error === undefined || predicted?.error === null) {
        clear(
          predicted?.note
            ? sentence(predicted.note)
            : "This model's error cannot be predicted beforehand; it reports errors with its answers.",
        );
      } else {
        say(`± ${short(predicted.error, 2)}`);
        words.textContent = `of the ${predicted.of} at one point, with ${
          predicted.records.toLocaleString("en")
        } records. ${predicted.note ? sentence(predicted.note) : ""}`;
      }
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      if (mine === turn) clear(sentence(problem.message));
    }
  });
  return {
    node: h(
      "section",
      { class: "card stack", "aria-label": "Predicted error" },
      h("div", {}, h("h2", {}, "Predicted error"), big, words),
    ),
    ask,
    clear(message) {
      turn += 1;
      ask.cancel();
      clear(message);
    },
  };
}
