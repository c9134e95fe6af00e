// A model: what it learns, from which columns, with which settings.
import { post } from "../api.js";
import { attempt, field, number, numberIn, select, text } from "../explorer/controls.js";
import { h, settled } from "../explorer/dom.js";
import { sentence, short } from "../explorer/format.js";
import { allBounded } from "./columns_form.js";
import { settingField } from "./setting_field.js";

const MODES = [["file", "From a file, without limit"], ["exact", "Exactly, a limited number"]];

/** The fields of one kind of model, and what it would claim. */
export function modelForm(dataset, kind, { columns, terms, upload, names, sample, written, report }, changed) {
  const learns = kind.learns !== null;
  const perPerson = dataset.budget.terms.max_per_unit ?? 1;
  const aim = () => {
    columns.bar("target", target.value || null);
    changed();
  };
  const target = names
    ? select([["", "choose a column"], ...names.map((each) => [each, each])], "", { onchange: aim, required: true })
    : text({ required: true, onchange: aim });
  const classes = text({ required: true, placeholder: "no, yes", oninput: changed });
  const settings = kind.settings.map((each) => settingField(each, changed));
  const [first, more] = [settings.filter((each) => !each.known), settings.filter((each) => each.known)];
  const given = () => (kind.takes_public ? sample.id() : null);
  /** A setting that must be entered and is not yet. Public rows decide some of them, and the bounds. */
  const open = () => settings.find((each) => each.required && each.value() === undefined && !(given() && each.leftToPublic));
  const bounded = () => (given() ? !columns.halfBounded() : allBounded(columns.bounds()));
  const panel = claimPanel(report);
  const mode = select(MODES, "file", {
    onchange() {
      most.hidden = mode.value !== "exact";
      changed();
    },
  });
  const questions = number({ min: 1, max: 5000, step: 1, value: "1000", oninput: changed });
  const most = field("Queries in total", questions, { hint: "Distinct points, from all users together; at most 5,000." });
  most.hidden = true;
  const modes = (kind.modes ?? []).includes("exact") ? [field("Answered", mode), most] : [];
  if (learns) columns.bar("target", target.value || null);
  terms.needDelta(kind.needs_delta);

  return {
    beside: panel.node,
    about: h("p", { class: "soft" }, kind.summary, perPerson > 1 && ` Models protect records so far: for persons with up to ${perPerson} records, this one costs ${perPerson} times its ε.`),
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
    names: [
      ["target", target],
      ["classes", classes],
      ["most_questions", questions],
      ...settings.flatMap(({ name, control }) => (control ? [[name, control], [`settings/${name}`, control]] : [])),
    ],
    request() {
      const promise = terms.promise();
      const bounds = columns.bounds();
      if (!promise || why(promise, kind, dataset) || !columns.chosen().length || !bounded()) {
        return null;
      }
      if ((learns && !target.value.trim()) || open()) return null;
      const request = {
        upload: upload.id,
        name: terms.name() || "unnamed",
        model: kind.name,
        columns: columns.chosen(),
        ...written(),
        ...promise,
        settings: {},
      };
      if (allBounded(bounds)) request.bounds = bounds;
      if (given()) request.public = given();
      if (mode.value === "exact") {
        Object.assign(request, { mode: "exact", most_questions: numberIn(questions) });
      }
      if (terms.records()) request.records = terms.records();
      if (learns) request.target = target.value.trim();
      if (kind.learns === "label") {
        request.classes = classes.value.split(",").map((each) => each.trim()).filter(Boolean);
      }
      for (const each of settings) if (each.value() !== undefined) request.settings[each.name] = each.value();
      return request.classes && request.classes.length < 2 ? null : request;
    },
    look() {
      sample.offer(kind.takes_public);
      const scale = settings.find((each) => each.name === "scale")?.value();
      for (const each of settings) each.look?.(Boolean(given()), scale);
      const request = this.request();
      if (request) return panel.ask(dataset, request);
      const reason = why(terms.promise(), kind, dataset);
      const missing = learns && !target.value.trim()
        ? "Choose the column to predict."
        : open() && `Enter the ${open().required.toLowerCase()}.`;
      panel.clear(reason ?? (missing || "Fill in the form, with bounds for every column, to see it."));
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
  const { unit, max_per_unit: cap } = dataset.budget.terms;
  if (unit === "person" && (cap === null || kind.relation === "replace")) {
    return `Models protect records so far, and this dataset protects persons. Release a function instead, or fit the model in a dataset ${
      cap === null && kind.relation !== "replace" ? "that declares the most records per person" : "that protects records"
    }.`;
  }
  if (kind.needs_delta && dataset.budget.terms.accounting === "pure") {
    return "This model needs a δ, and the budget of this dataset is in ε only. Use a dataset with a budget of ε and δ.";
  }
  return null;
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
    await attempt(async () => {
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
    }, (problem) => {
      if (mine === turn) clear(sentence(problem.message));
    });
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
