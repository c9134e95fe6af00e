// Released hash rows: each row estimates the kernel sum by the cell in which a query falls.
import { Answers, quantile, setMean, setSum } from "./answers.js";
import { evenRound } from "./box_series.js";
import { affordable, bigWhole, box, columnNames, fields, flag, require, whole } from "./header.js";
import { isCombination, isHashable, kernelFrom, numbersPerRow } from "./kernels.js";
import { derivedSeed } from "./public_random.js";

const MOST_ROWS = 2 ** 24;
const MOST_WIDTH = 2 ** 30;
const MOST_NUMBERS = 2 ** 24;
const RARE = 0.001;
const FEWEST_BLOCKS = 8;
const FEWEST = 2;
const PATTERN = 64;
const HUGE = 1n << 4096n;

/** What a header says of hash rows, of one kernel or divided among the components of a combination. */
export function hashBasis(parameters, name) {
  const graph = name === "adjacency-rows" ? ["graph"] : [];
  fields(parameters, ["kernel", "rows", "width", "seed", "bounds", "columns", ...graph]);
  const kernel = kernelFrom(parameters.kernel);
  const rows = whole(parameters.rows, 1, MOST_ROWS);
  const width = whole(parameters.width, 2, MOST_WIDTH);
  const seed = bigWhole(parameters.seed, -HUGE, HUGE);
  const bounds = parameters.bounds === null ? null : box(parameters.bounds);
  require(bounds === null || (kernel.ofColumns && bounds.dim === kernel.dim));
  const columns = columnNames(parameters.columns, kernel.dim ?? 1);
  if (name === "adjacency-rows") {
    require(kernel.dim === null);
    checkGraph(parameters.graph);
  }
  const parts = isCombination(kernel) ? kernel.components.map((each) => each.kernel) : [kernel];
  require((name === "divided-rows") === isCombination(kernel) && parts.every(isHashable));
  const distinct = kernel.distinct();
  require(distinct === null || width <= distinct);
  affordable(
    rows * Math.max(...parts.map(numbersPerRow)) <= MOST_NUMBERS,
    "The number of random numbers behind this function",
  );
  const moved = (many) => ({ l1: many * BigInt(rows), l2Squared: many * BigInt(rows) });
  return { name, kernel, shape: [rows, width], box: bounds, columns, seed, moved };
}

function checkGraph(value) {
  fields(value, ["directed", "nodes", "rows_listed"]);
  flag(value.directed);
  flag(value.rows_listed);
  if (value.nodes !== null) {
    whole(value.nodes, 1, 2 ** 40);
    require(!value.rows_listed);
  }
}

/** Mean over some rows of the cells' values, and the variance of that mean from the spread of blocks of rows. */
function moments(values, block) {
  const rows = values.length;
  let sum = 0.0;
  for (let row = 0; row < rows; row += 1) sum += values[row];
  const mean = sum / rows;
  const blocks = Math.ceil(rows / block);
  if (blocks < 2) return [mean, NaN];
  let squares = 0.0;
  for (let start = 0; start < rows; start += block) {
    const end = Math.min(start + block, rows);
    let own = 0.0;
    for (let row = start; row < end; row += 1) own += values[row] - mean;
    squares += (own * own) / (end - start);
  }
  return [mean, Math.max(0.0, squares) / ((blocks - 1) * rows)];
}

/** Answers from hash rows of one kernel, as `TableFunction` in Python. */
export class HashRowsReader {
  constructor(basis, table, cellVariance) {
    const { kernel, shape, seed } = basis;
    [this.rows, this.width] = shape;
    this.kernel = kernel;
    this.table = table;
    this.cellVariance = cellVariance;
    const distinct = kernel.distinct();
    this.foldRate = distinct === null || distinct > this.width ? 1.0 / this.width : 0.0;
    this.block = kernel.independentRows();
    this.blocks = Math.ceil(this.rows / this.block);
    this.hasher = kernel.hasher({ rows: this.rows, width: this.width, seed });
    this.cells = new Int32Array(this.rows);
    this.values = new Float64Array(this.rows);
  }

  /** The same rows with another table of the same shape, which at most this many records changed, in either direction. */
  withTable(table, cellVariance, records) {
    return Object.assign(Object.create(HashRowsReader.prototype), this, { table, cellVariance, records });
  }

  /** The number of records as the table tells it, and its variance. */
  ownCount() {
    let total = 0.0;
    for (const value of this.table) total += value;
    return [total / this.rows, (this.width * this.cellVariance) / this.rows];
  }

  _values(query) {
    this.hasher.cells(query, this.cells);
    for (let row = 0; row < this.rows; row += 1) this.values[row] = this.table[row * this.width + this.cells[row]];
    return this.values;
  }

  query(queries, { of, level, count, countVariance }) {
    const answers = new Answers(queries.length, level);
    const number = Math.max(count, 1.0);
    const keep = 1.0 / (1.0 - this.foldRate);
    const folded = keep * this.foldRate;
    const enough = this.blocks >= FEWEST_BLOCKS;
    const reach = quantile(level, enough ? Math.max(this.blocks, 2) : null);
    const noise = this.cellVariance / this.rows;
    queries.forEach((query, i) => {
      const [mean, spread] = moments(this._values(query), this.block);
      const sum = mean * keep - count * this.foldRate * keep;
      const most = this._largestVariance(mean, noise, count, countVariance);
      const own = enough ? Math.max(spread, noise) : most;
      const variance = keep ** 2 * own + folded ** 2 * countVariance;
      const largest = Math.max(keep ** 2 * most + folded ** 2 * countVariance, variance);
      if (of === "sum") setSum(answers, i, sum, variance, largest, reach);
      else setMean(answers, i, sum, variance, largest, reach, number, countVariance, -folded * countVariance);
    });
    return answers;
  }

  /** The largest variance of the mean over rows that data with this released mean can have. */
  _largestVariance(mean, noise, count, countVariance) {
    const part = RARE / 3.0;
    const number = (this.records ?? count) + Math.sqrt(countVariance / part);
    if (this.records !== undefined) return (number * number) / this.blocks + noise;
    const average = Math.min(Math.max(mean + Math.sqrt(noise / part), 0.0), number);
    const half = (number * Math.log(1.0 / part)) / (2.0 * this.blocks);
    const most = Math.min((Math.sqrt(half) + Math.sqrt(half + average)) ** 2, number);
    return (number * most) / this.blocks + noise;
  }
}

/** Rows divided among the components of a combination: linear in the table, with the spread of each component's rows. */
export class DividedReading {
  constructor(basis, kernel) {
    this.basis = basis;
    this.kernel = kernel;
    const [rows, width] = basis.shape;
    const pattern = patternOf(kernel.components.map(({ weight }) => weight));
    require(rows >= FEWEST * kernel.components.length);
    this.parts = kernel.components.map(({ weight, kernel: own }, number) => {
      const taken = [];
      for (let row = 0; row < rows; row += 1) if (pattern[row % pattern.length] === number) taken.push(row);
      const distinct = own.distinct();
      const foldRate = distinct === null || distinct > width ? 1.0 / width : 0.0;
      const seed = derivedSeed("combination", basis.seed, number);
      const hasher = own.hasher({ rows: taken.length, width, seed });
      const block = own.independentRows();
      const blocks = Math.ceil(taken.length / block);
      return { rows: taken, foldRate, hasher, block, blocks, slope: weight / (1.0 - foldRate) };
    });
    this.fold = this.parts.reduce((sum, part) => sum + part.slope * part.foldRate, 0.0) / rows;
    this.slopes = this.parts.reduce((sum, part) => sum + part.slope, 0.0);
    this.blocks = this._blocks();
  }

  lattice(row) {
    return this.kernel.split(row);
  }

  _means(table, queries) {
    return this.parts.map((part, i) => {
      const cells = new Int32Array(part.rows.length);
      part.hasher.cells(queries[i], cells);
      return moments(
        Float64Array.from(part.rows, (row, at) => table[row * this.basis.shape[1] + cells[at]]),
        part.block,
      );
    });
  }

  evaluate(table, queries) {
    return [this.spread(table, queries)[0]];
  }

  /** A kernel sum and its variance from the spread over the components' rows. */
  spread(table, queries) {
    const [rows] = this.basis.shape;
    let [sum, variance] = [-this.total(table)[0] * this.fold * rows, 0.0];
    this._means(table, queries).forEach(([mean, own], i) => {
      sum += this.parts[i].slope * mean;
      variance += this.parts[i].slope ** 2 * own;
    });
    return [sum, variance];
  }

  noiseGain() {
    const [rows, width] = this.basis.shape;
    const squares = this.parts.reduce((sum, part) => sum + part.slope ** 2 / part.rows.length, 0.0);
    return [squares - 2.0 * this.fold * this.slopes + rows * width * this.fold ** 2];
  }

  methodVariance(table, queries, count, variance) {
    const number = Math.max(count, 1.0);
    return [
      this._means(table, queries).reduce((sum, [mean], i) => {
        const part = this.parts[i];
        const most = Math.min(Math.max(mean + 2.0 * Math.sqrt(variance / part.rows.length), 0.0), number);
        return sum + (part.slope ** 2 * number * most) / part.blocks;
      }, 0.0),
    ];
  }

  biasBound() {
    return [0.0];
  }

  total(table) {
    const [rows, width] = this.basis.shape;
    if (this.totalOf !== table) {
      this.totalOf = table;
      this.totalIs = table.reduce((sum, value) => sum + value, 0.0);
    }
    return [this.totalIs / rows, width / rows];
  }

  totalCovariance() {
    const [rows, width] = this.basis.shape;
    return [this.slopes / rows - width * this.fold];
  }

  _blocks() {
    const shares = this.parts.map((part) => [part.slope ** 2 / part.blocks, part.blocks]);
    if (Math.min(...shares.map(([, blocks]) => blocks)) < FEWEST) return 1;
    const over = shares.reduce((sum, [s]) => sum + s, 0.0) ** 2;
    const under = shares.reduce((sum, [s, n]) => sum + (s * s) / (n - 1), 0.0);
    return 1 + Math.floor(over / under + 1e-9);
  }
}

/** The component of each of some 64 rows, which repeat. */
function patternOf(weights) {
  const total = weights.reduce((sum, weight) => sum + Math.abs(weight), 0.0);
  const shares = weights.map((weight) => Math.max(FEWEST, evenRound((PATTERN * Math.abs(weight)) / total)));
  const all = shares.reduce((a, b) => a + b, 0);
  const dealt = [...weights.keys(), ...weights.keys()];
  const taken = weights.map(() => FEWEST);
  while (dealt.length < all) {
    let [chosen, furthest] = [-1, -Infinity];
    shares.forEach((share, i) => {
      const behind = taken[i] < share ? share * dealt.length - taken[i] * all : -(2 ** 62);
      if (behind > furthest) [chosen, furthest] = [i, behind];
    });
    dealt.push(chosen);
    taken[chosen] += 1;
  }
  return dealt;
}
