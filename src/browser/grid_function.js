// A released grid: weights on nodes, read with any kernel that is a sum of products over columns.
import { ReadingErrors, gridConstants } from "./grid_errors.js";
import { GridReader, termOf } from "./grid_reading.js";
import { affordable, box, columnNames, fields, list, require, whole } from "./header.js";
import { FileRefused, unsupported } from "./refusal.js";
import { wholeRoot } from "./special_functions.js";

const WHOLE = 2 ** 20;
const MOST_CELLS = 2 ** 26;
const MOST_DIM = 4;
const MOST_PRODUCTS = 2 ** 28;
const PARTS = { 1: WHOLE, 2: 2 ** 16, 3: 2 ** 16, 4: 2 ** 13 };

/** The largest sum of squares of the rounded weights in one column, by the number of columns and the degree. */
const SQUARES = {
  1: { 2: 652835545120, 3: 549755986038, 4: 480605151774, 5: 435988059714 },
  2: { 2: 2550169090, 3: 2147494408, 4: 1877429602, 5: 1703120158 },
  3: { 2: 2550169090, 3: 2147494408, 4: 1877429602, 5: 1703120158 },
  4: { 2: 39843714, 3: 33557006, 4: 29342204, 5: 26617928 },
};

/** The largest squared norm of the weights of a record; as `_norm_bounds` in Python. */
function squaredNorm(dim, smooth) {
  const [whole, parts] = [BigInt(WHOLE), BigInt(PARTS[dim])];
  const under = parts ** BigInt(2 * smooth.length);
  const over = smooth.reduce((product, degree) => product * BigInt(SQUARES[dim][degree]), whole ** 2n);
  if (parts ** BigInt(smooth.length) <= whole) return over / under;
  const number = smooth.reduce((product, degree) => product * (degree + 1), 1);
  const norm = wholeRoot(over / under + (over % under ? 1n : 0n)) + 1n;
  return (norm + BigInt(Math.floor(Math.sqrt(number)) >> 1) + 1n + BigInt((number + 1) >> 1)) ** 2n;
}

/** What a header says of a grid: {shape, box, columns, cells, degrees, nodes}. */
export function gridBasis(parameters) {
  fields(parameters, ["cells", "bounds", "degrees", "columns"]);
  const bounds = box(parameters.bounds);
  const dim = bounds.dim;
  require(dim <= MOST_DIM && list(parameters.cells).length === dim && list(parameters.degrees).length === dim);
  const cells = parameters.cells.map((each) => whole(each, 1, MOST_CELLS));
  const degrees = parameters.degrees.map((each) => whole(each, 0, 5));
  require(!degrees.includes(1));
  const nodes = cells.map((each, i) => each + Math.max(degrees[i], 1));
  require(nodes.reduce((a, b) => a * b, 1) <= MOST_CELLS);
  const shape = [nodes[0], nodes.slice(1).reduce((a, b) => a * b, 1)];
  const squared = squaredNorm(dim, degrees.filter((each) => each > 0));
  const moved = (many) => ({ l1: many * BigInt(WHOLE), l2Squared: many * squared });
  return { name: "grid-weights", moved, shape, box: bounds, columns: columnNames(parameters.columns, dim), cells, degrees, nodes };
}

/** Answers that are linear in a grid's table. */
export class GridReading {
  constructor(basis, kernel, constants) {
    require(kernel !== null && kernel.ofColumns && kernel.dim === basis.box.dim);
    require(kernel.name !== "product" || kernel.divided);
    this.basis = basis;
    this.kernel = kernel;
    if (constants === undefined)
      throw unsupported("This page does not read a kernel that is a sum of more than 128 products over columns");
    this.blocks = null;
    const spacing = basis.cells.map((number, i) => (basis.box.high[i] - basis.box.low[i]) / number);
    const coarsest = Math.max(...spacing.map((each, i) => (basis.degrees[i] ? each / kernel.columnWidths[i] : 0.0)));
    if (kernel.smooth && coarsest > 1.25)
      throw new FileRefused("The file's grid is too coarse for the kernel that it names; ask who wrote it.");
    this.columns = basis.nodes.map((nodes, i) => {
      const degree = basis.degrees[i];
      const first = -spacing[i] * (0.5 * basis.cells[i] + (degree ? 0.5 * (degree - 1) : 0.0));
      return { nodes, spacing: spacing[i], first, degree };
    });
    this.constants = gridConstants(constants, this.columns);
  }

  get reader() {
    if (this.made === undefined) {
      const { profiles } = this.constants;
      const nodes = this.columns.reduce((product, each) => product * each.nodes, 1);
      affordable(profiles.length * nodes <= MOST_PRODUCTS, "A grid of that many nodes with this kernel");
      const terms = profiles.map((each) => termOf(this.columns, each.height, each.scales, each.gaussian));
      this.made = new GridReader(this.columns, terms);
    }
    return this.made;
  }

  get errors() {
    this.madeErrors ??= new ReadingErrors(this.kernel, this.reader, this.constants);
    return this.madeErrors;
  }

  /** A query as a lattice of one point. */
  lattice(row) {
    return Array.from(row, (value) => Float64Array.of(value));
  }

  evaluate(table, lattice) {
    return this.reader.sums(doubles(table), lattice).map((sum) => sum / WHOLE);
  }

  noiseGain(lattice) {
    return this.reader.gains(lattice).map((gain) => gain / WHOLE ** 2);
  }

  methodVariance(table, lattice) {
    if (this.squared === undefined || this.squaredOf !== table) {
      this.squared = Float64Array.from(table, (value) => value * value);
      this.squaredOf = table;
    }
    return this.errors.variance(this.squared, lattice).map((square) => square / WHOLE ** 2);
  }

  biasBound(table, lattice, count, variance) {
    const floor = this.errors.floor * Math.max(count, 0.0);
    return this.errors.bound(doubles(table), lattice, variance).map((error) => error / WHOLE + floor);
  }

  total(table) {
    return [table.reduce((sum, value) => sum + value, 0.0) / WHOLE, table.length / WHOLE ** 2];
  }

  totalCovariance(lattice) {
    const ones = new Float64Array(this.basis.nodes.reduce((a, b) => a * b, 1)).fill(1.0);
    return this.reader.sums(ones, lattice).map((sum) => sum / WHOLE ** 2);
  }
}

const converted = new WeakMap();

/** A table in double precision, converted once. */
export function doubles(table) {
  if (table instanceof Float64Array) return table;
  if (!converted.has(table)) converted.set(table, Float64Array.from(table));
  return converted.get(table);
}
