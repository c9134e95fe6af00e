// What a function can be queried for, and how its answers are shown: a number with its error, or a class.

import { post } from "../api.js";
import { columnLabel } from "../format.js";

const VALUES = {
  density: "density",
  histogram: "density",
  "gaussian-process": null,
  regressor: null,
  outliers: "score",
  neighbors: "neighbours",
};

/** The subject of an explorer. `kind` is "number", "classes", "sets" or "none". */
export function subjectOf(response) {
  return response.facts.model ? ofModel(response) : ofSum(response);
}

function ofSum({ id, facts }) {
  const dim = facts.kernel.parameters.dim ?? null;
  const names = facts.columns ?? Array.from({ length: dim ?? 0 }, (_, at) => `column ${at + 1}`);
  return {
    id,
    kind: dim === null ? "sets" : "number",
    names,
    labels: names.map(columnLabel),
    bounds: facts.bounds,
    classes: null,
    questions: null,
    readings: [["mean", "mean kernel value", "Mean"], ["sum", "kernel sum (records)", "Sum"]],
    about: "How similar the records are to a point: 1 if all are at the point, 0 if none is near.",
  };
}

function ofModel({ id, facts }) {
  const { model } = facts;
  const names = model.features ?? facts.columns ?? [];
  const answers = model.answers ?? [];
  const chooses = Boolean(model.classes?.length) && answers.includes("prediction");
  const tells = answers.includes("value") || answers.includes("prediction");
  const value = VALUES[model.kind] ?? (model.target ? columnLabel(model.target) : "value");
  return {
    id,
    kind: chooses ? "classes" : tells && names.length ? "number" : "none",
    names,
    labels: names.map(columnLabel),
    bounds: model.bounds,
    classes: chooses ? model.classes : null,
    // A model in exact mode answers a limited number of distinct points in total; a file answers any number.
    questions: model.mode === "exact" ? model.most_questions : null,
    readings: [[
      "predict",
      chooses ? (answers.includes("probability") ? "probability" : "decision value") : value,
      "Prediction",
    ]],
    about: chooses
      ? `The predicted class${
        model.target ? ` of ${columnLabel(model.target)}` : ""
      }: the deeper its colour, the firmer.`
      : `The model's answer at a point: ${value}.`,
  };
}

/** Answers at points: lists of value, stderr, lower, upper; of classes also their names and scores. */
export async function answersAt(subject, of, points, signal) {
  const response = await post(`/functions/${subject.id}/query?of=${of}`, { points }, { signal });
  return subject.classes ? chosen(subject, response, points.length) : numbers(response, points.length);
}

function numbers(response, length) {
  const none = () => Array.from({ length }, () => null);
  return {
    value: response.value ?? response.prediction,
    stderr: response.stderr ?? none(),
    lower: response.lower ?? none(),
    upper: response.upper ?? none(),
    label: null,
    scores: null,
  };
}

/** Of each point: the class, its score, and by how much it leads. The error is that of the lead, if the scores have errors. */
function chosen(subject, response, length) {
  const scores = response.probability ?? response.decision ?? null;
  // One error per point applies to each of its scores.
  const errors = scores && response.stderr
    ? response.stderr.map((each, at) => (Array.isArray(each) ? each : scores[at].map(() => each)))
    : null;
  const label = response.prediction.map(String);
  const value = [];
  const stderr = [];
  const lead = [];
  for (let at = 0; at < length; at += 1) {
    const best = Math.max(0, subject.classes.indexOf(label[at]));
    const row = scores?.[at] ?? null;
    value.push(row ? row[best] : null);
    const rivals = row ? row.filter((_, each) => each !== best) : [];
    lead.push(row && rivals.length ? row[best] - Math.max(...rivals) : null);
    stderr.push(errors ? errors[at][best] : null);
  }
  const edge = (sign) =>
    value.map((each, at) => (each === null || stderr[at] === null ? null : each + sign * 1.96 * stderr[at]));
  return { value, stderr, lower: edge(-1), upper: edge(1), label, scores, errors, lead };
}
