// Released sums of vectors, or of their products: inner products with a query, exact up to noise.
import { columnNames, fields, require, whole } from "./header.js";
import { kernelFrom } from "./kernels.js";
import { wholeRoot } from "./special_functions.js";

const SQUARE_WEIGHT = 5;
const PRODUCT_WEIGHT = 7;
const MOST_SQUARED = 4096;

export function monomialsBasis(parameters) {
  fields(parameters, ["kernel", "bits", "columns", "transform"]);
  const kernel = kernelFrom(parameters.kernel);
  require(kernel.degree === 1 || kernel.degree === 2);
  const bits = whole(parameters.bits, 4, 20);
  const dim = kernel.dim;
  require(dim <= (kernel.degree === 2 ? MOST_SQUARED : 2 ** (2 * bits)));
  require(parameters.transform === null || typeof parameters.transform === "string");
  const radius = kernel.parameters.radius;
  const side = new Array(dim).fill(radius);
  return {
    name: "monomials", moved: movedBy(kernel.degree, BigInt(dim), 1n << BigInt(2 * bits)), kernel, bits, columns: columnNames(parameters.columns, dim), box: null,
    shape: [1, kernel.degree === 1 ? dim : (dim * (dim + 1)) / 2],
    shown: { low: side.map((r) => -r), high: side, centre: side.map(() => 0), dim },
  }; // prettier-ignore
}

/** How far a record moves the sums, as `Monomials.sensitivity` in Python; `square` is its squared length. */
function movedBy(degree, dim, square) {
  const weight = BigInt(SQUARE_WEIGHT) * square;
  const added =
    degree === 1
      ? { l1: wholeRoot(dim * square), l2Squared: square }
      : { l1: weight + (BigInt(PRODUCT_WEIGHT) * (dim - 1n) * square) / 2n, l2Squared: weight ** 2n };
  let replaced = { l1: wholeRoot(dim * (dim + 1n) * weight ** 2n), l2Squared: 2n * weight ** 2n };
  if (degree === 1) replaced = { l1: wholeRoot(4n * dim * square), l2Squared: 4n * square };
  else if (dim === 1n) replaced = { l1: weight, l2Squared: weight ** 2n };
  const larger = (a, b) => (a > b ? a : b);
  return (many, person) => {
    if (many === 1n || !person) return many === 1n ? added : replaced;
    return { l1: larger(added.l1, replaced.l1), l2Squared: larger(added.l2Squared, replaced.l2Squared) };
  };
}

export class MonomialReading {
  constructor(basis) {
    this.basis = basis;
    this.kernel = basis.kernel;
    this.blocks = null;
    const length = 2 ** basis.bits - Math.floor(Math.floor(Math.sqrt(basis.kernel.dim)) / 2) - 2;
    this.unit = length ** basis.kernel.degree;
    this.step = 1.0 / length;
  }

  lattice(row) {
    return Array.from(row, (value) => value / this.kernel.parameters.radius);
  }

  evaluate(table, query) {
    let sum = 0.0;
    if (this.kernel.degree === 1) {
      query.forEach((value, i) => (sum += value * (table[i] / this.unit)));
      return [sum];
    }
    for (let i = 0, at = 0; i < query.length; i += 1)
      for (let j = i; j < query.length; j += 1, at += 1) {
        const weight = i === j ? SQUARE_WEIGHT : PRODUCT_WEIGHT;
        sum += (i === j ? 1.0 : 2.0) * query[i] * query[j] * (table[at] / (weight * this.unit));
      }
    return [sum];
  }

  noiseGain(query) {
    const squares = query.map((value) => value * value);
    const total = squares.reduce((a, b) => a + b, 0.0);
    if (this.kernel.degree === 1) return [total / this.unit ** 2];
    const fourth = squares.reduce((sum, square) => sum + square * square, 0.0);
    return [(fourth / SQUARE_WEIGHT ** 2 + (2.0 * (total ** 2 - fourth)) / PRODUCT_WEIGHT ** 2) / this.unit ** 2];
  }

  /** Of the rounding of records to integers, which is independent between records. */
  methodVariance(table, query, count) {
    const squares = query.reduce((sum, value) => sum + value * value, 0.0);
    const mean = (Math.max(count, 0.0) * squares * this.step ** 2) / 12.0;
    if (this.kernel.degree === 1) return [mean];
    return [(Math.max(count, 0.0) * squares ** 2 * this.step ** 2) / 3.0 + mean ** 2];
  }

  /** Half a step in every column, of the same sign for all records. */
  biasBound(table, query, count) {
    const length = query.reduce((sum, value) => sum + Math.abs(value), 0.0);
    if (this.kernel.degree === 1) return [(Math.max(count, 0.0) * length * this.step) / 2.0];
    const products = Math.sqrt(query.reduce((sum, value) => sum + value * value, 0.0)) * length * this.step;
    return [Math.max(count, 0.0) * (products + (length * this.step) ** 2 / 4.0)];
  }

  total() {
    return null;
  }
}
