// What a .hush file holds: a released function that answers queries, or a model's parts.
import { Answers, quantile, setMean, setSum } from "./answers.js";
import { BinsReading, binsBasis, cellErrors } from "./bins.js";
import {
  CosineReading,
  SeriesReading,
  TrigonometricReading,
  cosinesBasis,
  seriesBasis,
  trigonometricBasis,
} from "./box_series.js";
import { checkNoise, claimFrom, noiseFrom, withPublicSample } from "./claim.js";
import { decodeNumbers, numberSize, readContainer } from "./container.js";
import { FeatureReading, featuresBasis } from "./fourier_features.js";
import { GridReading, gridBasis } from "./grid_function.js";
import { DividedReading, HashRowsReader, hashBasis } from "./hash_rows.js";
import { affordable, bigWhole, box, columnNames, fields, isObject, list, real, require, text, whole } from "./header.js";
import { tableCells, tableSize } from "./integer_table.js";
import { kernelFrom, plainKernels } from "./kernels.js";
import { MonomialReading, monomialsBasis } from "./monomials.js";
import { FileRefused, QueryRefused, nonsense, unsupported } from "./refusal.js";
import { digestOf } from "./sha256.js";
import { changeBetween, checkStream, stepFrom } from "./stream_steps.js";

const FEWEST_BLOCKS = 8;
const SMALL_PART = 0.02;
const LARGEST_COUNT = 1n << 63n;
const LARGEST_REAL = 1e60;
const MOST_REALS = 2 ** 24;
const MOST_ENTRIES = 4096;
const MOST_AXES = 8;
const MOST_QUERIES = 2 ** 20;
const FEWEST_PUBLIC = 10;
const MOST_PUBLIC = 10_000;
const COMPARED = 200;
const MOST_PLACES = 2 ** 18;
const MOST_WAVES = 2 ** 28;

/** What every released function has: facts, and answers at points or at the points of a picture. */
class ReleasedFunction {
  constructor(facts) {
    Object.assign(this, facts);
    this.kind = "function";
  }

  get dim() {
    return this.kernel.dim;
  }

  /** The box that pictures show; null where none is declared. */
  get shownBox() {
    return this.box;
  }

  /** Whether a picture can be drawn: columns of numbers. */
  get drawable() {
    return this.dim !== null && plainKernels(this.kernel).every((each) => each.dim !== null && each.name !== "hamming");
  }

  get countStderr() {
    return Math.sqrt(this.countVariance);
  }

  /** Whether values and errors are those that Python computes. */
  get complete() {
    return true;
  }

  /** Whether `picture` takes much less time than a query at each of its points. */
  get quickPictures() {
    return false;
  }

  /**
   * Values with standard errors and intervals.
   *
   * @param points one row of numbers (or of codes, or a set) for each query
   * @param {{of?: "mean" | "sum", level?: number, simultaneous?: boolean}} options `simultaneous` intervals hold for all
   *   points together (Bonferroni's inequality), others for each
   */
  query(points, { of = "mean", level = 0.95, simultaneous = false } = {}) {
    if (of !== "mean" && of !== "sum") throw new QueryRefused('`of` must be "mean" or "sum".');
    if (!(level > 0 && level < 1)) throw new QueryRefused("The level must be between 0 and 1.");
    if (points.length > MOST_QUERIES) throw new QueryRefused(`At most ${MOST_QUERIES} queries at once.`);
    const queries = Array.from(points, (point) => this.kernel.prepare(point, this.box));
    return this._query(queries, of, simultaneous ? together(level, queries.length) : level);
  }

  /**
   * Answers at the points of a lattice, the first axis fastest.
   *
   * @param {number[]} axes one or two columns
   * @param {number[][]} steps their values
   * @param {number[]} fixed a value for every column
   */
  picture(axes, steps, fixed, { level = 0.95, simultaneous = false, ...options } = {}) {
    const points = [];
    for (const y of axes.length > 1 ? steps[1] : [null])
      for (const x of steps[0]) {
        const point = Array.from(fixed);
        point[axes[0]] = x;
        if (axes.length > 1) point[axes[1]] = y;
        points.push(point);
      }
    const places = independentPlaces(this.kernel, axes, steps, points.length);
    return this.query(points, { ...options, level: simultaneous ? together(level, places) : level });
  }
}

/** The level of each of some intervals that hold together. */
function together(level, number) {
  return 1.0 - (1.0 - level) / Math.max(number, 1);
}

/**
 * How many points of a picture may err independently: of a smooth kernel one in each cell of half a bandwidth, since
 * noise varies within about a bandwidth; else all of them.
 */
function independentPlaces(kernel, axes, steps, points) {
  if (!kernel.smooth) return points;
  const cells = axes.map((axis, i) => {
    const range = Math.abs(steps[i][steps[i].length - 1] - steps[i][0]);
    return Math.max(1, Math.ceil((2.0 * range) / kernel.columnWidths[axis]));
  });
  return Math.min(points, cells.reduce((a, b) => a * b, 1));
}

/** A noisy table of integers, and how it is read. */
class TableFunction extends ReleasedFunction {
  constructor(header, basis, kernel, cells, step) {
    const noise = noiseFrom(header.noise);
    fields(header.count, ["value", "noise"]);
    const countNoise = noiseFrom(header.count.noise);
    const noisyCount = Number(bigWhole(header.count.value, -LARGEST_COUNT, LARGEST_COUNT));
    require(!countNoise.public || noisyCount >= 0);
    super({
      claim: claimFrom(header.claim), producer: text(header.producer), kernel, box: basis.box, columns: basis.columns,
      basis: basis.name, shape: basis.shape, noise, step, table: cells,
    }); // prettier-ignore
    this.streamStep = "stream" in header ? stepFrom(header.stream) : null;
    // Of a step of a stream the noise of all steps keeps the claim.
    if (this.streamStep) checkStream(this.streamStep, this.claim, [noise, countNoise], basis.moved, cells.length);
    else if (basis.moved) {
      const moved = basis.moved(this.claim.relation === "replace" ? 2n : 1n, this.claim.unit === "person");
      checkNoise(this.claim, noise, countNoise, moved, cells.length);
    }
    // Functions of several sites were rounded before they were added.
    const { trust } = this.claim;
    const rounded = trust?.model === "site noise" ? trust.parties : 1;
    this.cellVariance = noise.variance + (rounded * (step ** 2 - 1)) / 12.0;
    this.countNoise = countNoise;
    this.noisyCount = noisyCount;
  }

  /** The same function with another table of the same shape: the change since another step; see `changeBetween`. */
  changed({ table, cellVariance, noisyCount, countNoiseVariance }) {
    const made = Object.assign(Object.create(Object.getPrototypeOf(this)), this, { table, cellVariance, noisyCount });
    made.countNoise = { variance: countNoiseVariance };
    made.streamStep = null;
    return made;
  }

  _setCount(own) {
    const paid = this.countNoise.variance;
    if (paid === 0.0) [this.count, this.countVariance] = [this.noisyCount, 0.0];
    else if (own === null) [this.count, this.countVariance] = [Math.max(this.noisyCount, 1.0), paid];
    else {
      const weight = own[1] / (own[1] + paid);
      this.count = Math.max(weight * this.noisyCount + (1.0 - weight) * own[0], 1.0);
      this.countVariance = weight * paid;
    }
    require(Number.isFinite(this.count) && Number.isFinite(this.countVariance));
  }
}

class HashRowsFunction extends TableFunction {
  constructor(header, basis, kernel, cells, step) {
    super(header, basis, kernel, cells, step);
    this.rows = new HashRowsReader(basis, cells, this.cellVariance);
    this._setCount(this.rows.ownCount());
  }

  changed(given) {
    const made = super.changed(given);
    made.rows = this.rows.withTable(made.table, made.cellVariance, given.records);
    // A change in the number of records may be negative, and its two estimates are weighted as those of a release.
    const [own, variance] = made.rows.ownCount();
    const paid = made.countNoise.variance;
    const weight = paid === 0.0 ? 1.0 : variance / (variance + paid);
    made.count = weight * made.noisyCount + (1.0 - weight) * own;
    made.countVariance = weight * paid;
    return made;
  }

  _query(queries, of, level) {
    return this.rows.query(queries, { of, level, count: this.count, countVariance: this.countVariance });
  }
}

/** A table whose answers are linear in all of it, as `CoefficientFunction` in Python. */
class LinearFunction extends TableFunction {
  constructor(header, basis, kernel, cells, step, Reading) {
    super(header, basis, kernel, cells, step);
    this.reading = new Reading(basis, kernel, header.constants);
    this.shown = basis.shown;
    const total = this.reading.total(cells);
    this.own = total === null ? null : [total[0], total[1] * this.cellVariance];
    this._setCount(this.own);
  }

  get shownBox() {
    return this.shown ?? this.box;
  }

  _query(queries, of, level) {
    const answers = new Answers(queries.length, level);
    queries.forEach((row, i) => this._answer(answers, i, this.reading.lattice(row), of, true));
    return answers;
  }

  _sums(lattice) {
    return this.reading.evaluate(this.table, lattice);
  }

  /** Sets the answers from i on at the points of a lattice; bounds cost more, and pictures do without. */
  _answer(answers, first, lattice, of, withBound) {
    const { reading, table, cellVariance, count, countVariance } = this;
    const sums = this._sums(lattice);
    const gains = reading.noiseGain(lattice);
    const method = reading.methodVariance(table, lattice, count, cellVariance);
    const bias = withBound ? reading.biasBound(table, lattice, count, cellVariance) : null;
    const spread = reading.spread && reading.blocks >= FEWEST_BLOCKS ? reading.spread(table, lattice)[1] : null;
    const reach = quantile(answers.level, spread === null ? null : reading.blocks);
    const part = this._covariancePart();
    const covariance = of === "mean" && part > 0.0 ? reading.totalCovariance(lattice) : null;
    const number = Math.max(count, 1.0);
    for (let i = 0; i < sums.length; i += 1) {
      const noise = cellVariance * gains[i];
      const known = noise + method[i];
      const variance = spread === null ? known : Math.max(spread, noise);
      const largest = Math.max(known + (bias === null ? 0.0 : bias[i] ** 2), variance);
      if (of === "sum") setSum(answers, first + i, sums[i], variance, largest, reach);
      else {
        const shared = covariance === null ? 0.0 : part * cellVariance * covariance[i];
        setMean(answers, first + i, sums[i], variance, largest, reach, number, countVariance, shared);
      }
    }
  }

  _covariancePart() {
    const paid = this.countNoise.variance;
    return this.own === null || paid < SMALL_PART * this.own[1] ? 0.0 : paid / (this.own[1] + paid);
  }
}

/** The places of a picture along every column, relative to the centre of the box. */
function latticeOf({ centre }, axes, steps, fixed) {
  const lattice = fixed.map((value, column) => {
    const axis = axes.indexOf(column);
    const places = axis < 0 ? [value] : steps[axis];
    return Float64Array.from(places, (place) => Math.fround(place - centre[column]));
  });
  if (!lattice.every((places) => places.every(Number.isFinite))) throw new QueryRefused("A picture needs finite numbers.");
  return lattice;
}

/** A grid answers a whole picture at once. */
class GridFunction extends LinearFunction {
  get quickPictures() {
    return true;
  }

  picture(axes, steps, fixed, { of = "mean", level = 0.95, simultaneous = false } = {}) {
    const lattice = latticeOf(this.box, axes, steps, fixed);
    const number = lattice.reduce((product, places) => product * places.length, 1);
    const places = independentPlaces(this.kernel, axes, steps, number);
    const answers = new Answers(number, simultaneous ? together(level, places) : level);
    this._answer(answers, 0, lattice, of, false);
    // The last column is fastest here; a picture has its first axis fastest.
    if (axes.length === 2 && axes[0] < axes[1]) transpose(answers, steps[0].length, steps[1].length);
    return answers;
  }
}

function transpose(answers, slow, fast) {
  for (const name of Object.keys(answers).filter((each) => ArrayBuffer.isView(answers[each]))) {
    const from = answers[name];
    const to = new Float64Array(from.length);
    for (let i = 0; i < slow; i += 1) for (let j = 0; j < fast; j += 1) to[j * slow + i] = from[i * fast + j];
    answers[name] = to;
  }
}

/** Weighted public points. */
class PointsFunction extends ReleasedFunction {
  constructor(facts, points, weights, { weightVariance, cellWidth, featureErrors }) {
    super(facts);
    const { centre } = this.box;
    this.points = points.map((point) => point.map((value, i) => value - centre[i]));
    Object.assign(this, { weights, weightVariance, cellWidth, featureErrors });
  }

  /** The errors of points that were fitted to noisy features need an eigenvalue decomposition. */
  get complete() {
    return !this.featureErrors;
  }

  _query(queries, of, level) {
    const answers = new Answers(queries.length, level);
    const reach = quantile(level);
    const number = Math.max(this.count, 1.0);
    queries.forEach((query, i) => {
      let [sum, gain] = [0.0, 0.0];
      this.points.forEach((point, at) => {
        const similar = this.kernel.similarity(point, query);
        sum += this.weights[at] * similar;
        gain += similar * similar;
      });
      let variance = this.weightVariance === null ? NaN : this.weightVariance * gain;
      if (this.weightVariance !== null && this.cellWidth !== null)
        variance += cellErrors(this.kernel, this.points, this.cellWidth, this.weights, query);
      if (of === "sum") setSum(answers, i, sum, variance, variance, reach);
      else setMean(answers, i, sum, variance, variance, reach, number, this.countVariance);
    });
    return answers;
  }
}

/** Values at even steps of one column, straight lines between them; their errors are not known. */
class CurveFunction extends ReleasedFunction {
  constructor(facts, values) {
    super(facts);
    require(this.box.dim === 1 && values.length >= 2);
    this.values = values;
  }

  _query(queries, of, level) {
    const answers = new Answers(queries.length, level);
    for (const name of ["stderr", "lower", "upper", "bound"]) answers[name].fill(NaN);
    const [low, high] = [this.box.low[0] - this.box.centre[0], this.box.high[0] - this.box.centre[0]];
    const last = this.values.length - 1;
    const step = (high - low) / last;
    const place = (i) => (i === last ? high : low + i * step);
    queries.forEach(([query], i) => {
      let value;
      if (query <= low) value = this.values[0];
      else if (query >= high) value = this.values[last];
      else {
        let left = Math.min(last - 1, Math.max(0, Math.floor((query - low) / step)));
        while (left > 0 && query < place(left)) left -= 1;
        while (left < last - 1 && query >= place(left + 1)) left += 1;
        const slope = (this.values[left + 1] - this.values[left]) / (place(left + 1) - place(left));
        value = slope * (query - place(left)) + this.values[left];
      }
      answers.value[i] = of === "mean" ? value : this.count * value;
    });
    return answers;
  }
}

/** A released table and a public sample of the same kind, weighted by their inverse variances. */
class CombinedFunction extends ReleasedFunction {
  constructor(own, points) {
    const { producer, kernel, box: bounds, columns, count, countVariance, basis, shape } = own;
    const claim = withPublicSample(own.claim);
    super({ claim, producer, kernel, box: bounds, columns, count, countVariance, basis, shape });
    require(kernel.ofColumns && points.every((point) => point.length === kernel.dim));
    require(points.length >= FEWEST_PUBLIC && points.length <= MOST_PUBLIC);
    this.own = own;
    this.method = `combined with ${points.length} public points`;
    this.points = points;
    const clipped = (point) => point.map((value, i) => Math.min(Math.max(value, bounds.low[i]), bounds.high[i]));
    // As `kernel.similarity` prepares them: in single precision, not centred.
    this.rows = points.map((point) => Float64Array.from(bounds === null ? point : clipped(point), Math.fround));
  }

  /** The kernel mean of the public sample, and its variance as an estimate of the private one. */
  _public(point) {
    const query = Float64Array.from(point, Math.fround);
    const values = this.rows.map((row) => this.kernel.similarity(row, query));
    const number = values.length;
    const mean = values.reduce((a, b) => a + b, 0.0) / number;
    const square = values.reduce((sum, value) => sum + (value - mean) ** 2, 0.0) / number;
    const spread = (square * number + (1.0 - mean) ** 2) / number;
    return [mean, spread * (1.0 / number + 1.0 / Math.max(this.count, 1.0))];
  }

  /** The mean square of the difference between both kernel means beyond their variances. */
  get difference() {
    this.differs ??= this._differs();
    return this.differs;
  }

  _differs() {
    const number = this.points.length;
    const step = Math.max(1, Math.floor(number / COMPARED));
    const at = this.points.filter((_, i) => i % step === 0).slice(0, COMPARED);
    const released = this.own.query(at);
    const excess = at.map((point, i) => {
      const [mean, variance] = this._public(point);
      const self = Float64Array.from(point, Math.fround);
      const others = (mean * number - this.kernel.similarity(self, self)) / (number - 1);
      return (released.value[i] - others) ** 2 - released.stderr[i] ** 2 - variance;
    });
    return Math.max(0.0, excess.reduce((a, b) => a + b, 0.0) / excess.length);
  }

  query(points, { of = "mean", level = 0.95, simultaneous = false } = {}) {
    const released = this.own.query(points);
    const answers = new Answers(points.length, simultaneous ? together(level, points.length) : level);
    const reach = quantile(answers.level);
    Array.from(points).forEach((point, i) => {
      const [mean, own] = this._public(Array.isArray(point) || ArrayBuffer.isView(point) ? point : [point]);
      const variance = own + this.difference;
      const noise = Math.max(released.stderr[i] ** 2, 1e-300);
      const share = variance / (variance + noise);
      let value = share * released.value[i] + (1.0 - share) * mean;
      let stderr = Math.sqrt(share * noise);
      if (of === "sum") {
        stderr = Math.hypot(stderr * this.count, value * this.countStderr);
        value *= this.count;
      }
      setSum(answers, i, value, stderr * stderr, stderr * stderr, reach);
    });
    return answers;
  }
}

/** Fourier features with points that explain most of them: what they leave of the table, and their exact kernel sums. */
class SharpenedFunction extends LinearFunction {
  static of(own, points, weights, drawn) {
    const made = Object.assign(Object.create(SharpenedFunction.prototype), own);
    const claim = drawn ? own.claim : withPublicSample(own.claim);
    const method = `read with ${points.length} ${drawn ? "points found in it" : "public points"}`;
    const rows = points.map((point) => own.kernel.prepare(point, own.box));
    const table = own.reading.unexplained(own.table, rows, weights);
    const sizes = own.reading.folds(weights.length);
    const total = Math.max(sizes.reduce((a, b) => a + b, 0), 1);
    const mean = points.map((_, i) => weights.reduce((sum, fit, fold) => sum + (fit[i] * sizes[fold]) / total, 0.0));
    return Object.assign(made, { claim, own: own.own, function: own, method, table, rows, mean });
  }

  _sums(lattice) {
    const ofPoints = this.rows.reduce((sum, row, i) => sum + this.mean[i] * this.kernel.similarity(row, lattice), 0.0);
    return super._sums(lattice).map((sum) => sum + ofPoints);
  }
}

/** Kernel sums of places without a negative weight, which stand for those of a release; as in Python. */
class NonnegativeFunction extends ReleasedFunction {
  constructor(own, reading, weights) {
    const { claim, producer, kernel, box: bounds, columns, count, countVariance, basis, shape } = own;
    super({ claim, producer, kernel, box: bounds, columns, count, countVariance, basis, shape });
    Object.assign(this, { own, reading, weights, method: "non-negative version" });
  }

  get complete() {
    return this.own.complete;
  }

  get quickPictures() {
    return this.own.quickPictures;
  }

  query(points, options = {}) {
    const answers = this.own.query(points, options);
    const queries = Array.from(points, (point) => this.kernel.prepare(point, this.box));
    const sums = queries.map((row) => this.reading.evaluate(this.weights, this.reading.lattice(row))[0]);
    return this._raised(answers, Float64Array.from(sums), options.of);
  }

  picture(axes, steps, fixed, options = {}) {
    const answers = this.own.picture(axes, steps, fixed, options);
    const found = { value: this.reading.evaluate(this.weights, latticeOf(this.box, axes, steps, fixed)) };
    if (axes.length === 2 && axes[0] < axes[1]) transpose(found, steps[0].length, steps[1].length);
    return this._raised(answers, found.value, options.of);
  }

  /** The interval without the part below zero, and with the value; the bound allows for the distance of both values. */
  _raised(answers, sums, of = "mean") {
    const number = of === "mean" ? Math.max(this.count, 1.0) : 1.0;
    for (let i = 0; i < sums.length; i += 1) {
      const value = sums[i] / number;
      answers.bound[i] += Math.abs(value - answers.value[i]);
      answers.value[i] = value;
      answers.lower[i] = Math.min(Math.max(answers.lower[i], 0.0), value);
      answers.upper[i] = Math.max(answers.upper[i], value);
    }
    return answers;
  }
}

// --- reading --------------------------------------------------------------------------------------------------------

const BASES = {
  "hash-rows": hashBasis,
  "adjacency-rows": hashBasis,
  "divided-rows": hashBasis,
  "grid-weights": gridBasis,
  bins: binsBasis,
  "fourier-features": featuresBasis,
  monomials: monomialsBasis,
  "cosine-features": cosinesBasis,
  "fourier-series": seriesBasis,
  trigonometric: trigonometricBasis,
};

const READINGS = {
  "divided-rows": DividedReading,
  bins: BinsReading,
  "fourier-features": FeatureReading,
  monomials: MonomialReading,
  "cosine-features": CosineReading,
  "fourier-series": SeriesReading,
  trigonometric: TrigonometricReading,
};

function basisOf(header) {
  fields(header.basis, ["name", "parameters"]);
  const name = text(header.basis.name);
  if (!Object.hasOwn(BASES, name)) throw unsupported(`This page does not answer tables of the kind ${JSON.stringify(name)}`);
  return BASES[name](header.basis.parameters, name);
}

const TABLE = {
  size: (header) => tableSize(header.table, basisOf(header).shape, header),
  build(header, payload) {
    const paged = isObject(header.table) && "cells" in header.table ? ["paged"] : [];
    fields(header, ["type", "basis", "kernel", "claim", "noise", "count", "producer", "table", ...paged], ["stream", "parts", "constants"]);
    checkParts(header.parts ?? [], header.claim?.trust);
    const basis = basisOf(header);
    require(basis.name === "grid-weights" || !("constants" in header));
    const kernel = header.kernel === null ? basis.kernel : kernelFrom(header.kernel);
    require(kernel !== undefined && (header.kernel === null) === (basis.kernel !== undefined));
    const { cells, step } = tableCells(header.table, basis.shape, payload);
    if (basis.name === "grid-weights") return new GridFunction(header, basis, kernel, cells, step, GridReading);
    const reading = READINGS[basis.name];
    if (reading !== undefined) return new LinearFunction(header, basis, kernel, cells, step, reading);
    return new HashRowsFunction(header, basis, kernel, cells, step);
  },
};

/** The digests of the releases that were added, or rounded. */
function checkParts(parts, trust) {
  require(Array.isArray(parts) && parts.every((part) => typeof part === "string" && /^[0-9a-f]{32}$/.test(part)));
  require(parts.every((part, i) => i === 0 || parts[i - 1] < part));
  require(trust?.model === "site noise" ? parts.length === trust.parties : parts.length <= 1);
}

const COMMON = ["type", "kernel", "bounds", "columns", "claim", "count", "method", "producer"];

function realFacts(header) {
  fields(header.count, ["value", "variance"]);
  const bounds = box(header.bounds);
  const kernel = kernelFrom(header.kernel);
  require(kernel.ofColumns && kernel.dim === bounds.dim);
  return {
    kernel, box: bounds, columns: columnNames(header.columns, bounds.dim), claim: claimFrom(header.claim),
    count: real(header.count.value, 1.0, LARGEST_REAL), countVariance: real(header.count.variance, 0.0, LARGEST_REAL),
    method: text(header.method), producer: text(header.producer),
  }; // prettier-ignore
}

function reals(payload) {
  const numbers = decodeNumbers(payload, "float64");
  require(numbers.every((value) => Math.abs(value) <= LARGEST_REAL));
  return numbers;
}

function known(value) {
  return value === null ? null : real(value, 0.0, LARGEST_REAL);
}

function pointsShape(header) {
  require(list(header.points).length === 2);
  const [number, dim] = header.points.map((each) => whole(each, 1, 2 ** 28));
  affordable(number * (dim + 1) <= MOST_REALS, `A function of ${number} points`);
  return [number, dim];
}

const POINTS = {
  size(header) {
    const [number, dim] = pointsShape(header);
    return 8 * number * (dim + 1);
  },
  build(header, payload) {
    fields(header, [...COMMON, "weight_variance", "cell_width", "feature_errors", "points"]);
    const [number, dim] = pointsShape(header);
    const facts = realFacts(header);
    require(facts.box.dim === dim);
    const numbers = reals(payload);
    const points = Array.from({ length: number }, (_, i) => numbers.slice(i * dim, (i + 1) * dim));
    const { low, high } = facts.box;
    require(points.every((point) => point.every((value, i) => value >= low[i] && value <= high[i])));
    const cellWidth = header.cell_width === null ? null : list(header.cell_width).map((each) => real(each, 0.0, LARGEST_REAL));
    require(cellWidth === null || (cellWidth.length === dim && cellWidth.every((w, i) => w <= 2.0 * (high[i] - low[i]))));
    if (header.feature_errors !== null) {
      const [measured, noise, prior] = list(header.feature_errors);
      require(header.feature_errors.length === 3);
      whole(measured, 1, number);
      known(noise);
      known(prior);
    }
    const errors = {
      weightVariance: known(header.weight_variance),
      cellWidth,
      featureErrors: header.feature_errors !== null,
    };
    return new PointsFunction(facts, points, numbers.slice(number * dim), errors);
  },
};

function curveLength(header) {
  const number = whole(header.values, 1, 2 ** 28);
  affordable(2 * number <= MOST_REALS, `A curve of ${number} values`);
  return number;
}

const CURVE = {
  size: (header) => 16 * curveLength(header),
  build(header, payload) {
    fields(header, [...COMMON, "values"]);
    const number = curveLength(header);
    const numbers = reals(payload);
    require(numbers.subarray(number).every((error) => error >= 0.0));
    return new CurveFunction(realFacts(header), numbers.slice(0, number));
  },
};

/** A model: its claim, public facts, and the released functions that it is made of. */
const BUNDLE = {
  size(header) {
    let total = 0;
    for (const entry of entries(header.parts)) total += whole(entry.size, 0, Number.MAX_SAFE_INTEGER);
    for (const entry of entries(header.arrays)) total += arraySize(entry);
    return total;
  },
  build(header, payload) {
    fields(header, ["type", "claim", "about", "producer", "parts", "arrays"]);
    require(isObject(header.about) && typeof header.about.model === "string");
    require(header.parts.length + header.arrays.length > 0);
    let start = 0;
    const parts = header.parts.map(({ name, size }) => {
      const bytes = payload.subarray(start, start + size);
      start += size;
      return { name, function: read(bytes, FUNCTIONS) };
    });
    const arrays = header.arrays.map((entry) => {
      const values = decodeNumbers(payload.subarray(start, start + arraySize(entry)), entry.type);
      start += arraySize(entry);
      require(entry.type !== "float64" || values.every(Number.isFinite));
      return { name: entry.name, shape: entry.shape, values };
    });
    return {
      kind: "model", claim: claimFrom(header.claim), about: header.about, producer: text(header.producer), parts, arrays,
      drawable: false,
    }; // prettier-ignore
  },
};

function entries(value) {
  const found = list(value, MOST_ENTRIES);
  const names = found.map((entry) => text(entry?.name));
  require(names.every((name) => name !== "" && name.length <= 200) && new Set(names).size === names.length);
  return found;
}

function arraySize(entry) {
  const shape = list(entry.shape, MOST_AXES).map((each) => whole(each, 0, Number.MAX_SAFE_INTEGER));
  return shape.reduce((a, b) => a * b, 1) * numberSize(entry.type, { reals: true });
}

function combinedShape(header) {
  fields(header, ["type", "points", "release"]);
  require(list(header.points).length === 2);
  const [number, dim] = header.points.map((each) => whole(each, 0, 2 ** 24));
  affordable(number * dim <= MOST_REALS, `A sample of ${number} points`);
  return { number, dim, release: whole(header.release, 0, Number.MAX_SAFE_INTEGER) };
}

const COMBINATION = {
  size(header) {
    const { number, dim, release } = combinedShape(header);
    return 8 * number * dim + release;
  },
  build(header, payload) {
    const { number, dim } = combinedShape(header);
    const numbers = decodeNumbers(payload.subarray(0, 8 * number * dim), "float64");
    require(numbers.every(Number.isFinite));
    const points = Array.from({ length: number }, (_, i) => Array.from(numbers.subarray(i * dim, (i + 1) * dim)));
    return new CombinedFunction(read(payload.subarray(8 * number * dim), { table: TABLE }), points);
  },
};

const SHARPENED = {
  size({ folds, origin, ...header }) {
    const { number, dim, release } = combinedShape(header);
    require(origin === "release" || origin === "public");
    return 8 * number * (dim + whole(folds, 1, 16)) + release;
  },
  build({ folds, origin, ...header }, payload) {
    const { number, dim } = combinedShape(header);
    const numbers = decodeNumbers(payload.subarray(0, 8 * number * (dim + folds)), "float64");
    require(number > 0 && numbers.every(Number.isFinite));
    const own = read(payload.subarray(8 * number * (dim + folds)), { table: TABLE });
    require(own.reading instanceof FeatureReading && own.kernel.dim === dim);
    affordable(number * own.reading.basis.features <= MOST_WAVES, `A table of ${own.reading.basis.features} features with ${number} points`);
    const part = (start, length) => Array.from(numbers.subarray(start, start + length));
    const points = Array.from({ length: number }, (_, i) => part(i * dim, dim));
    const weights = Array.from({ length: folds }, (_, i) => part(number * (dim + i), number));
    return SharpenedFunction.of(own, points, weights, origin === "release");
  },
};

function placesShape(header) {
  fields(header, ["type", "cells", "weights", "release"], ["constants"]);
  const cells = list(header.cells).map((each) => whole(each, 1, MOST_PLACES));
  const number = cells.reduce((product, each) => product * (each + 1), 1);
  require(number <= MOST_PLACES);
  return { cells, bytes: number * numberSize(header.weights), release: whole(header.release, 0, Number.MAX_SAFE_INTEGER) };
}

const NONNEGATIVE = {
  size(header) {
    const { bytes, release } = placesShape(header);
    return bytes + release;
  },
  build(header, payload) {
    const { cells, bytes } = placesShape(header);
    const own = read(payload.subarray(bytes), { table: TABLE, points: POINTS });
    require(own.box !== null && cells.length === own.box.dim);
    const weights = Float64Array.from(decodeNumbers(payload.subarray(0, bytes), header.weights), Number);
    require(weights.every((each) => each >= 0.0));
    const basis = { box: own.box, cells, degrees: cells.map(() => 0), nodes: cells.map((each) => each + 1) };
    return new NonnegativeFunction(own, new GridReading(basis, own.kernel, header.constants), weights);
  },
};

const FUNCTIONS = { table: TABLE, points: POINTS, curve: CURVE, "public combination": COMBINATION, sharpened: SHARPENED, nonnegative: NONNEGATIVE };
const KINDS = { ...FUNCTIONS, bundle: BUNDLE };

/**
 * The header of a file without what the owner stated, and that. A statement bears on no answer, so that each is shown, and
 * none needs to be known here.
 */
function withoutStatement({ statement = {}, ...header }) {
  require(isObject(statement) && Object.values(statement).every((value) => !isObject(value) && !Array.isArray(value)));
  return { header, statement };
}

function read(bytes, kinds) {
  const kindOf = (header) => {
    if (typeof header.type === "string" && Object.hasOwn(kinds, header.type)) return kinds[header.type];
    throw unsupported(`This page does not answer functions of the type ${JSON.stringify(header.type ?? null)}`);
  };
  try {
    const { header: whole, payload } = readContainer(bytes, (found) => kindOf(found).size(found));
    const { header, statement } = withoutStatement(whole);
    const found = kindOf(header).build(header, payload);
    found.statement = { ...found.own?.statement, ...statement };
    return found;
  } catch (error) {
    if (error instanceof FileRefused) throw error;
    // A header whose values have other types than the reader expects.
    if (error instanceof TypeError || error instanceof RangeError) throw nonsense();
    throw error;
  }
}

/**
 * What the bytes of a .hush file hold.
 *
 * @param {Uint8Array | ArrayBuffer} bytes
 * @returns a released function with `query` and `picture`, or a model with `parts`
 * @throws {FileRefused} where the file is damaged, confidential, or not answered by this reader
 */
export function readHush(bytes) {
  // A plain view, whatever subclass was given.
  const whole = ArrayBuffer.isView(bytes)
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new Uint8Array(bytes);
  return read(whole, KINDS);
}

export { FileRefused, QueryRefused, changeBetween, digestOf };
