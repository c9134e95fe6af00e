// The explorer of a released function: its claim in plain words, a picture, sliders for further columns, a point query.
import { Picture, shown, viridis } from "./picture.js";
import { QueryRefused } from "./refusal.js";

const RESOLUTIONS = [16, 24, 36, 54, 80, 112, 160];
const CURVE_POINTS = [60, 120, 240, 480];
const FRAME = 8;
const FINE = 600;
const SOON = 60;
const IDLE = 140;

/** An element with attributes and children; text children are text, never markup. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

let numbers = 0;

function labelled(text, control, ...more) {
  numbers += 1;
  control.id = `field-${numbers}`;
  return element("div", { class: "field" }, element("label", { for: control.id }, text), control, ...more);
}

/** A percentage that is a bound, with one decimal: rounded up, never down. */
export function atMost(percentage) {
  const tenths = Math.ceil(10 * percentage - 1e-9);
  return String(Math.min(tenths, 1000) / 10);
}

/** A text as a cell of CSV. One that a spreadsheet would run as a formula gets an apostrophe, also inside quotes. */
export function csvCell(text) {
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

/** The claim for people: a sentence, what it means in numbers, and the terms. */
export function claimSection(claim) {
  const parts = [element("p", { class: "claim" }, claim.sentence)];
  if (claim.secure && claim.epsilon !== null) {
    const times = Math.exp(claim.epsilon);
    // Without δ the odds of any two worlds change by that factor at most; with δ that holds but for rare outcomes.
    const sure = `at most ${atMost(100 / (1 + Math.exp(-claim.epsilon)))} % sure`;
    const bet =
      claim.relation === "add/remove"
        ? `who would have bet 50 : 50 on the presence of one ${claim.unit} can be ${sure} of it`
        : `who would have bet 50 : 50 between two values of one ${claim.unit} can be ${sure} of one`;
    const meaning = claim.delta === 0 ? `: ${bet} after seeing everything here` : "";
    const factor = Number.isFinite(times) ? shown(times, 3) : "more than 10³⁰⁸";
    parts.push(element("p", {}, `e^${shown(claim.epsilon)} is ${factor}${meaning}.`));
  }
  return element("section", { "aria-label": "Privacy claim" }, element("h2", {}, "What is promised"), ...parts);
}

function factsTable(rows) {
  const listed = rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
  return element("details", {}, element("summary", {}, "Facts about this release"), element("dl", {}, ...listed));
}

function factsOf(found) {
  const rows = [];
  const add = (name, value) => value !== null && value !== undefined && rows.push([name, String(value)]);
  const { claim } = found;
  add("ε", claim.epsilon);
  if (claim.delta) add("δ", claim.delta);
  add("ρ", claim.rho);
  add("unit", claim.unit === "person" ? `person with up to ${claim.recordsPerUnit} records` : claim.unit);
  add("neighbouring data sets", claim.relation);
  add("mechanism", `${claim.mechanism}, ${claim.arithmetic} arithmetic`);
  add("kernel", found.kernel.words());
  if (found.columns) add("columns", found.columns.join(", "));
  if (found.box) add("bounds", found.box.low.map((low, i) => `${shown(low)} to ${shown(found.box.high[i])}`).join("; "));
  add("records", found.countVariance ? `about ${shown(found.count, 6)} ± ${shown(found.countStderr, 2)}` : shown(found.count, 9));
  add("table", found.basis && `${found.basis}, ${found.shape.join(" × ")}`);
  add("method", found.method);
  add("written by", found.producer);
  return rows;
}

/**
 * Fills an element with the explorer of what `readHush` returned.
 *
 * @param {HTMLElement} root
 * @param {object} found
 * @param {{ranges?: number[][], aspect?: number | null, labels?: string[], quantity?: string}} options
 */
export function explore(root, found, options = {}) {
  root.replaceChildren();
  if (found.kind === "model") return exploreModel(root, found, options);
  root.append(claimSection(found.claim));
  const explorer = new Explorer(found, options);
  root.append(explorer.section, factsTable(factsOf(found)));
  explorer.start();
  return explorer;
}

function exploreModel(root, model, options) {
  root.append(claimSection(model.claim));
  const place = element("div");
  const names = model.parts.map(({ name }) => name);
  if (names.length > 0) {
    const choice = element(
      "select",
      { onchange: () => show(choice.selectedIndex) },
      ...names.map((name) => element("option", {}, name)),
    );
    root.append(labelled("Part of the model", choice));
  } else root.append(element("p", {}, "This model has no part that is a function of its own; predict with Hushsum for Python."));
  const about = Object.entries(model.about).filter(([, value]) => typeof value !== "object");
  root.append(place, factsTable([...about.map(([name, value]) => [name, String(value)]), ["written by", model.producer]]));
  let explorer = null;
  function show(number) {
    place.replaceChildren();
    explorer = new Explorer(model.parts[number].function, options);
    place.append(explorer.section);
    explorer.start();
  }
  if (names.length > 0) show(0);
  return { get explorer() { return explorer; } }; // prettier-ignore
}

class Explorer {
  constructor(found, options) {
    this.found = found;
    this.options = options;
    this.dim = found.dim;
    this.names = Array.from({ length: this.dim ?? 0 }, (_, i) => options.labels?.[i] ?? this._name(i));
    const box = found.shownBox;
    this.ranges = Array.from({ length: this.dim ?? 0 }, (_, i) => options.ranges?.[i] ?? (box ? [box.low[i], box.high[i]] : [0, 1]));
    this.fixed = this.ranges.map(([low, high]) => (low + high) / 2);
    this.point = this.fixed.slice();
    this.axes = found.drawable ? (this.dim === 1 ? [0] : [0, 1]) : [];
    this.of = options.quantity ?? "sum";
    this.quick = 0;
    this.pending = null;
    this.section = this._build();
  }

  _name(i) {
    const { columns } = this.found;
    return columns && columns.length > i ? columns[i] : `column ${i}`;
  }

  // --- the page -------------------------------------------------------------------------------------------------------

  _build() {
    const section = element("section", { class: "explorer", "aria-label": "Released function" });
    if (this.axes.length > 0) section.append(element("h2", {}, "Picture"), this._controls(), this._figure());
    section.append(element("h2", {}, "One query"), this._pointForm());
    return section;
  }

  _controls() {
    const integral = this.found.kernel.integral ? this.found.kernel.integral() : Infinity;
    const quantities = [["sum", "records near a point (kernel sum)"], ["mean", "share of all records (mean kernel value)"]];
    const { area } = this.options;
    if (area) quantities.unshift(["area", area.name]);
    if (Number.isFinite(integral) && integral > 0 && !area) quantities.push(["density", "probability density"]);
    this.integral = integral;
    this.quantity = element(
      "select",
      { onchange: () => { this.of = this.quantity.value; this.refresh(); } },
      ...quantities.map(([value, text]) => element("option", { value, selected: value === this.of }, text)),
    ); // prettier-ignore
    this.level = element(
      "select",
      { onchange: () => this.refresh() },
      ...["0.9", "0.95", "0.99"].map((value) => element("option", { value, selected: value === "0.95" }, `${100 * value} %`)),
    );
    this.together = element("input", { type: "checkbox", checked: true, onchange: () => this.refresh() });
    const controls = element(
      "div",
      { class: "controls" },
      labelled("Show", this.quantity),
      labelled("Confidence", this.level),
      labelled("for all points together", this.together),
    );
    if (this.dim > 2) controls.append(...this._axisChoices());
    this.sliders = element("div", { class: "controls" });
    this._fillSliders();
    return element("div", {}, controls, this.sliders);
  }

  _axisChoices() {
    this.axisChoices = ["across", "up"].map((where, axis) =>
      element(
        "select",
        { onchange: () => this._chooseAxis(axis) },
        ...this.names.map((name, i) => element("option", { value: i, selected: this.axes[axis] === i }, name)),
      ),
    );
    return this.axisChoices.map((choice, axis) => labelled(`Column ${axis === 0 ? "across" : "up"}`, choice));
  }

  _chooseAxis(axis) {
    const chosen = Number(this.axisChoices[axis].value);
    // The other axis gives way.
    if (this.axes[1 - axis] === chosen) this.axes[1 - axis] = this.axes[axis];
    this.axes[axis] = chosen;
    this.axisChoices.forEach((choice, i) => (choice.value = String(this.axes[i])));
    this._fillSliders();
    this.refresh();
  }

  _fillSliders() {
    this.sliders.replaceChildren();
    for (let column = 0; column < this.dim; column += 1) {
      if (this.axes.includes(column)) continue;
      const [low, high] = this.ranges[column];
      const output = element("output", {}, shown(this.fixed[column]));
      const slider = element("input", { type: "range", min: low, max: high, step: (high - low) / 400, value: this.fixed[column] });
      slider.addEventListener("input", () => {
        this.fixed[column] = Number(slider.value);
        this.point[column] = this.fixed[column];
        this.inputs[column].value = Number(this.fixed[column].toPrecision(6));
        output.textContent = shown(this.fixed[column]);
        this.dragged();
      });
      this.sliders.append(labelled(this.names[column], slider, output));
    }
  }

  _figure() {
    this.canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": "Picture of the released function" });
    this.picture = new Picture(this.canvas);
    this.caption = element("figcaption", {});
    this.legend = element("div", { class: "legend", "aria-hidden": "true" });
    this.canvas.addEventListener("pointerdown", (event) => this._pick(event));
    this.canvas.addEventListener("pointermove", (event) => event.buttons && this._pick(event));
    this.canvas.addEventListener("keydown", (event) => this._step(event));
    const save = element("button", { type: "button", onclick: () => this._savePicture() }, "Save picture (PNG)");
    const numbersButton = element("button", { type: "button", onclick: () => this._saveNumbers() }, "Save numbers (CSV)");
    return element("figure", {}, this.canvas, this.legend, this.caption, element("div", { class: "buttons" }, save, numbersButton));
  }

  _pointForm() {
    this.result = element("output", { class: "answer", "aria-live": "polite" });
    if (this.axes.length === 0 && (this.dim === null || !this.found.kernel.ofColumns)) return this._textForm();
    this.inputs = this.names.map((_, column) =>
      element("input", {
        type: "number", step: "any", value: Number(this.point[column].toPrecision(6)),
        oninput: () => this._typed(column),
      }),
    ); // prettier-ignore
    const fields = this.inputs.map((input, column) => labelled(this.names[column], input));
    return element("form", { onsubmit: (event) => event.preventDefault() }, element("div", { class: "controls" }, ...fields), this.result);
  }

  /** Queries of codes and sets are typed as text. */
  _textForm() {
    this.inputs = [];
    const sets = this.dim === null;
    const input = element("input", { type: "text", value: sets ? "" : new Array(this.dim).fill(0).join(", ") });
    const ask = () => {
      const values = input.value.split(/[\s,;]+/).filter((each) => each !== "").map(Number);
      this._answer(values);
    };
    input.addEventListener("input", ask);
    this.askText = ask;
    const label = sets ? "Members of a set, whole numbers" : `${this.dim} values, separated by commas`;
    return element("form", { onsubmit: (event) => event.preventDefault() }, labelled(label, input), this.result);
  }

  // --- what happens ---------------------------------------------------------------------------------------------------

  start() {
    if (this.axes.length === 0) {
      if (this.askText) this.askText();
      else this._query();
      return;
    }
    // The smallest picture tells how long the others take.
    let took = this._render(0);
    const grows = this.axes.length === 1 ? 2.0 : 2.25;
    for (this.quick = 0; this.quick < this._sizes().length - 2 && took * grows < SOON; took *= grows) this.quick += 1;
    this.refresh();
    let width = 0;
    new ResizeObserver(() => {
      if (this.canvas.clientWidth === width) return;
      width = this.canvas.clientWidth;
      this.picture.reset();
      this._redraw();
    }).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.picture.reset();
      this._redraw();
    });
  }

  get settings() {
    const level = this.level ? Number(this.level.value) : 0.95;
    return { of: this.of === "sum" || this.of === "area" ? "sum" : "mean", level };
  }

  /** What answers are multiplied with. */
  get factor() {
    if (this.of === "area") return this.options.area.factor;
    return this.of === "density" ? 1.0 / this.integral : 1.0;
  }

  /** Draws quickly now, in detail when nothing else has happened for a moment. */
  refresh() {
    this._render(this.quick);
    this._query();
    clearTimeout(this.pending);
    this.pending = setTimeout(() => this._detail(this.quick + 1), IDLE);
  }

  /** While a slider is dragged: at most once per frame. */
  dragged() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      const took = this._render(this.quick, { brief: true });
      if (took > FRAME && this.quick > 0) this.quick -= 1;
      else if (took < FRAME / 3 && this.quick < this._sizes().length - 2) this.quick += 1;
      this._query();
      clearTimeout(this.pending);
      this.pending = setTimeout(() => this._detail(this.quick + 1), IDLE);
    });
  }

  _sizes() {
    return this.axes.length === 1 ? CURVE_POINTS : RESOLUTIONS;
  }

  /** One finer picture after another, while they take no longer than a person waits. */
  _detail(number) {
    if (number >= this._sizes().length) return;
    const took = this._render(number);
    const grows = this.axes.length === 1 ? 2 : 2.25;
    if (took * grows < FINE) this.pending = setTimeout(() => this._detail(number + 1), 0);
  }

  /** Computes and draws; returns the milliseconds that computing took, since drawing takes the same for every size. */
  _render(number, { brief = false } = {}) {
    const started = performance.now();
    const size = this._sizes()[number];
    const steps = this.axes.map((axis) => {
      const [low, high] = this.ranges[axis];
      return Array.from({ length: size }, (_, i) => low + ((high - low) * i) / (size - 1));
    });
    const simultaneous = this.together.checked;
    const answers = this.found.picture(this.axes, steps, this.fixed, { ...this.settings, simultaneous });
    for (const name of ["value", "lower", "upper"]) for (let i = 0; i < answers.length; i += 1) answers[name][i] *= this.factor;
    this.drawn = { steps, answers, size };
    const took = performance.now() - started;
    this._redraw({ brief });
    return took;
  }

  /** Draws what was computed; a brief drawing leaves the words as they are, which the next one brings up to date. */
  _redraw({ brief = false } = {}) {
    if (!this.drawn) return;
    const { steps, answers, size } = this.drawn;
    const names = this.axes.map((axis) => this.names[axis]);
    const ranges = this.axes.map((axis) => this.ranges[axis]);
    if (this.axes.length === 1) {
      this.picture.drawCurve({ ranges, labels: [names[0], this._quantityName()], steps }, answers);
      this.picture.mark(this.point[this.axes[0]], null);
    } else {
      const highest = answers.value.reduce((most, value) => Math.max(most, value), Number.MIN_VALUE);
      const hatched = answers.lower.some(Number.isFinite);
      const aspect = this.options.aspect ?? null;
      this.picture.drawMap({ ranges, labels: names, nx: size, ny: size, aspect }, answers, { hatched, highest, signed: this.found.kernel.signed });
      this.picture.mark(this.point[this.axes[0]], this.point[this.axes[1]]);
      this._drawLegend(highest);
    }
    if (!brief) this._describe(answers);
  }

  _quantityName() {
    return { sum: "records near", mean: "share of records", density: "density", area: this.options.area?.name }[this.of];
  }

  _drawLegend(highest) {
    if (!this.highest) {
      const colours = Array.from({ length: 12 }, (_, i) => `rgb(${viridis(i / 11).join(",")})`);
      const bar = element("span", { class: "bar" });
      bar.style.background = `linear-gradient(to right, ${colours.join(",")})`;
      this.highest = element("span", {});
      this.legend.replaceChildren(element("span", {}, "0"), bar, this.highest);
    }
    const text = `${shown(highest, 3)} ${this._quantityName()}`;
    if (this.highest.textContent !== text) this.highest.textContent = text;
  }

  _describe(answers) {
    const percent = `${100 * this.settings.level} %`;
    const where = this.together.checked ? "for all points together" : "at each point";
    if (!answers.lower.some(Number.isFinite)) {
      this.caption.textContent = "The error of this method is not known: there are no intervals.";
    } else if (this.axes.length === 1) this.caption.textContent = `Band: ${percent} interval, ${where}.`;
    else {
      let hidden = 0;
      for (let i = 0; i < answers.length; i += 1) if (!(answers.lower[i] > 0) && !(answers.upper[i] < 0)) hidden += 1;
      const share = Math.round((100 * hidden) / answers.length);
      this.caption.textContent = `Hatched (${share} % of the picture): cannot be distinguished from zero, by ${percent} intervals ${where}.`;
    }
    let best = 0;
    for (let i = 1; i < answers.length; i += 1) if (answers.value[i] > answers.value[best]) best = i;
    const nx = this.drawn.steps[0].length;
    const at = this.axes.map((axis, i) => `${this.names[axis]} ${shown(this.drawn.steps[i][i === 0 ? best % nx : Math.floor(best / nx)])}`);
    this.canvas.setAttribute(
      "aria-label",
      `${this.axes.length === 1 ? "Curve" : "Map"} of ${this._quantityName()}; highest, ${shown(answers.value[best])}, at ${at.join(", ")}. ` +
        `${this.caption.textContent} Arrow keys move the queried point.`,
    );
  }

  _pick(event) {
    const frame = this.canvas.getBoundingClientRect();
    const found = this.picture.pointAt(event.clientX - frame.left, event.clientY - frame.top);
    if (found !== null) this._moveTo(found);
  }

  _step(event) {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    const by = event.shiftKey ? 0.1 : 0.01;
    this._moveTo(
      this.axes.map((axis, i) => {
        const [low, high] = this.ranges[axis];
        return Math.min(high, Math.max(low, this.point[axis] + move[i] * by * (high - low)));
      }),
    );
  }

  _moveTo(values) {
    this.axes.forEach((axis, i) => {
      this.point[axis] = values[i];
      this.inputs[axis].value = Number(values[i].toPrecision(6));
    });
    this._redraw();
    this._query();
  }

  _typed(column) {
    const value = Number(this.inputs[column].value);
    if (this.inputs[column].value.trim() === "" || !Number.isFinite(value)) {
      this.result.textContent = `${this.names[column]}: a number is needed.`;
      return;
    }
    this.point[column] = value;
    if (!this.axes.includes(column)) this.fixed[column] = value;
    if (this.axes.length > 0) this.refresh();
    else this._query();
  }

  _query() {
    this._answer(this.point);
  }

  _answer(point) {
    try {
      const { of, level } = this.settings;
      const answers = this.found.query([point], { of, level });
      const [value, lower, upper] = ["value", "lower", "upper"].map((name) => answers[name][0] * this.factor);
      const share = `${100 * level} %`;
      const words = { mean: "share of all records", sum: "records near this point" };
      const number = words[this.of] ?? this._quantityName();
      this.result.replaceChildren(
        element("strong", {}, `${shown(value)} `),
        Number.isFinite(lower) ? `${number}; ${share} interval ${shown(lower)} to ${shown(upper)}` : `${number}; its error is not known`,
        Number.isFinite(lower) && lower <= 0 && upper >= 0 ? element("em", {}, " (cannot be distinguished from zero)") : "",
      );
    } catch (error) {
      if (!(error instanceof QueryRefused)) throw error;
      this.result.textContent = error.message;
    }
  }

  _savePicture() {
    const link = element("a", { download: "function.png", href: this.canvas.toDataURL("image/png") });
    link.click();
  }

  _saveNumbers() {
    const { steps, answers } = this.drawn;
    const names = this.axes.map((axis) => csvCell(this.names[axis]));
    const rows = [[...names, "value", "lower", "upper"].join(",")];
    const nx = steps[0].length;
    for (let i = 0; i < answers.length; i += 1) {
      const at = this.axes.length === 1 ? [steps[0][i]] : [steps[0][i % nx], steps[1][Math.floor(i / nx)]];
      rows.push([...at, answers.value[i], answers.lower[i], answers.upper[i]].join(","));
    }
    const blob = new Blob([rows.join("\n"), "\n"], { type: "text/csv" });
    const link = element("a", { download: "function.csv", href: URL.createObjectURL(blob) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}
