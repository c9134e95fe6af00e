// The kernels that a header can name: checked parameters, the form of a query, hash functions, and similarities.
import { Real } from "./canonical_json.js";
import {
  CodeHasher,
  ConcatenatedHasher,
  DenseHasher,
  MinHasher,
  StructuredHasher,
  paddedSize,
  structuredBlock,
} from "./hash_functions.js";
import { fields, list, real, require, text, whole } from "./header.js";
import { derivedSeed } from "./public_random.js";
import { QueryRefused, unsupported } from "./refusal.js";
import { erf, logGamma } from "./special_functions.js";

const MOST_DIM = 1 << 20;
const MOST_POWER = 256;
const MOST_FACTORS = 64;
const MOST_COMPONENTS = 64;
const FACTOR_WIDTH = 2 ** 30;
const LARGEST_UNFOLDED = 30;
const FLOAT = 3.4028234663852886e38;

/** Rows of numbers, in single precision, relative to the centre of declared bounds. */
export function prepareNumbers(point, dim, box) {
  const values = Array.isArray(point) || ArrayBuffer.isView(point) ? point : [point];
  if (values.length !== dim) throw new QueryRefused(`A query has ${dim} numbers, got ${values.length}.`);
  const row = new Float32Array(dim);
  for (let i = 0; i < dim; i += 1) {
    const value = Number(values[i]);
    row[i] = box === null ? value : value - box.centre[i];
    if (!Number.isFinite(value) || !Number.isFinite(row[i]))
      throw new QueryRefused("A query must be of finite numbers within single precision.");
  }
  return row;
}

/** What every kernel has; `similarity` takes two rows of numbers. */
class Kernel {
  constructor(name, parameters) {
    this.name = name;
    this.parameters = parameters;
    this.dim = parameters.dim ?? null;
    this.signed = false;
    this.ofColumns = false;
  }

  prepare(point, box = null) {
    return prepareNumbers(point, this.dim, box);
  }

  /** How many values a hash takes, where that is a small number; else null. */
  distinct() {
    return null;
  }

  independentRows() {
    return 1;
  }

  words() {
    const listed = Object.entries(this.parameters).map(([name, value]) => `${name} ${value}`);
    return `${this.name} (${listed.join(", ")})`;
  }
}

/** A kernel of the differences between columns of numbers. */
class ColumnKernel extends Kernel {
  constructor(name, parameters) {
    super(name, parameters);
    this.ofColumns = true;
    this.smooth = false;
    this.bandwidth = parameters.bandwidth;
    this.power = parameters.power ?? 1;
    this.width = this.bandwidth / this.power;
  }

  get columnWidths() {
    return new Array(this.dim).fill(this.width);
  }

  /** Whether the kernel is a product over its columns. */
  get separable() {
    return this.dim === 1;
  }
}

function squaredDistance(a, b) {
  let sum = 0.0;
  for (let i = 0; i < a.length; i += 1) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

function cityDistance(a, b) {
  let sum = 0.0;
  for (let i = 0; i < a.length; i += 1) sum += Math.abs(a[i] - b[i]);
  return sum;
}

class Gaussian extends ColumnKernel {
  constructor(name, parameters) {
    super(name, parameters);
    this.smooth = true;
    this.width = this.bandwidth / Math.sqrt(this.power);
    this.gaussianWidth = this.width;
  }

  get separable() {
    return true;
  }

  similarity(x, q) {
    return Math.exp((-0.5 * this.power * squaredDistance(x, q)) / this.bandwidth ** 2);
  }

  integral() {
    return (2.0 * Math.PI * this.width ** 2) ** (this.dim / 2);
  }
}

class Laplacian extends ColumnKernel {
  get separable() {
    return true;
  }

  similarity(x, q) {
    return Math.exp((-this.power * cityDistance(x, q)) / this.bandwidth);
  }

  integral() {
    return (2.0 * this.width) ** this.dim;
  }
}

class Matern extends ColumnKernel {
  similarity(x, q) {
    const smoothness = this.parameters.smoothness;
    const r = (Math.sqrt(2.0 * smoothness) / this.bandwidth) * Math.sqrt(squaredDistance(x, q));
    const factor = smoothness === 0.5 ? 1.0 : smoothness === 1.5 ? 1.0 + r : 1.0 + r + (r * r) / 3.0;
    return factor * Math.exp(-r);
  }

  integral() {
    const half = this.dim / 2.0;
    const nu = this.parameters.smoothness;
    const log = half * Math.log((2.0 * Math.PI) / nu) + logGamma(nu + half) - logGamma(nu);
    return Math.exp(log + this.dim * Math.log(this.bandwidth));
  }
}

/** Random projections of numbers behind hash functions. */
function projectionHasher(kernel, family, { dim, count, scale, signs, structured }, { rows, width, seed }) {
  const distinct = kernel.distinct();
  const fold = distinct === null || distinct > width;
  const options = { family, dim, count, scale, signs, rows, width, seed, fold };
  return structured ? new StructuredHasher(options) : new DenseHasher(options);
}

class Euclidean extends ColumnKernel {
  similarity(x, q) {
    const ratio = Math.sqrt(squaredDistance(x, q)) / this.bandwidth;
    return euclideanCollision(ratio) ** this.power;
  }

  integral() {
    return Infinity;
  }

  get structured() {
    return this.parameters.projection === "structured";
  }

  independentRows() {
    return this.structured ? structuredBlock(this.dim, this.power) : 1;
  }

  hasher(size) {
    const scale = 1.0 / this.bandwidth;
    const options = { dim: this.dim, count: this.power, scale, signs: false, structured: this.structured };
    return projectionHasher(this, "euclidean", options, size);
  }
}

function euclideanCollision(ratio) {
  if (!(ratio > 1e-8)) return 1.0;
  const t = 1.0 / ratio;
  return erf(t / Math.sqrt(2.0)) + (Math.sqrt(2.0 / Math.PI) * Math.expm1(-0.5 * t * t)) / t;
}

class Manhattan extends ColumnKernel {
  similarity(x, q) {
    const ratio = cityDistance(x, q) / this.bandwidth;
    if (!(ratio > 1e-12)) return 1.0;
    const t = 1.0 / ratio;
    return ((2.0 * Math.atan(t) - Math.log1p(t * t) / t) / Math.PI) ** this.power;
  }

  integral() {
    return Infinity;
  }

  hasher(size) {
    const options = { dim: this.dim, count: this.power, scale: 1.0 / this.bandwidth, signs: false, structured: false };
    return projectionHasher(this, "manhattan", options, size);
  }
}

class Angular extends Kernel {
  get bits() {
    return this.parameters.bits * this.parameters.power;
  }

  get structured() {
    return this.parameters.projection === "structured";
  }

  distinct() {
    return this.bits <= LARGEST_UNFOLDED ? 2 ** this.bits : null;
  }

  independentRows() {
    return this.structured ? structuredBlock(this.dim, this.bits) : 1;
  }

  hasher(size) {
    const options = { dim: this.dim, count: this.bits, scale: 1.0, signs: true, structured: this.structured };
    return projectionHasher(this, "angular", options, size);
  }
}

/** Records and queries are raised to a sphere by coordinates of their own; without a query radius queries are not. */
class AsymmetricAngular extends Angular {
  get raised() {
    return this.dim + (this.parameters.query_radius === undefined ? 1 : 2);
  }

  prepare(point, box = null) {
    require(box === null);
    const row = new Float32Array(this.raised);
    row.set(prepareNumbers(point, this.dim, null));
    const radius = this.parameters.query_radius;
    if (radius === undefined) return row;
    const length = (values) => values.reduce((sum, value) => sum + value * value, 0.0);
    const values = [...row.subarray(0, this.dim)];
    const shrink = radius / Math.max(Math.sqrt(length(values)), radius);
    const unit = values.map((value) => (value * shrink) / radius);
    row.set(unit);
    row[this.dim + 1] = Math.sqrt(Math.max(1.0 - length(unit), 0.0));
    return row;
  }

  hasher(size) {
    const options = { dim: this.raised, count: this.bits, scale: 1.0, signs: true, structured: false };
    return projectionHasher(this, "angular", options, size);
  }
}

class Hamming extends Kernel {
  prepare(point) {
    const values = Array.isArray(point) || ArrayBuffer.isView(point) ? point : [point];
    if (values.length !== this.dim) throw new QueryRefused(`A query has ${this.dim} codes, got ${values.length}.`);
    return Int32Array.from(values, (value) => {
      const code = Number(value);
      if (!Number.isInteger(code) || code < -2147483648 || code > 2147483647)
        throw new QueryRefused("A code must be an integer of 32 bits.");
      return code;
    });
  }

  hasher(size) {
    return new CodeHasher({ dim: this.dim, power: this.parameters.power, ...size });
  }
}

class Jaccard extends Kernel {
  prepare(point) {
    if (!Array.isArray(point) && !ArrayBuffer.isView(point))
      throw new QueryRefused("A query is a list of the integers in a set.");
    return Array.from(point, (value) => {
      if (typeof value !== "bigint" && !Number.isSafeInteger(Number(value)))
        throw new QueryRefused("The members of a set must be integers.");
      return BigInt.asIntN(64, BigInt(value));
    });
  }

  hasher(size) {
    return new MinHasher({ power: this.parameters.power, ...size });
  }
}

class InnerProduct extends Kernel {
  constructor(name, parameters) {
    super(name, parameters);
    this.signed = name === "dot-product";
    this.degree = name === "dot-product" ? 1 : 2;
  }
}

/** The product of kernels, each of some of the columns. */
class Product extends Kernel {
  constructor(dim, factors) {
    super("product", { dim });
    this.factors = factors;
    this.ofColumns = factors.every(({ kernel }) => kernel.ofColumns);
    if (!this.ofColumns) return;
    const taken = factors.flatMap(({ columns }) => columns).sort((a, b) => a - b);
    this.divided = taken.length === dim && taken.every((column, i) => column === i);
    this.smooth = factors.every(({ kernel }) => kernel.smooth);
    this.bandwidth = Math.min(...factors.map(({ kernel }) => kernel.bandwidth));
    this.width = Math.min(...factors.map(({ kernel }) => kernel.width));
    this.columnWidths = new Array(dim).fill(this.width);
    for (const { kernel, columns } of factors)
      columns.forEach((column, i) => (this.columnWidths[column] = kernel.columnWidths[i]));
    this.separable = dim === 1;
  }

  words() {
    return this.factors.map(({ kernel, columns }) => `${kernel.words()} of columns ${columns.join(", ")}`).join(" × ");
  }

  prepare(point, box = null) {
    if (this.ofColumns) return prepareNumbers(point, this.dim, box);
    require(box === null);
    if (!Array.isArray(point) || point.length !== this.dim)
      throw new QueryRefused(`A query has ${this.dim} columns, got ${point?.length ?? "another form"}.`);
    return this.factors.map(({ kernel, columns }) =>
      kernel.prepare(kernel.dim === null ? point[columns[0]] : columns.map((column) => point[column])),
    );
  }

  split(row) {
    return this.ofColumns ? this.factors.map(({ columns }) => columns.map((column) => row[column])) : row;
  }

  independentRows() {
    return this.factors.map(({ kernel }) => kernel.independentRows()).reduce(leastMultiple, 1);
  }

  similarity(x, q) {
    const [xs, qs] = [this.split(x), this.split(q)];
    return this.factors.reduce((product, { kernel }, i) => product * kernel.similarity(xs[i], qs[i]), 1.0);
  }

  integral() {
    return this.divided ? this.factors.reduce((product, { kernel }) => product * kernel.integral(), 1.0) : Infinity;
  }

  hasher({ rows, width, seed }) {
    const hashers = this.factors.map(({ kernel }, number) => {
      const distinct = kernel.distinct();
      const own = distinct === null ? FACTOR_WIDTH : Math.min(FACTOR_WIDTH, Math.max(2, distinct));
      return kernel.hasher({ rows, width: own, seed: derivedSeed("product", seed, number) });
    });
    const joined = new ConcatenatedHasher(hashers, { rows, width, seed });
    if (!this.ofColumns) return joined;
    return { rows, width, cells: (row, out) => joined.cells(this.split(row), out) };
  }
}

function leastMultiple(a, b) {
  let [x, y] = [a, b];
  while (y) [x, y] = [y, x % y];
  return (a / x) * b;
}

/** Σ weight·kernel. */
class Combination extends Kernel {
  constructor(components) {
    super("combination", { dim: components[0].kernel.dim });
    this.components = components;
    const kernels = components.map(({ kernel }) => kernel);
    this.signed = components.some(({ weight, kernel }) => weight < 0.0 || kernel.signed);
    this.ofColumns = kernels.every((kernel) => kernel.ofColumns);
    if (!this.ofColumns) return;
    this.smooth = kernels.every((kernel) => kernel.smooth);
    this.bandwidth = Math.min(...kernels.map((kernel) => kernel.bandwidth));
    this.width = Math.min(...kernels.map((kernel) => kernel.width));
    this.columnWidths = kernels[0].columnWidths.map((_, i) => Math.min(...kernels.map((k) => k.columnWidths[i])));
    this.separable = this.dim === 1;
  }

  words() {
    return this.components.map(({ weight, kernel }) => `${weight} · ${kernel.words()}`).join(" + ");
  }

  prepare(point, box = null) {
    if (this.ofColumns) return prepareNumbers(point, this.dim, box);
    require(box === null);
    return this.components.map(({ kernel }) => kernel.prepare(point));
  }

  split(row) {
    return this.ofColumns ? this.components.map(() => row) : row;
  }

  similarity(x, q) {
    return this.components.reduce((sum, { weight, kernel }) => sum + weight * kernel.similarity(x, q), 0.0);
  }

  integral() {
    return this.components.reduce((sum, { weight, kernel }) => sum + weight * kernel.integral(), 0.0);
  }
}

/** A kernel of columns that are divided by public units, one per column. */
class Scaled extends Kernel {
  constructor(kernel, units) {
    super("scaled", { dim: kernel.dim });
    this.kernel = kernel;
    this.units = units;
    this.signed = kernel.signed;
    this.ofColumns = true;
    this.smooth = kernel.smooth;
    this.bandwidth = kernel.bandwidth * Math.min(...units);
    this.columnWidths = kernel.columnWidths.map((width, i) => width * units[i]);
    this.width = Math.min(...this.columnWidths);
    this.separable = false;
    this.divided = kernel.divided;
    if (isHashable(kernel)) this.hasher = (size) => this._hasher(size);
  }

  words() {
    return `${this.kernel.words()} of columns in units of ${this.units.join(", ")}`;
  }

  prepare(point, box = null) {
    return prepareNumbers(point, this.dim, box);
  }

  distinct() {
    return this.kernel.distinct();
  }

  independentRows() {
    return this.kernel.independentRows();
  }

  similarity(x, q) {
    const inside = (row) => Float64Array.from(row, (value, i) => value / this.units[i]);
    return this.kernel.similarity(inside(x), inside(q));
  }

  integral() {
    return this.units.reduce((product, unit) => product * unit, this.kernel.integral());
  }

  _hasher(size) {
    const inner = this.kernel.hasher(size);
    const units = Float32Array.from(this.units);
    const row = new Float32Array(this.dim);
    return {
      rows: inner.rows,
      width: inner.width,
      cells(query, out) {
        for (let i = 0; i < row.length; i += 1) row[i] = Math.min(Math.max(Math.fround(query[i] / units[i]), -FLOAT), FLOAT);
        inner.cells(row, out);
      },
    };
  }
}

function scaledFrom(value) {
  fields(value, ["kernel", "units"]);
  const kernel = kernelFrom(value.kernel);
  require(kernel.ofColumns && !(kernel instanceof Scaled));
  const units = list(value.units).map((unit) => real(unit, 1e-30, 1e30));
  require(units.length === kernel.dim);
  // Where all columns have one unit it is a kernel with another bandwidth, and has its name.
  require(new Set(units).size > 1 || kernel.parameters.bandwidth === undefined);
  return new Scaled(kernel, units);
}

const RULES = {
  dim: (value) => whole(value, 1, MOST_DIM),
  bandwidth: (value) => real(value, 1e-30, 1e30),
  power: (value) => whole(value, 1, MOST_POWER),
  bits: (value) => whole(value, 1, 1024),
  radius: (value) => real(value, 1e-15, 1e15),
  query_radius: (value) => real(value, 1e-15, 1e15),
  degree: (value) => whole(value, 2, 2),
  projection: (value) => {
    require(value === "dense" || value === "structured");
    return value;
  },
  smoothness: (value) => {
    require([0.5, 1.5, 2.5].includes(real(value, 0, 3)));
    return value.value;
  },
};

const KERNELS = {
  gaussian: [Gaussian, ["dim", "bandwidth", "power"]],
  laplacian: [Laplacian, ["dim", "bandwidth", "power"]],
  matern: [Matern, ["dim", "bandwidth", "smoothness"]],
  euclidean: [Euclidean, ["dim", "bandwidth", "power", "projection"]],
  manhattan: [Manhattan, ["dim", "bandwidth", "power"]],
  angular: [Angular, ["dim", "bits", "power", "projection"]],
  "asymmetric-angular": [AsymmetricAngular, ["dim", "bits", "power", "radius"], ["query_radius"]],
  hamming: [Hamming, ["dim", "power"]],
  jaccard: [Jaccard, ["power"]],
  "dot-product": [InnerProduct, ["dim", "radius"]],
  polynomial: [InnerProduct, ["dim", "radius", "degree"]],
};

/** The kernel that a header describes. */
export function kernelFrom(value) {
  fields(value, ["name", "parameters"]);
  const name = text(value.name);
  if (name === "product") return productFrom(value.parameters);
  if (name === "combination") return combinationFrom(value.parameters);
  if (name === "scaled") return scaledFrom(value.parameters);
  if (!Object.hasOwn(KERNELS, name)) throw unsupported(`This page does not read the kernel ${JSON.stringify(name)}`);
  const [kind, names, optional = []] = KERNELS[name];
  fields(value.parameters, names, optional);
  const parameters = {};
  for (const each of [...names, ...optional.filter((key) => key in value.parameters)]) parameters[each] = RULES[each](value.parameters[each]);
  const kernel = new kind(name, parameters);
  if (kernel.structured) require((kernel.bits ?? kernel.power) <= paddedSize(kernel.dim));
  return kernel;
}

function productFrom(value) {
  fields(value, ["dim", "factors"]);
  const dim = whole(value.dim, 1, MOST_DIM);
  const factors = list(value.factors, MOST_FACTORS).map((each) => {
    fields(each, ["kernel", "columns"]);
    const kernel = kernelFrom(each.kernel);
    require(!(kernel instanceof Product) && !(kernel instanceof Combination) && !(kernel instanceof Scaled));
    const columns = list(each.columns).map((column) => whole(column, 0, dim - 1));
    require(columns.length === (kernel.dim ?? 1) && new Set(columns).size === columns.length);
    return { kernel, columns };
  });
  require(factors.length > 0);
  const alone = factors[0];
  // A product of one kernel of all columns is that kernel, and has its name.
  require(factors.length > 1 || alone.kernel.dim === null || alone.columns.some((column, i) => column !== i) || alone.columns.length !== dim);
  return new Product(dim, factors);
}

function combinationFrom(value) {
  fields(value, ["components"]);
  const components = list(value.components, MOST_COMPONENTS).map((each) => {
    fields(each, ["weight", "kernel"]);
    require(each.weight instanceof Real);
    const weight = real(each.weight, -1e12, 1e12);
    const kernel = kernelFrom(each.kernel);
    require(weight !== 0.0 && !(kernel instanceof Combination));
    return { weight, kernel };
  });
  require(components.length > 0 && (components.length > 1 || components[0].weight !== 1.0));
  require(components.every(({ kernel }) => kernel.dim === components[0].kernel.dim));
  return new Combination(components);
}

/** Whether hash rows can count a kernel. */
export function isHashable(kernel) {
  if (kernel instanceof Product) return kernel.factors.every((factor) => isHashable(factor.kernel));
  return typeof kernel.hasher === "function";
}

/** Random numbers behind one hash function, for limits. */
export function numbersPerRow(kernel) {
  if (kernel instanceof Scaled) return numbersPerRow(kernel.kernel);
  if (kernel instanceof Product)
    return kernel.factors.reduce((sum, factor) => sum + numbersPerRow(factor.kernel) + 1, 0);
  const { power = 1, bits = 1 } = kernel.parameters;
  return kernel.name === "jaccard" || kernel.name === "hamming" ? power : kernel.dim * power * bits;
}

/** Whether a kernel is made of others. */
export function isProduct(kernel) {
  return kernel instanceof Product;
}

export function isScaled(kernel) {
  return kernel instanceof Scaled;
}

export function isCombination(kernel) {
  return kernel instanceof Combination;
}

/** The plain kernels that a kernel is made of. */
export function plainKernels(kernel) {
  if (kernel instanceof Combination) return kernel.components.flatMap((each) => plainKernels(each.kernel));
  if (kernel instanceof Scaled) return plainKernels(kernel.kernel);
  return kernel instanceof Product ? kernel.factors.map((each) => each.kernel) : [kernel];
}
