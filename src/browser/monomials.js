// Released sums of vectors, or of their products: inner products with a query, exact up to noise.
import { columnNames, fields, require, whole } from "./header.js";
import { kernelFrom } from "./kernels.js";

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
    name: "monomials", kernel, bits, columns: columnNames(parameters.columns, dim), box: null,
    shape: [1, kernel.degree === 1 ? dim : (dim * (dim + 1)) / 2],
    shown: { low: side.map((r) => -r), high: side, centre: side.map(() => 0), dim },
  }; // prettier-ignore
}

export class MonomialReading {
  constructor(basis) {
    this.basis = basis;
    this.kernel = basis.kernel;
    this.blocks = null;
    const length = 2 ** basis.bits - Math.floor(Math.floor(Math.sqrt(basis.kernel.dim)) / 2) - 2;
    this.unit = length ** basis.kernel.degree;
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

  methodVariance() {
    return [0.0];
  }

  biasBound() {
    return [0.0];
  }

  total() {
    return null;
  }
}
