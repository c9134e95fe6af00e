// What a function can be queried for, its answers, and what they say in words: numbers with their errors, or classes.
import { columnLabel, columnValue, kernelInWords, short, withError } from "./format.js";
import { spread } from "./drawing.js";

const VALUES = {
  density: "density", histogram: "density", "gaussian-process": null, regressor: null, outliers: "score", neighbors: "neighbours",
}; // prettier-ignore

/**
 * The subject of an explorer. `kind` is "number", "classes", "sets" or "none"; `source` is where its answers come from (see
 * sources/service.js). A reading is {of, name, label}, and may have another `quantity` to query and a `factor` of its answers.
 */
export function subjectOf(response, source) {
  return { ...(response.facts.model ? ofModel(response) : ofSum(response)), source, title: response.name };
}

function ofSum({ id, facts, signed }) {
  const dim = facts.dim ?? facts.kernel.parameters.dim ?? null;
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
    readings: readingsOf(signed),
    about: aboutSums(signed, nearness(facts.kernel)),
  };
}

/** How kernel sums are read: of a kernel that is never negative as counts of records. */
export const readingsOf = (signed) =>
  signed
    ? [{ of: "sum", name: "sum of kernel values", label: "Sum" }, { of: "mean", name: "mean kernel value", label: "Mean" }]
    : [{ of: "sum", name: "records near here", label: "Count" }, { of: "mean", name: "share of records near here", label: "Share" }];

export const aboutSums = (signed, near = "") =>
  signed
    ? "The kernel compares each record with the point; its values are added up."
    : `How many records are near a point. A record at the point counts as 1, farther ones as less${near}.`;

/** At what distance; a bandwidth may be a fraction of every column's range. */
function nearness({ name, parameters }) {
  const width = name === "scaled" ? parameters.kernel.parameters.bandwidth : parameters.bandwidth;
  return width ? `, at a distance set by the bandwidth, ${short(width)}${name === "scaled" ? " of each column's range" : ""}` : "";
}

function ofModel({ id, facts }) {
  const { model } = facts;
  const names = model.features ?? facts.columns ?? [];
  const answers = model.answers ?? [];
  const chooses = Boolean(model.classes?.length) && answers.includes("prediction");
  const tells = answers.includes("value") || answers.includes("prediction");
  const value = VALUES[model.kind] ?? (model.target ? columnLabel(model.target) : "value");
  const name = chooses ? (answers.includes("probability") ? "probability" : "decision value") : value;
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
    readings: [{ of: "predict", name, label: "Prediction" }],
    about: chooses
      ? `The predicted class${model.target ? ` of ${columnLabel(model.target)}` : ""}: the deeper its colour, the firmer.`
      : `The model's answer at a point: ${value}.`,
  };
}

const readingOf = (subject, of) => subject.readings.find((each) => each.of === of);

/** The name of what is read: that of the reading, or of the difference of two. */
export function valueName(subject, state) {
  const { name } = readingOf(subject, state.of);
  return state.other && state.mode === "difference" ? `difference in ${name}` : name;
}

const ALONG = { plenty: 241, few: 41 };
const ACROSS = { plenty: 73, few: 9 };

/** The points of a picture: along one axis, or on a lattice of two, `number` along each; all others stay where they are. */
export function lattice(subject, state, number = null) {
  const [first, second] = state.shown;
  const many = number ?? (second === null ? ALONG : ACROSS)[subject.questions === null ? "plenty" : "few"];
  const xs = spread(state.ranges[first], many);
  const ys = second === null ? [null] : spread(state.ranges[second], many);
  const points = ys.flatMap((y) =>
    xs.map((x) => {
      const point = [...state.at];
      point[first] = x;
      if (second !== null) point[second] = y;
      return point;
    }),
  );
  const axes = second === null ? [first] : [first, second];
  return { xs, ys, points, lattice: { axes, steps: second === null ? [xs] : [xs, ys], fixed: [...state.at] } };
}

/** Answers at points: lists of value, stderr, lower, upper; of classes also their names and scores. */
export async function answersAt(subject, of, points, options = {}) {
  const { quantity = of, factor = 1 } = readingOf(subject, of);
  const response = await subject.source.answer(quantity, points, options);
  return subject.classes ? chosen(subject, response, points.length) : numbers(response, points.length, factor);
}

function numbers(response, length, factor) {
  const list = (found) => (found ?? Array(length).fill(null)).map((each) => (each === null ? null : factor * each));
  return {
    value: list(response.value ?? response.prediction),
    stderr: list(response.stderr),
    lower: list(response.lower),
    upper: list(response.upper),
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
    : null; // prettier-ignore
  const label = response.prediction.map(String);
  const [value, stderr, lead] = [[], [], []];
  for (let at = 0; at < length; at += 1) {
    const best = Math.max(0, subject.classes.indexOf(label[at]));
    const row = scores?.[at] ?? null;
    const rivals = row ? row.filter((_, each) => each !== best) : [];
    value.push(row ? row[best] : null);
    lead.push(rivals.length ? row[best] - Math.max(...rivals) : null);
    stderr.push(errors ? errors[at][best] : null);
  }
  const edge = (sign) => value.map((each, at) => (each === null || stderr[at] === null ? null : each + sign * 1.96 * stderr[at]));
  return { value, stderr, lower: edge(-1), upper: edge(1), label, scores, errors, lead };
}

// --- two functions --------------------------------------------------------------------------------------------------

/**
 * Whether a function can be compared with another: the same columns and the same readings. Steps of one stream share noise;
 * their change is shown by the film.
 */
export function comparable(one, other) {
  const same = (first, second, part) => first.length === second.length && first.every((each, at) => part(each) === part(second[at]));
  return one.id !== other.id && (one.stream === null || one.stream !== other.stream) &&
    [one, other].every(({ kind, questions }) => kind === "number" && questions === null) &&
    same(one.names, other.names, String) && same(one.readings, other.readings, ({ of, name }) => `${of} ${name}`); // prettier-ignore
}

/** Why a comparison may say little, or null. */
export function caution(one, other) {
  const [first, second] = [one, other].map(({ kernel }) => (kernel ? kernelInWords(kernel) : null));
  return first === second ? null : `They count nearness differently: ${first} against ${second}.`;
}

/**
 * The difference of two lists of answers. Every release draws noise of its own, so the squares of standard errors add up,
 * and so do those of the intervals' arms. Approximation errors of functions that share hashes partly cancel; then this is
 * larger than need be. Of functions whose noise depends on each other in an unknown way, errors add up at most: `joined`.
 */
export function difference(one, other, joined = Math.hypot) {
  const known = (...values) => values.every((value) => value !== null && value !== undefined);
  const each = (names, pick) =>
    one.value.map((_, at) => {
      const values = names.flatMap((name) => [one[name][at], other[name][at]]);
      return known(...values) ? pick(...values) : null;
    });
  return {
    value: each(["value"], (a, b) => a - b),
    stderr: each(["stderr"], joined),
    lower: each(["value", "lower", "upper"], (a, b, aLow, _, __, bHigh) => a - b - joined(a - aLow, bHigh - b)),
    upper: each(["value", "lower", "upper"], (a, b, _, bLow, aHigh) => a - b + joined(aHigh - a, b - bLow)),
    label: null,
    scores: null,
  };
}

// --- in words -------------------------------------------------------------------------------------------------------

/** One sentence: where the value is highest and lowest, or which classes there are. */
export function summary(subject, state, { xs, ys }, answers) {
  const [first, second] = state.shown;
  const x = (index) => columnValue(subject.names[first], xs[index % xs.length]);
  const where = (index) =>
    second === null ? x(index) : `${x(index)}, ${columnValue(subject.names[second], ys[Math.floor(index / xs.length)])}`;
  const name = second === null ? "Curve" : "Map";
  if (subject.classes) {
    const part = (each) => answers.label.filter((label) => label === each).length / answers.label.length;
    const shares = subject.classes.map((each) => `${each} ${Math.round(100 * part(each))} %`);
    return `${name} of the predicted class. Of what is shown: ${shares.join(", ")}.`;
  }
  let [high, low] = [-1, -1];
  answers.value.forEach((value, at) => {
    if (value === null) return;
    if (high < 0 || value > answers.value[high]) high = at;
    if (low < 0 || value < answers.value[low]) low = at;
  });
  if (high < 0) return `${name} without a known value.`;
  const output = (index) => `${numberWords(answers, index)} at ${where(index)}`;
  return `${name} of ${valueName(subject, state)}. Highest: ${output(high)}. Lowest: ${output(low)}.`;
}

/** A value and its error, as text. */
export function numberWords(answers, index) {
  const { value, error } = withError(answers.value[index], answers.stderr[index]);
  return error === "unknown" ? value : `${value} ± ${error}`;
}

const PARTS = ["value", "stderr", "lower", "upper"];

/** Everything that is shown as columns and rows, for a file. */
export function exported(subject, state, { points }, { own, others, shown }) {
  const sets = others
    ? [[`${subject.title}: `, own], [`${state.other.title}: `, others], ["difference: ", difference(own, others)]]
    : [["", shown]]; // prettier-ignore
  const label = (found) => (shown.label ? [found] : []);
  return {
    columns: [...subject.names, ...label("class"), ...sets.flatMap(([name]) => PARTS.map((part) => name + part))],
    rows: points.map((point, at) => [
      ...point,
      ...label(shown.label?.[at]),
      ...sets.flatMap(([, answers]) => PARTS.map((part) => answers[part][at])),
    ]),
  };
}
