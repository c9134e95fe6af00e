// What a function can be queried for, and how its answers are shown: a number with its error, or a class.

import { columnLabel, short } from "../format.js";

const VALUES = {
  density: "density",
  histogram: "density",
  "gaussian-process": null,
  regressor: null,
  outliers: "score",
  neighbors: "neighbours",
};

/**
 * The subject of an explorer. `kind` is "number", "classes", "sets" or "none"; `source` is where its answers come from
 * (see sources/service.js).
 */
export function subjectOf(response, source) {
  return { ...(response.facts.model ? ofModel(response) : ofSum(response)), source, title: response.name };
}

function ofSum({ id, facts, signed }) {
  const dim = facts.dim ?? facts.kernel.parameters.dim ?? null;
  const near = facts.kernel.parameters.bandwidth;
  const names = facts.columns ?? Array.from({ length: dim ?? 0 }, (_, at) => `column ${at + 1}`);
  return {
    id,
    kind: dim === null ? "sets" : "number",
    names,
    labels: names.map(columnLabel),
    bounds: facts.bounds,
    classes: null,
    questions: null,
    counts: !signed,
    kernel: facts.kernel,
    stream: facts.stream?.stream ?? null,
    readings: signed
      ? [["sum", "sum of kernel values", "Sum"], ["mean", "mean kernel value", "Mean"]]
      : [["sum", "records near here", "Count"], ["mean", "share of records near here", "Share"]],
    about: signed
      ? "The kernel compares each record with the point; its values are added up."
      : `How many records are near a point. A record at the point counts as 1, farther ones as less${
        near ? `, at a distance set by the bandwidth, ${short(near)}` : inRanges(facts.kernel)
      }.`,
  };
}

/** Of a bandwidth that is a fraction of every column's range. */
const inRanges = ({ name, parameters }) =>
  name === "scaled" && parameters.kernel.parameters.bandwidth
    ? `, at a distance set by the bandwidth, ${short(parameters.kernel.parameters.bandwidth)} of each column's range`
    : "";

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
    counts: false,
    kernel: null,
    stream: null,
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
export async function answersAt(subject, of, points, options = {}) {
  const response = await subject.source.answer(of, points, options);
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
