// From answers to a picture: a curve, curves of classes, a heat map, or regions.

import { classColour, css, diverging, faded, painted, ramp } from "../charts/colour.js";
import { apartFromZero, curves } from "../charts/curve.js";
import { filled, hatched, zeroLine } from "../charts/map.js";
import { extent, roomy, spread } from "../charts/scale.js";
import { h } from "../dom.js";
import { isDark } from "../theme.js";
import { sameUnit, short } from "../format.js";

/** The colour of a function that is compared with another. */
const OTHER = classColour(4);
const CONTOURS = [0.25, 0.5, 0.75];
const ALONG = { plenty: 241, few: 41 };
const ACROSS = { plenty: 73, few: 9 };

/** The points of a picture: along one axis, or on a lattice of two; all others stay where they are. */
export function lattice(subject, state) {
  const [first, second] = state.shown;
  const number = (second === null ? ALONG : ACROSS)[subject.questions === null ? "plenty" : "few"];
  const xs = spread(state.ranges[first], number);
  const ys = second === null ? [null] : spread(state.ranges[second], number);
  const points = ys.flatMap((y) =>
    xs.map((x) => {
      const point = [...state.at];
      point[first] = x;
      if (second !== null) point[second] = y;
      return point;
    })
  );
  const axes = second === null ? [first] : [first, second];
  return { xs, ys, points, lattice: { axes, steps: second === null ? [xs] : [xs, ys], fixed: [...state.at] } };
}

/** The name of what is read: that of the reading, or of the difference of two. */
export function valueName(subject, state) {
  const name = subject.readings.find(([of]) => of === state.of)[1];
  return state.other && state.mode === "difference" ? `difference in ${name}` : name;
}

/**
 * What a plot draws, and the legend beside it. `answers` are those of the function, of another one, and what is shown. A
 * `span` in the state are numbers that the scale must include, so that pictures can be compared; with `marks` the parts of a
 * curve that differ from zero are marked.
 */
export function pictureOf(subject, state, { xs, ys }, { shown: answers, others }) {
  const [first, second] = state.shown;
  const axis = (at) => ({ range: state.ranges[at], name: subject.labels[at] });
  const name = valueName(subject, state);
  const overlaid = others && state.mode === "overlay" ? others : null;
  if (second === null) {
    const lines = subject.classes ? classLines(subject, answers) : [answers];
    if (overlaid) lines.push({ ...overlaid, colour: css(OTHER), dashed: true });
    const all = lines.flatMap((each) => [...each.value, ...(each.lower ?? []), ...(each.upper ?? [])]);
    return {
      spec: {
        x: axis(first),
        y: {
          range: subject.classes || state.of === "predict" ? roomy(all) : roomy([...all, 0, ...(state.span ?? [])]),
          name,
        },
        draw: (frame) => [curves(xs, lines)(frame), state.marks && apartFromZero(xs, answers)(frame)],
      },
      legend: subject.classes ? classLegend(subject) : bandLegend(subject, state),
    };
  }
  const map = subject.classes ? regions(subject, xs, ys, answers) : heat(subject, state, xs, ys, answers, overlaid);
  return {
    spec: {
      x: axis(first),
      y: axis(second),
      alike: alike(subject, state),
      filled: true,
      pale: subject.classes !== null || map.pale,
      draw: (frame) => map.layers.map((each) => each(frame)),
    },
    legend: map.legend,
  };
}

const STRETCH = 4;

/**
 * Whether both axes shall have one scale: they have the same bounds, or the same unit and ranges that are not so different
 * that one side of the picture would be a strip.
 */
export function alike({ names }, { shown: [first, second], ranges }) {
  const [[lowX, highX], [lowY, highY]] = [ranges[first], ranges[second]];
  const ratio = (highX - lowX) / (highY - lowY);
  return (lowX === lowY && highX === highY) ||
    (sameUnit(names[first], names[second]) && ratio <= STRETCH && ratio >= 1 / STRETCH);
}

const bandLegend = (subject, state) => [
  h("li", {}, swatch("var(--accent)"), state.other ? shownName(subject, state) : "value"),
  state.other && state.mode === "overlay" && h("li", {}, swatch(css(OTHER)), state.other.title),
  h("li", {}, swatch("var(--band)"), "95 % interval of the noise and the approximation"),
  state.marks && h("li", {}, swatch("var(--ink)"), "different from 0"),
];

/** Which function a curve or a map shows, where there are two. */
const shownName = (subject, state) =>
  state.mode === "difference" ? `${subject.title} − ${state.other.title}` : subject.title;

function classLines(subject, { scores, errors, label }) {
  return subject.classes.map((name, index) => {
    const value = scores ? scores.map((row) => row[index]) : label.map((each) => (each === name ? 1 : 0));
    const edge = (sign) => (errors ? value.map((each, at) => each + sign * 1.96 * errors[at][index]) : null);
    return { value, lower: edge(-1), upper: edge(1), colour: css(classColour(index)) };
  });
}

function heat(subject, state, xs, ys, answers, overlaid) {
  const shown = state.layer === "error" ? answers.stderr : answers.value;
  const signed = state.other !== null && state.mode === "difference" && state.layer === "value";
  const range = extent([...shown, ...(state.span ?? [])]);
  const [low, high] = signed ? symmetric(range) : range;
  const at = (value) => (value - low) / (high - low);
  const colour = signed ? (fraction) => diverging(fraction, isDark()) : ramp;
  const canvas = painted(
    xs.length,
    ys.length,
    (index) => (shown[index] === null ? null : colour(at(shown[index]))),
  );
  // A count is never negative: where it is read as such, that is noise.
  const unsure = (index) =>
    answers.lower[index] !== null && answers.lower[index] <= 0 &&
    ((subject.counts && !signed) || answers.upper[index] >= 0);
  const layers = [filled(canvas, xs.length, ys.length)];
  const hatch = state.layer === "value" && state.of !== "predict" &&
    answers.value.some((_, index) => unsure(index));
  if (hatch) layers.push(hatched(xs, ys, unsure));
  if (overlaid) layers.push(...contours(xs, ys, overlaid.value));
  return {
    layers,
    pale: signed,
    legend: [
      h(
        "li",
        { class: "ramp" },
        h("span", { class: "number" }, short(low)),
        rampBar(colour),
        h(
          "span",
          { class: "number" },
          `${short(high)} ${state.layer === "error" ? "standard error" : valueName(subject, state)}`,
        ),
      ),
      state.other && h("li", {}, signed ? shownName(subject, state) : `Colours: ${subject.title}`),
      overlaid && h("li", {}, `Lines: ${state.other.title}, at ${CONTOURS.map((each) => `${100 * each} %`).join(", ")} of its highest value`),
      hatch &&
      h("li", {}, h("span", { class: "swatch swatch-hatch" }), "no different from 0, given the errors of all points together"),
    ],
  };
}

const symmetric = ([low, high]) => {
  const most = Math.max(Math.abs(low), Math.abs(high));
  return [-most, most];
};

/** Lines of another function over a map, at shares of its highest value. */
function contours(xs, ys, values) {
  const [, high] = extent(values);
  return CONTOURS.map((share) => zeroLine(xs, ys, values.map((value) => (value ?? 0) - share * high)));
}

function rampBar(colour) {
  const canvas = painted(128, 1, (index) => colour(index / 127));
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
}

function regions(subject, xs, ys, { label, scores, errors, lead }) {
  const dark = isDark();
  const index = label.map((each) => Math.max(0, subject.classes.indexOf(each)));
  const most = Math.max(...lead.map((each) => each ?? 0)) || 1;
  const firmness = (at) => (lead[at] === null ? 0.45 : 0.22 + 0.45 * Math.sqrt(Math.max(0, lead[at]) / most));
  const canvas = painted(xs.length, ys.length, (at) => faded(classColour(index[at]), dark, firmness(at)));
  // Two scores of one function are each other's opposites, so their difference has twice the error; others are independent.
  const spreadOfLead = subject.classes.length === 2 ? 2 : Math.SQRT2;
  // For all points together: a normal error exceeds r standard errors with a probability of at most exp(−r²/2).
  const reach = Math.sqrt(2 * Math.log(label.length / 0.05));
  const unsure = (at) =>
    errors !== null && lead[at] !== null && lead[at] < reach * spreadOfLead * errors[at][index[at]];
  const layers = [filled(canvas, xs.length, ys.length)];
  const hatch = label.some((_, at) => unsure(at));
  if (hatch) layers.push(hatched(xs, ys, unsure));
  subject.classes.slice(subject.classes.length === 2 ? 1 : 0).forEach((name, order) => {
    const mine = subject.classes.length === 2 ? 1 : order;
    layers.push(
      zeroLine(
        xs,
        ys,
        label.map((
          each,
          at,
        ) => (scores
          ? scores[at][mine] - Math.max(...scores[at].filter((_, other) => other !== mine))
          : each === name
          ? 1
          : -1)
        ),
      ),
    );
  });
  return {
    layers,
    legend: [
      ...classLegend(subject),
      hatch && h("li", {}, h("span", { class: "swatch swatch-hatch" }), "undecided, given the errors of all points together"),
    ],
  };
}

const classLegend = (subject) =>
  subject.classes.map((name, index) => h("li", {}, swatch(css(classColour(index))), name));

function swatch(colour) {
  const node = h("span", { class: "swatch", "aria-hidden": "true" });
  node.style.background = colour;
  return node;
}
