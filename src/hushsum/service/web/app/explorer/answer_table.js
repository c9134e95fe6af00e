// The picture in words and numbers, for those who read it.

import { h } from "../dom.js";
import { table } from "../parts/tables.js";
import { columnValue, short, withError } from "../format.js";
import { difference } from "./comparison.js";
import { valueName } from "./picture.js";

const ROWS = 12;
const CELLS = 6;

/** One sentence: where the value is highest and lowest, or which classes there are. */
export function summary(subject, state, { xs, ys }, answers) {
  const [first, second] = state.shown;
  const where = (index) => {
    const x = columnValue(subject.names[first], xs[index % xs.length]);
    return second === null
      ? x
      : `${x}, ${columnValue(subject.names[second], ys[Math.floor(index / xs.length)])}`;
  };
  const name = second === null ? "Curve" : "Map";
  if (subject.classes) {
    const shares = subject.classes.map((each) =>
      `${each} ${
        Math.round((100 * answers.label.filter((label) => label === each).length) / answers.label.length)
      } %`
    );
    return `${name} of the predicted class. Of what is shown: ${shares.join(", ")}.`;
  }
  const known = answers.value.map((value, index) => [value, index]).filter(([value]) => value !== null);
  if (!known.length) return `${name} without a known value.`;
  const [high, low] = [Math.max, Math.min].map((pick) =>
    known.find(([value]) => value === pick(...known.map(([each]) => each)))[1]
  );
  const output = (index) => `${numberWords(answers, index)} at ${where(index)}`;
  return `${name} of ${valueName(subject, state)}. Highest: ${
    output(high)
  }. Lowest: ${output(low)}.`;
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
    ? [[subject.title, own], [state.other.title, others], ["difference", difference(own, others)]]
    : [["", shown]];
  const label = shown.label ? ["class"] : [];
  const columns = [
    ...subject.names,
    ...label,
    ...sets.flatMap(([name]) => PARTS.map((part) => (name ? `${name}: ${part}` : part))),
  ];
  const rows = points.map((point, at) => [
    ...point,
    ...(shown.label ? [shown.label[at]] : []),
    ...sets.flatMap(([, answers]) => PARTS.map((part) => answers[part][at])),
  ]);
  return { columns, rows };
}

export function asTable(subject, state, { xs, ys }, answers) {
  const [first, second] = state.shown;
  const cell = (
    index,
  ) => (answers.label
    ? `${answers.label[index]}${answers.value[index] === null ? "" : ` (${short(answers.value[index])})`}`
    : numberWords(answers, index));
  const pick = (length, count) =>
    Array.from({ length: count }, (_, at) => Math.round((at * (length - 1)) / (count - 1)));
  const content = second === null
    ? table(
      `${subject.labels[first]} and the answer`,
      [{ name: subject.labels[first], number: true, head: true }, {
        name: "Answer ± standard error",
        number: true,
      }],
      pick(xs.length, ROWS).map((at) => [short(xs[at]), cell(at)]),
      { small: true },
    )
    : table(
      `${subject.labels[second]} downwards, ${subject.labels[first]} across; answer ± standard error`,
      [
        { name: subject.labels[second], head: true, number: true },
        ...pick(xs.length, CELLS).map((at) => ({ name: short(xs[at]), number: true })),
      ],
      pick(ys.length, CELLS).reverse().map((
        row,
      ) => [short(ys[row]), ...pick(xs.length, CELLS).map((at) => cell(row * xs.length + at))]),
      { small: true },
    );
  return h("details", {}, h("summary", {}, "The same as a table"), content);
}
