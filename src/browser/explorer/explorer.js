// The explorer: choose what is plotted, query points, compare with another function, save.
import {
  attempt, checkbox, copyButton, csv, empty, field, fileName, number, numberIn, problemBox, save, segments, select, table, text,
} from "./controls.js"; // prettier-ignore
import { announce, freshId, h, refill, remember, remembered, settled } from "./dom.js";
import {
  apartFromZero, classColour, css, curves, diverging, extent, faded, filled, hatched, painted, plot, ramp, roomy, zeroLine,
} from "./drawing.js"; // prettier-ignore
import { sameUnit, sentence, short, withError, writer } from "./format.js";
import { answersAt, caution, difference, exported, lattice, numberWords, summary, valueName } from "./subjects.js";
import { isDark, onTheme } from "./theme.js";

const QUICK_MILLISECONDS = 25;
const MOST_SLIDERS = 24;
const LEVELS = [["0.9", "90 %"], ["0.95", "95 %"], ["0.99", "99 %"]]; // prettier-ignore

const percent = ({ level }) => `${100 * level} %`;

/** Whether intervals hold for all points of a picture together: those of maps do, unless it is chosen otherwise. */
const isTogether = ({ together, shown }) => together ?? shown[1] !== null;

/** What is shown of a subject at first. */
export const startState = (subject, ranges) => ({
  ranges,
  at: ranges.map(([low, high]) => (low + high) / 2),
  shown: ranges.length === 1 ? [0, null] : [0, 1],
  of: subject.readings[0].of,
  layer: "value",
  other: null,
  mode: "overlay",
  level: 0.95,
  together: null,
  // A file that is read here answers as released, without a query.
  values: subject.source?.readable ? "released" : "raised",
});

/** Whether a map can show the non-negative version of a function: that of a whole release, which counts records. */
const canRaise = ({ counts, local = false, names }, { shown, other }) =>
  counts && !local && other === null && names.length === 2 && shown[1] !== null;

// --- from answers to a picture --------------------------------------------------------------------------------------

/** The colour of a function that is compared with another. */
const OTHER = classColour(4);
const CONTOURS = [0.25, 0.5, 0.75];
const STRETCH = 4;

/**
 * What a plot draws, and the legend beside it. `answers` are those of the function, of another one, and what is shown. A
 * `span` in the state are numbers that the scale must include, so that pictures can be compared; with `marks` the parts of a
 * curve that differ from zero are marked.
 */
export function pictureOf(subject, state, { xs, ys }, { shown: answers, others }) {
  const [first, second] = state.shown;
  const axis = (at) => ({ range: state.ranges[at], name: subject.labels[at] });
  const overlaid = others && state.mode === "overlay" ? others : null;
  if (second === null) {
    const lines = subject.classes ? classLines(subject, answers) : [answers];
    if (overlaid) lines.push({ ...overlaid, colour: css(OTHER), dashed: true });
    const all = lines.flatMap((each) => [...each.value, ...(each.lower ?? []), ...(each.upper ?? [])]);
    const range = subject.classes || state.of === "predict" ? roomy(all) : roomy([...all, 0, ...(state.span ?? [])]);
    const draw = (frame) => [curves(xs, lines)(frame), state.marks && apartFromZero(xs, answers)(frame)];
    const legend = subject.classes ? classLegend(subject) : bandLegend(subject, state, answers);
    return { spec: { x: axis(first), y: { range, name: valueName(subject, state) }, draw }, legend };
  }
  const map = subject.classes ? regions(subject, xs, ys, answers) : heat(subject, state, xs, ys, answers, overlaid);
  const pale = subject.classes !== null || map.pale;
  const draw = (frame) => map.layers.map((each) => each(frame));
  return { spec: { x: axis(first), y: axis(second), alike: alike(subject, state), filled: true, pale, draw }, legend: map.legend };
}

/**
 * How long a unit upwards is, in units across; null where both axes fill the room. Both axes have one scale if they have the
 * same bounds, or the same unit and ranges that are not so different that one side of the picture would be a strip.
 */
export function alike({ names, unitRatio = null }, { shown: [first, second], ranges }) {
  if (unitRatio !== null && ranges.length === 2) return first === 0 ? unitRatio : 1 / unitRatio;
  const [[lowX, highX], [lowY, highY]] = [ranges[first], ranges[second]];
  const ratio = (highX - lowX) / (highY - lowY);
  const close = sameUnit(names[first], names[second]) && ratio <= STRETCH && ratio >= 1 / STRETCH;
  return close || (lowX === lowY && highX === highY) ? 1 : null;
}

const item = (...content) => h("li", {}, ...content);

function swatch(colour) {
  const node = h("span", { class: "swatch", "aria-hidden": "true" });
  if (colour === null) node.classList.add("swatch-hatch");
  else node.style.background = colour;
  return node;
}

const bandLegend = (subject, state, { lower }) => [
  item(swatch("var(--accent)"), state.other ? shownName(subject, state) : "value"),
  state.other && state.mode === "overlay" && item(swatch(css(OTHER)), state.other.title),
  lower.some((each) => each !== null)
    ? item(swatch("var(--band)"), `${percent(state)} interval of the noise and the approximation${isTogether(state) ? ", for all points together" : ""}`)
    : item("its error is not known"),
  state.marks && item(swatch("var(--ink)"), "different from 0"),
];

const classLegend = (subject) => subject.classes.map((name, index) => item(swatch(css(classColour(index))), name));

/** Which function a curve or a map shows, where there are two. */
const shownName = (subject, { mode, other }) => (mode === "difference" ? `${subject.title} − ${other.title}` : subject.title);

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
  const most = Math.max(...range.map(Math.abs));
  const [low, high] = signed ? [-most, most] : range;
  const colour = signed ? (fraction) => diverging(fraction, isDark()) : ramp;
  const canvas = painted(xs.length, ys.length, (at) => (shown[at] === null ? null : colour((shown[at] - low) / (high - low))));
  // A count is never negative: where it is read as such, that is noise.
  const unsure = (at) =>
    answers.lower[at] !== null && answers.lower[at] <= 0 && ((subject.counts && !signed) || answers.upper[at] >= 0);
  const layers = [filled(canvas, xs.length, ys.length)];
  const hatch = state.layer === "value" && state.of !== "predict" && answers.value.some((_, at) => unsure(at));
  if (hatch) layers.push(hatched(xs, ys, unsure));
  // Lines of another function, at shares of its highest value.
  if (overlaid) {
    const [, top] = extent(overlaid.value);
    layers.push(...CONTOURS.map((share) => zeroLine(xs, ys, overlaid.value.map((value) => (value ?? 0) - share * top))));
  }
  const bar = painted(128, 1, (index) => colour(index / 127));
  bar.setAttribute("aria-hidden", "true");
  const name = state.layer === "error" ? "standard error" : valueName(subject, state);
  const levels = CONTOURS.map((each) => `${100 * each} %`).join(", ");
  return {
    layers,
    pale: signed,
    legend: [
      h("li", { class: "ramp" }, h("span", { class: "number" }, short(low)), bar, h("span", { class: "number" }, `${short(high)} ${name}`)),
      state.other && item(signed ? shownName(subject, state) : `Colours: ${subject.title}`),
      overlaid && item(`Lines: ${state.other.title}, at ${levels} of its highest value`),
      hatch && item(swatch(null), `no different from 0, given the errors ${isTogether(state) ? "of all points together" : "at each point"}`),
    ],
  };
}

function regions(subject, xs, ys, { label, scores, errors, lead }) {
  const two = subject.classes.length === 2;
  const index = label.map((each) => Math.max(0, subject.classes.indexOf(each)));
  const most = Math.max(...lead.map((each) => each ?? 0)) || 1;
  const firmness = (at) => (lead[at] === null ? 0.45 : 0.22 + 0.45 * Math.sqrt(Math.max(0, lead[at]) / most));
  const canvas = painted(xs.length, ys.length, (at) => faded(classColour(index[at]), isDark(), firmness(at)));
  // For all points together: a normal error exceeds r standard errors with a probability of at most exp(−r²/2). Two scores
  // of one function are each other's opposites, so their difference has twice the error; others are independent.
  const reach = Math.sqrt(2 * Math.log(label.length / 0.05)) * (two ? 2 : Math.SQRT2);
  const unsure = (at) => errors !== null && lead[at] !== null && lead[at] < reach * errors[at][index[at]];
  const hatch = label.some((_, at) => unsure(at));
  const boundary = (mine) => {
    const ahead = (row) => row[mine] - Math.max(...row.filter((_, other) => other !== mine));
    return zeroLine(xs, ys, label.map((each, at) => (scores ? ahead(scores[at]) : each === subject.classes[mine] ? 1 : -1)));
  };
  const lines = two ? [boundary(1)] : subject.classes.map((_, mine) => boundary(mine));
  return {
    layers: [filled(canvas, xs.length, ys.length), ...(hatch ? [hatched(xs, ys, unsure)] : []), ...lines],
    legend: [...classLegend(subject), hatch && item(swatch(null), "undecided, given the errors of all points together")],
  };
}

const ROWS = 12;
const CELLS = 6;

/** The picture as a table, for those who read it. */
export function asTable(subject, state, { xs, ys }, answers) {
  const [first, second] = state.shown.map((axis) => (axis === null ? null : subject.labels[axis]));
  const score = (at) => (answers.value[at] === null ? "" : ` (${short(answers.value[at])})`);
  const cell = (at) => (answers.label ? `${answers.label[at]}${score(at)}` : numberWords(answers, at));
  const pick = (length, count) => Array.from({ length: count }, (_, at) => Math.round((at * (length - 1)) / (count - 1)));
  const across = pick(xs.length, CELLS);
  const content = second === null
    ? table(
        `${first} and the answer`,
        [{ name: first, number: true, head: true }, { name: "Answer ± standard error", number: true }],
        pick(xs.length, ROWS).map((at) => [short(xs[at]), cell(at)]),
        { small: true },
      )
    : table(
        `${second} downwards, ${first} across; answer ± standard error`,
        [{ name: second, head: true, number: true }, ...across.map((at) => ({ name: short(xs[at]), number: true }))],
        pick(ys.length, CELLS).reverse().map((row) => [short(ys[row]), ...across.map((at) => cell(row * xs.length + at))]),
        { small: true },
      ); // prettier-ignore
  return h("details", {}, h("summary", {}, "The same as a table"), content);
}

/** A table in a place, as open as the one before. */
export function refillTable(place, ...given) {
  const open = place.querySelector("details")?.open ?? false;
  refill(place, asTable(...given));
  place.querySelector("details").open = open;
}

// --- ranges, sliders, choices ---------------------------------------------------------------------------------------

const key = (id) => `hushsum-ranges-${id}`;

/** The ranges that are known: declared, or typed earlier in this tab; null if there are none. */
export function knownRanges({ names, bounds, id }) {
  if (bounds) return bounds.length === names.length ? bounds : names.map(() => bounds[0]);
  const kept = remembered(key(id));
  return kept?.length === names.length ? kept : null;
}

/** A form with a low and a high for every column. */
export function rangeForm(subject, ranges, taken, { heading, hint } = {}) {
  const said = h("p", { class: "wrong", role: "alert" });
  const rows = subject.labels.map((label, at) =>
    ["lowest", "highest"].map((end, side) =>
      number({ required: true, "aria-label": `${end} ${label}`, value: ranges ? String(ranges[at][side]) : "" }),
    ),
  );
  function entered(event) {
    event.preventDefault();
    const found = rows.map((ends) => ends.map(numberIn));
    const wrong = found.findIndex(([low, high]) => low === null || high === null || !(low < high));
    said.textContent = wrong < 0 ? "" : `The highest ${subject.labels[wrong]} must be above the lowest.`;
    if (wrong >= 0) return rows[wrong][0].focus();
    remember(key(subject.id), found);
    return taken(found);
  }
  return h(
    "form",
    { class: "stack", onsubmit: entered },
    heading && h("h2", {}, heading),
    hint && h("p", { class: "soft" }, hint),
    h(
      "div",
      {},
      h("div", { class: "pair pair-head", "aria-hidden": "true" }, ["column", "from", "to"].map((each) => h("span", {}, each))),
      rows.map((ends, at) => h("div", { class: "pair" }, h("span", {}, subject.labels[at]), ends)),
    ),
    said,
    h("div", { class: "row" }, h("button", { class: ranges ? "quiet" : null }, "Show this range")),
  );
}

/** Call `shown(ranges)`, once they are known; returns how to leave what it shows. */
export function withRanges(place, subject, hint, shown) {
  const ranges = knownRanges(subject);
  if (ranges) return shown(ranges);
  let leave = () => {};
  const taken = (found) => {
    leave = shown(found);
    place.querySelector("svg")?.focus();
  };
  place.replaceChildren(h("div", { class: "card" }, rangeForm(subject, null, taken, { heading: "Which range should be shown?", hint })));
  return () => leave();
}

/** A coordinate with just enough digits to distinguish it from its neighbours. */
const tidy = (value) => String(Number(value.toPrecision(6)));

/** Where the axes that are not shown are cut: a slider and a number for each of them. */
export function sliders(subject, state, moved) {
  const axes = subject.names.map((_, at) => at).filter((at) => !state.shown.includes(at));
  return [
    axes.slice(0, MOST_SLIDERS).map((axis) =>
      slider(subject.labels[axis], state.ranges[axis], state.at[axis], (value) => {
        state.at[axis] = value;
        moved();
      }),
    ),
    axes.length > MOST_SLIDERS && h("p", { class: "hint" }, `and ${axes.length - MOST_SLIDERS} more, in the middle of their ranges`),
  ];
}

function slider(label, [low, high], value, moved) {
  const range = h("input", { type: "range", id: freshId("slider"), min: low, max: high, step: (high - low) / 400 });
  range.value = value;
  const typed = number({ "aria-label": `${label}, typed`, value: tidy(value) });
  range.addEventListener("input", () => {
    typed.value = tidy(Number(range.value));
    moved(Number(range.value));
  });
  typed.addEventListener("change", () => {
    if (numberIn(typed) === null) return;
    range.value = numberIn(typed);
    moved(numberIn(typed));
  });
  return h("div", { class: "slider" }, h("label", { for: range.id }, label), range, typed);
}

const labelled = (name, ...given) =>
  h("div", {}, h("span", { class: "label", "aria-hidden": "true" }, name), segments(name, ...given));

/**
 * The controls of what is shown: a map or a curve, along which columns, read as what. `arranged` is called when other axes are
 * shown, `read` for another reading, `coloured` for other colours.
 */
export function choicesOf(subject, state, others, { arranged, read, coloured }) {
  const dim = subject.names.length;
  const [first, second] = state.shown;
  const next = (axis) => (axis + 1) % dim;
  const arrange = (across, upwards) => {
    state.shown = [across, upwards === across ? next(across) : upwards];
    arranged();
  };
  const set = (name, then) => (value) => {
    state[name] = value;
    then();
  };
  const axes = subject.labels.map((label, at) => [String(at), label]);
  const column = (name, options, taken, onchosen) =>
    field(name, select(options, String(taken), { onchange: (event) => onchosen(Number(event.target.value)) }));
  const rest = axes.filter(([at]) => Number(at) !== first);
  const drawnAs = (as) => arrange(first, as === "curve" ? null : next(first));
  const readings = subject.readings.map(({ of, label }) => [of, label]);
  const parts = [
    dim > 1 && labelled("Drawn as", [["map", "Map"], ["curve", "Curve"]], second === null ? "curve" : "map", drawnAs),
    dim > 1 && h(
      "div",
      { class: "fields" },
      column("Across", axes, first, (axis) => arrange(axis, second)),
      second !== null && dim > 2 && column("Upwards", rest, second, (axis) => arrange(first, axis)),
    ),
    readings.length > 1 && labelled("Reading", readings, state.of, set("of", read)),
    canRaise(subject, state) && labelled("Values", [["raised", "Never negative"], ["released", "As released"]], state.values, set("values", read)),
    second !== null && !subject.classes && labelled("Colour", [["value", "Value"], ["error", "Its error"]], state.layer, set("layer", coloured)),
    others.length > 0 && comparison(subject, state, others, arranged),
    !subject.classes && subject.questions === null && intervals(state, set, read),
  ]; // prettier-ignore
  return [h("h2", {}, "What is shown"), h("div", { class: "stack" }, parts, h("p", { class: "hint" }, subject.about))];
}

const intervals = (state, set, read) =>
  h(
    "details",
    {},
    h("summary", {}, "Intervals"),
    h(
      "div",
      { class: "stack-small" },
      segments("Confidence", LEVELS, String(state.level), (value) => set("level", read)(Number(value))),
      checkbox("for all points together", { checked: isTogether(state), onchange: (event) => set("together", read)(event.target.checked) }),
    ),
  );

/** Which other function is shown with it, and how. */
function comparison(subject, state, others, arranged) {
  const taken = select([["", "nothing"], ...others.map(({ id, title }) => [id, title])], state.other?.id ?? "", {
    onchange: () => {
      state.other = others.find(({ id }) => id === taken.value) ?? null;
      arranged();
    },
  });
  const warning = state.other && caution(subject, state.other);
  const mode = (chosen) => {
    state.mode = chosen;
    arranged();
  };
  return h(
    "div",
    { class: "stack-small" },
    field("Compare with", taken),
    state.other && segments("Comparison", [["overlay", "Overlay"], ["difference", "Difference"]], state.mode, mode),
    warning && h("p", { class: "hint" }, warning),
  ); // prettier-ignore
}

// --- one point ------------------------------------------------------------------------------------------------------

/**
 * Fields for the shown axes, and a place for the answer. `moved(axis, value)` is called when a number is typed. Where
 * queries are limited, none is sent automatically: a button calls `ask`.
 */
function readout(subject, moved, ask = null) {
  const fields = h("div", { class: "fields" });
  const output = h("div", { class: "readout", role: "status", "aria-live": "polite", "aria-atomic": "true" });
  const others = h("div", { class: "others" });
  const button = subject.questions !== null && ask !== null &&
    h("button", { type: "button", class: "quiet ask-point", onclick: ask }, "Query this point"); // prettier-ignore
  const node = h("section", { "aria-label": "One point" }, h("h2", {}, "At a point"), fields, others, button, output);
  let inputs = new Map();
  return {
    node,
    others,
    /** Show fields for these axes. */
    offer(axes, at) {
      const typed = (axis) => (event) => numberIn(event.target) !== null && moved(axis, numberIn(event.target));
      inputs = new Map(axes.map((axis) => [axis, number({ value: tidy(at[axis]), onchange: typed(axis) })]));
      fields.replaceChildren(...axes.map((axis) => field(subject.labels[axis], inputs.get(axis))));
    },
    place(at) {
      for (const [axis, input] of inputs)
        if (document.activeElement !== input || numberIn(input) !== at[axis]) input.value = tidy(at[axis]);
    },
    /** The answer, or the difference of two and both of them. */
    report(state, { own, others: compared, shown }) {
      const name = valueName(subject, state);
      const each = (title, answers) => small(`${title}: ${numberWords(answers, 0)}`);
      const words = shown.label
        ? classWords(subject, name, shown)
        : compared
          ? [pointWords(name, shown, state), each(subject.title, own), each(state.other.title, compared)]
          : subject.counts && state.of === "sum"
            ? countWords(shown, state)
            : pointWords(name, shown, state);
      refill(output, words);
    },
    fail: (problem) => output.replaceChildren(h("p", { class: "wrong" }, sentence(problem.message))),
  };
}

const small = (words) => h("span", { class: "small soft" }, words);
const big = (words, ...more) => h("span", { class: "big-number" }, words, more.map((each) => each && h("small", {}, each)));

function pointWords(name, answers, state) {
  const { value, error } = withError(answers.value[0], answers.stderr[0]);
  const known = error !== "unknown";
  return [
    small(name),
    big(value, known && ` ± ${error}`),
    answers.lower[0] !== null && small(interval(answers, state)),
    !known && small("its error at a point is not known"),
  ];
}

/** A count of records: "about 400", or "fewer than 400" where the error is larger. */
function countWords(answers, state) {
  const [value, error, lower, upper] = ["value", "stderr", "lower", "upper"].map((part) => answers[part][0]);
  if (error === null || value === null) return pointWords("records near here", answers, state);
  const few = lower !== null && lower <= 0;
  return [
    few
      ? big(`fewer than ${whole(Math.max(1, upper))}`, " records near here")
      : big(`about ${whole(value, error)}`, ` records near here, ± ${whole(Math.max(1, error))}`),
    small(few ? `estimate ${numberWords(answers, 0)}: no different from 0` : interval(answers, state)),
  ];
}

/** A number of records, with as many digits as its error justifies: 26,000 where it is ± 400. */
export function whole(value, error = 1) {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, error))) - 1);
  return (Math.round(value / step) * step).toLocaleString("en").replace("-", "−");
}

function interval({ stderr, lower, upper }, state) {
  const write = writer(stderr[0]);
  return `${percent(state)}: ${write(lower[0])} to ${write(upper[0])}`;
}

function classWords(subject, name, { label, scores, stderr }) {
  const write = writer(stderr[0]);
  const each = scores && subject.classes.map((one, at) => `${one} ${write(scores[0][at])}`).join(" · ");
  const error = stderr[0] === null ? "" : `, each ± ${write(stderr[0])}`;
  return [small("predicted class"), big(label[0]), each && small(`${name}: ${each}${error}`)];
}

/** For functions of sets and codes there is no picture: queries are typed. */
function setExplorer(place, subject) {
  const state = { of: subject.readings[0].of, other: null, level: 0.95 };
  const members = text({ required: true, inputmode: "numeric", pattern: "[\\d,\\s.\\-]+", placeholder: "3, 17, 204" });
  const output = readout(subject, () => {});
  const ask = () =>
    attempt(async () => {
      const answers = await answersAt(subject, state.of, [members.value.split(/[\s,]+/).filter(Boolean).map(Number)]);
      output.report(state, { own: answers, others: null, shown: answers });
    }, output.fail);
  const submit = (event) => {
    event.preventDefault();
    ask();
  };
  const readings = subject.readings.map(({ of, label }) => [of, label]);
  const read = (next) => {
    state.of = next;
    if (members.value) ask();
  };
  const codes = subject.codes ?? null;
  const label = codes === null ? "Members of a set, integers" : `${codes} values, separated by commas`;
  const hint = `This function compares ${codes === null ? "sets" : "codes"}, so there is no plot: query it with one.`;
  place.replaceChildren(
    h(
      "div",
      { class: "card stack" },
      h(
        "form",
        { class: "stack", onsubmit: submit },
        field(label, members, { hint }),
        h("div", { class: "row" }, h("button", {}, "Query"), segments("Reading", readings, state.of, read)),
      ),
      output.node,
    ),
  );
}

// --- the explorer ---------------------------------------------------------------------------------------------------

const ANYWHERE = "This function declares no bounds and answers anywhere. Enter the range to plot.";
const KEYBOARD = "Arrow keys move the point, with Shift ten times as far. The answer is read out. A table follows.";
const BRIEF_MILLISECONDS = 10;
const FINE_MILLISECONDS = 350;
/** Points along each axis of a picture that is computed here: as many as there is time for. */
const LOCAL = { curve: [61, 481, 241], map: [17, 163, 73] };

/** The explorer of a subject of any kind in a place; returns how to leave it. */
export function openExplorer(place, subject, options = {}) {
  if (subject.kind === "sets") return setExplorer(place, subject);
  if (subject.kind !== "none") return explorer(place, subject, options);
  place.replaceChildren(empty("Nothing to plot", "This model has no answer at a single point; download it, or query it from a program."));
  return undefined;
}

/**
 * Fill a place with the explorer of a subject; returns how to leave it. `others` are subjects that it can be compared
 * with; `requests` makes texts for terminals and programs, by their names.
 */
const explorer = (place, subject, { others = [], requests = {}, compact = false } = {}) =>
  withRanges(place, subject, ANYWHERE, (ranges) => explore(place, subject, ranges, { others, requests, compact }));

function explore(place, subject, ranges, { others, requests, compact }) {
  const state = startState(subject, ranges);
  if (subject.local) state.together = true;
  const about = freshId("about");
  // Where queries are limited, only clicks and buttons send them.
  const frugal = subject.questions !== null;
  const picture = plot({
    describedBy: about,
    drags: subject.local,
    onpoint(x, y) {
      move([[state.shown[0], x], [state.shown[1], y]], { ask: true }); // prettier-ignore
    },
    onstep: step,
    onenter: () => askPoint(),
  });
  picture.node.hidden = frugal;
  const legend = h("ul", { class: "legend" });
  const words = h("p", { class: "small soft", id: `${about}-words` });
  const numbers = h("div", {});
  const origin = h("p", { class: "small soft" });
  const said = h("div", {});
  const here = readout(subject, (axis, value) => move([[axis, value]], { ask: !frugal }), () => askPoint()); // prettier-ignore
  const choices = h("div", {});
  const ranging = h("details", {}, h("summary", {}, "Ranges"));
  let current = null;
  let waiting = null;
  let asking = null;
  let frame = null;
  let took = Infinity;
  let speed = null;

  place.replaceChildren(
    h(
      "div",
      { class: compact ? "explorer explorer-compact" : "explorer" },
      h(
        "div",
        { class: "card" },
        said,
        picture.node,
        h("div", { class: "under" }, legend, words, h("p", { class: "unseen", id: about }, KEYBOARD), origin, exportRow(shownNow, requests), numbers),
      ),
      h("div", { class: "panel" }, h("div", { class: "card" }, here.node), h("div", { class: "card panel" }, choices, ranging)),
    ),
  );
  ranging.append(
    rangeForm(subject, ranges, (found) => {
      state.ranges = found;
      state.at = state.at.map((each, axis) => Math.min(found[axis][1], Math.max(found[axis][0], each)));
      arranged();
    }),
  );

  function arranged() {
    arrange();
    show();
  }

  function arrange() {
    picture.marker = null;
    refill(choices, choicesOf(subject, state, others, { arranged, read: show, coloured: draw }));
    refill(here.others, sliders(subject, state, showSoon));
    here.offer(state.shown.filter((each) => each !== null), state.at); // prettier-ignore
  }

  function move(pairs, { ask = false } = {}) {
    for (const [axis, value] of pairs) if (axis !== null) state.at[axis] = Number(value.toPrecision(6));
    here.place(state.at);
    if (ask) askPoint();
    else mark(null);
  }

  function step(...steps) {
    const moves = state.shown.map((axis, at) => {
      if (axis === null || steps[at] === 0) return null;
      const [low, high] = state.ranges[axis];
      return [axis, Math.min(high, Math.max(low, state.at[axis] + (steps[at] * (high - low)) / 100))];
    });
    move(moves.filter(Boolean), { ask: !frugal });
  }

  function show() {
    if (frugal) refill(said, offer(subject, lattice(subject, state).points.length, fetchPicture));
    else fetchPicture();
  }
  // Answers that are computed here come with the next frame; of requests only the last of a row of moves is sent.
  const showSettled = settled(90, show);
  function showSoon() {
    if (took > QUICK_MILLISECONDS && !subject.local) return showSettled();
    frame ??= requestAnimationFrame(() => {
      frame = null;
      fetchPicture({ brief: subject.local });
      if (subject.local) showSettled();
    });
    return undefined;
  }

  /** How many points along each axis can be computed in time; null where the service decides how long it takes. */
  function affordable(brief) {
    if (!subject.local) return null;
    const [least, most, mostBrief] = LOCAL[state.shown[1] === null ? "curve" : "map"];
    const points = (speed ?? 0) * (brief ? BRIEF_MILLISECONDS : FINE_MILLISECONDS);
    const along = state.shown[1] === null ? points : Math.sqrt(points);
    // The first picture is small, and slow, since its code was never run before; the next one is finer in any case.
    return Math.round(Math.min(brief ? mostBrief : most, Math.max(brief || speed === null ? least : 1.5 * least, along)));
  }

  /** The answers of both functions, the other's null where there is none, and what is shown: one or the difference. */
  async function bothAt(points, options) {
    const [own, compared] = await Promise.all([
      answersAt(subject, state.of, points, { level: state.level, ...options }),
      state.other && answersAt(state.other, state.of, points, { level: state.level, ...options }),
    ]);
    return { own, others: compared, shown: compared && state.mode === "difference" ? difference(own, compared) : own };
  }

  async function fetchPicture({ brief = false } = {}) {
    waiting?.abort();
    waiting = new AbortController();
    const { signal } = waiting;
    picture.node.setAttribute("aria-busy", "true");
    await attempt(async () => {
      const request = lattice(subject, state, affordable(brief));
      const started = performance.now();
      const answers = await bothAt(request.points, { signal, lattice: request.lattice, together: isTogether(state), nonnegative: canRaise(subject, state) && state.values === "raised" });
      took = performance.now() - started;
      speed = request.points.length / Math.max(took, 0.2);
      current = { request, answers };
      origin.textContent = subject.source.origin() ?? "";
      said.replaceChildren();
      picture.node.hidden = false;
      draw({ brief });
      if (!frugal) askPoint();
      // Each picture tells how fine one could be.
      if (subject.local && affordable(false) > 1.3 * request.xs.length) showSettled();
    }, (problem) => problem.status !== 401 && said.replaceChildren(problemBox(problem, { heading: "h3", again: () => fetchPicture() }))); // prettier-ignore
    if (!signal.aborted) picture.node.removeAttribute("aria-busy");
  }

  function draw({ brief = false } = {}) {
    if (current === null) return;
    const { request, answers } = current;
    const { spec, legend: items } = pictureOf(subject, state, request, answers);
    picture.node.dataset.points = request.xs.length;
    if (brief) return picture.draw({ ...spec, label: words.textContent, marker: picture.marker });
    words.textContent = summary(subject, state, request, answers.shown);
    picture.draw({ ...spec, label: words.textContent, marker: picture.marker });
    refill(legend, items);
    refillTable(numbers, subject, state, request, answers.shown);
    return undefined;
  }

  function shownNow() {
    if (current === null) return null;
    const title = state.other ? `${subject.title} and ${state.other.title}` : subject.title;
    const svg = picture.node.querySelector("svg");
    return { svg, title, point: state.at, of: state.of, ...exported(subject, state, current.request, current.answers) };
  }

  /** Show the point; on a curve its answer gives the height, if it is known. */
  function mark(answers) {
    const [first, second] = state.shown;
    picture.marker = second === null
      ? { x: state.at[first], y: answers?.value[0], lower: answers?.lower[0], upper: answers?.upper[0] }
      : { x: state.at[first], y: state.at[second], across: true }; // prettier-ignore
    picture.mark(picture.marker);
  }

  async function askPoint() {
    asking?.abort();
    asking = new AbortController();
    await attempt(async () => {
      const answers = await bothAt([state.at], { signal: asking.signal });
      here.report(state, answers);
      mark(answers.shown);
    }, here.fail); // prettier-ignore
  }

  arrange();
  show();
  const stop = onTheme(() => draw());
  return () => {
    stop();
    picture.end();
    if (frame !== null) cancelAnimationFrame(frame);
    showSettled.cancel();
    waiting?.abort();
    asking?.abort();
  };
}

/** Shown before plotting a model whose queries are limited. */
const offer = (subject, points, draw) =>
  h(
    "div",
    { class: "note stack", role: "note" },
    h("p", {}, `This model answers exactly, from a random path that is drawn query by query. It answers ${subject.questions.toLocaleString("en")} distinct points in all, whoever asks, and the same point again at any time.`),
    h("div", { class: "row" }, h("button", { type: "button", onclick: () => draw() }, `Draw a plot with ${points} queries`)),
  ); // prettier-ignore

// --- what is shown, to take away ------------------------------------------------------------------------------------

const DRAWN = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "font-family",
  "font-size", "font-weight", "text-anchor",
]; // prettier-ignore
const PNG_SCALE = 2;
const TOP = 30;

/** Buttons. `current()` is what is shown: {svg, title, columns, rows, point, of}, or null before anything is. */
function exportRow(current, requests) {
  const said = h("div", {});
  const button = (name, action) => {
    const onclick = () => {
      const shown = current();
      if (shown === null) announce("Nothing is drawn yet.");
      else action(shown, `${fileName(shown.title)}.${name.toLowerCase()}`);
    };
    return h("button", { type: "button", class: "plain", onclick }, name);
  };
  return h(
    "div",
    { class: "exports" },
    h(
      "div",
      { class: "row", role: "group", "aria-label": "Export" },
      h("span", { class: "label", "aria-hidden": "true" }, "Export"),
      button("PNG", async (shown, name) => save(await png(shown), name, "image/png")),
      button("SVG", (shown, name) => save(svgText(shown).text, name, "image/svg+xml")),
      button("CSV", (shown, name) => save(csv(shown.columns, shown.rows), name, "text/csv")),
      Object.entries(requests).map(([name, made]) => copyButton(`Copy as ${name}`, `The request as ${name}`, () => made(current()), said)),
    ),
    said,
  );
}

/** The picture as a document of its own: styles written out, a ground, and its title. */
function svgText({ svg, title }) {
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const copied = svg.cloneNode(true);
  const [from, to] = [svg, copied].map((each) => [...each.querySelectorAll("*")]);
  from.forEach((node, at) => {
    const style = getComputedStyle(node);
    for (const name of DRAWN) if (style.getPropertyValue(name)) to[at].style.setProperty(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "aria-hidden"]) to[at].removeAttribute(name);
  });
  const element = (name, attributes, content = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
    made.textContent = content;
    return made;
  };
  const colour = (name) => colourOf(getComputedStyle(document.documentElement).getPropertyValue(name));
  for (const name of ["role", "tabindex", "aria-describedby", "class"]) copied.removeAttribute(name);
  const size = { width, height: height + TOP };
  for (const [name, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", viewBox: `0 ${-TOP} ${width} ${height + TOP}`, ...size }))
    copied.setAttribute(name, value);
  const font = { "font-family": "sans-serif", "font-size": 14, "font-weight": 600 };
  copied.prepend(
    element("rect", { x: 0, y: -TOP, ...size, fill: colour("--card") }),
    element("text", { x: 12, y: -10, fill: colour("--ink"), ...font }, title),
  );
  return { text: new XMLSerializer().serializeToString(copied), ...size };
}

/** light-dark(…) names two colours; a document of its own has only one of them. */
function colourOf(value) {
  const pair = /light-dark\(\s*([^,]+),\s*([^)]+)\)/.exec(value);
  return pair ? pair[isDark() ? 2 : 1].trim() : value.trim();
}

async function png(shown) {
  const { text: drawn, width, height } = svgText(shown);
  const image = new Image();
  const bytes = new TextEncoder().encode(drawn);
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  image.src = `data:image/svg+xml;base64,${btoa(binary)}`;
  await image.decode();
  const canvas = h("canvas", { width: PNG_SCALE * width, height: PNG_SCALE * height });
  const context = canvas.getContext("2d");
  context.scale(PNG_SCALE, PNG_SCALE);
  context.drawImage(image, 0, 0, width, height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
