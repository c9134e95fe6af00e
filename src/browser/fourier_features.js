// Released random Fourier features: each row estimates the kernel sum by a cosine and a sine of a random phase.
import { squaredDiameter } from "./feature_diameter.js";
import { evenRound } from "./box_series.js";
import { affordable, bigWhole, box, columnNames, fields, flag, require, whole } from "./header.js";
import { isCombination, isProduct, isScaled, kernelFrom } from "./kernels.js";
import {
  cauchyQuantile, chiSquare, derivedSeed, MOST_COORDINATES, normalDirections, normalQuantile, rowWords, sobolPoints, uniforms,
} from "./public_random.js"; // prettier-ignore
import { unsupported } from "./refusal.js";
import { fused } from "./single_precision.js";
import { wholeRoot } from "./special_functions.js";
import { cosine, phaseFraction, sine } from "./waves.js";

const AMPLITUDE = 1023;
const LENGTH = 1024;
const MOST_FEATURES = 2 ** 24;
const MOST_GROUPS = 2 ** 10;
const MOST_AXES = 64;
const MOST_NUMBERS = 2 ** 24;
const FEWEST_BLOCKS = 8;
const MOST_BLOCKS = 512;
const SOBOL_BLOCKS = 16;
const ONE_TURN = 6.283185307179586;
const LARGEST = 3.4028234663852886e38;
const HUGE = 1n << 4096n;

export function featuresBasis(parameters) {
  fields(parameters, [
    "length", "kernel", "features", "seed", "orthogonal", "bounds", "columns", "groups", "structured",
  ], ["sobol", "axes"]); // prettier-ignore
  // Files without such frequencies, or without rows of single columns, do not have these fields.
  const sobol = "sobol" in parameters;
  require(!sobol || flag(parameters.sobol));
  require(parameters.length === LENGTH);
  const kernel = kernelFrom(parameters.kernel);
  require(isSpectral(kernel));
  const features = whole(parameters.features, 1, MOST_FEATURES);
  const groups = whole(parameters.groups, 1, MOST_GROUPS);
  const orthogonal = flag(parameters.orthogonal);
  if (flag(parameters.structured)) throw unsupported("This page does not read structured Fourier features");
  require(!orthogonal || (turnable(kernel) && kernel.dim > 1 && !sobol));
  require(!sobol || coordinates(kernel) <= MOST_COORDINATES);
  affordable(features * kernel.dim * 2 <= MOST_NUMBERS, "The number of random numbers behind this function");
  const block = orthogonal ? kernel.dim : 1;
  require(groups === 1 || features % (groups * block) === 0);
  const bounds = parameters.bounds === null ? null : box(parameters.bounds);
  require(bounds === null || bounds.dim === kernel.dim);
  const along = "axes" in parameters ? whole(parameters.axes, 1, MOST_AXES) * kernel.dim : 0;
  require(along === 0 || bounds !== null);
  let drawn;
  const basis = {
    frequencies: () =>
      (drawn ??= sobol ? evenFrequencies(kernel, features, basis.seed, groups) : frequencies(kernel, features, basis.seed, orthogonal)),
    name: "fourier-features", kernel, shape: [features + along, 2], features, along, box: bounds, orthogonal, sobol, groups, block,
    columns: columnNames(parameters.columns, kernel.dim), seed: bigWhole(parameters.seed, -HUGE, HUGE),
  }; // prettier-ignore
  return { ...basis, moved: movedBy(basis) };
}

/** Of every row of a record's group, a vector of length 1024, or two; in a box all rows together may move less. */
function movedBy(basis) {
  const { along, box: bounds, features, groups } = basis;
  const rows = BigInt(features / groups + along);
  // ⌊√2·1024⌋ is 1448, and ⌊√8·1024⌋ is 2896.
  const added = { l1: rows * 1448n, l2Squared: rows * 1048576n };
  let square;
  // Some tenths of a second, for claims that need it.
  const diameter = () => (square ??= squaredDiameter(withColumns(basis), halfWidths(bounds)));
  return (many, person) => {
    if (many === 1n) return added;
    const apart = { l1: 2n * added.l1, l2Squared: 4n * added.l2Squared };
    if (bounds === null || groups > 1) return apart;
    // A person may have fewer records than the one in whose place it is, and the rest comes or goes.
    const least = person ? added : { l1: 0n, l2Squared: 0n };
    return {
      get l1() {
        return larger(least.l1, smaller(apart.l1, wholeRoot(2n * rows * diameter())));
      },
      get l2Squared() {
        return larger(least.l2Squared, diameter());
      },
    };
  };
}

/** The frequencies of all rows; those of single columns have half periods in the range of each. */
function withColumns(basis) {
  const { along, box: bounds, features, kernel } = basis;
  const found = new Float32Array((features + along) * kernel.dim);
  found.set(basis.frequencies());
  const axes = along / kernel.dim;
  halfWidths(bounds).forEach((half, column) => {
    for (let k = 1; k <= axes; k += 1)
      found[(features + column * axes + k - 1) * kernel.dim + column] = k / (4.0 * Math.max(half, 1e-30));
  });
  return found;
}

function smaller(a, b) {
  return a < b ? a : b;
}

function larger(a, b) {
  return a > b ? a : b;
}

/** The half widths of a box: what no clipped and centred record exceeds, in single precision. */
function halfWidths({ low, high, centre }) {
  const from = (end, column) => Math.abs(Math.fround(end - centre[column]));
  return low.map((end, column) => Math.max(from(end, column), from(high[column], column)));
}

function turnable(kernel) {
  return kernel.name === "gaussian" || kernel.name === "matern";
}

function isSpectral(kernel) {
  if (isScaled(kernel)) return isSpectral(kernel.kernel);
  if (isProduct(kernel)) return kernel.factors.every((each) => isSpectral(each.kernel));
  if (isCombination(kernel)) {
    const weights = kernel.components.map(({ weight }) => weight);
    const sum = weights.reduce((a, b) => a + b, 0.0);
    return Math.min(...weights) > 0 && Math.abs(sum - 1.0) < 1e-6 && kernel.components.every((c) => isSpectral(c.kernel));
  }
  return ["gaussian", "laplacian", "matern"].includes(kernel.name);
}

/** Draws from a kernel's spectral measure in turns, in single precision: [row][column]. */
function frequencies(kernel, rows, seed, orthogonal) {
  const { dim } = kernel;
  if (isScaled(kernel)) {
    const own = frequencies(kernel.kernel, rows, seed, false);
    return own.map((value, i) => clipped(value / kernel.units[i % dim]));
  }
  if (isProduct(kernel)) {
    const total = new Float64Array(rows * dim);
    kernel.factors.forEach((factor, number) => {
      const own = frequencies(factor.kernel, rows, derivedSeed("product", seed, number), false);
      const wide = factor.columns.length;
      for (let row = 0; row < rows; row += 1)
        factor.columns.forEach((column, i) => (total[row * dim + column] += own[row * wide + i]));
    });
    return Float32Array.from(total, clipped);
  }
  if (isCombination(kernel)) return mixedFrequencies(kernel, rows, seed);
  if (kernel.name === "laplacian") {
    const pairs = normalDirections("laplacian/frequencies", seed, rows, 2 * dim, false);
    const scale = kernel.power / kernel.bandwidth / ONE_TURN;
    return Float32Array.from({ length: rows * dim }, (_, i) => {
      const at = Math.floor(i / dim) * 2 * dim + (i % dim);
      return clipped((pairs[at] / pairs[at + dim]) * scale);
    });
  }
  const directions = normalDirections(`${kernel.name}/frequencies`, seed, rows, dim, orthogonal);
  if (kernel.name === "gaussian") {
    const scale = Math.sqrt(kernel.power) / kernel.bandwidth / ONE_TURN;
    return Float32Array.from(directions, (value) => clipped(value * scale));
  }
  const degrees = Math.round(2.0 * kernel.parameters.smoothness);
  const spreads = normalDirections("matern/spreads", seed, rows, degrees, false);
  return Float32Array.from(directions, (value, i) => {
    const row = Math.floor(i / dim);
    let squares = 0.0;
    for (let c = 0; c < degrees; c += 1) squares += spreads[row * degrees + c] * spreads[row * degrees + c];
    return clipped((value / Math.sqrt(squares / degrees)) * (1.0 / kernel.bandwidth / ONE_TURN));
  });
}

function mixedFrequencies(kernel, rows, seed) {
  const drawn = uniforms(rowWords("combination/component", seed, rows, 1));
  const edges = inner(kernel);
  const found = new Float32Array(rows * kernel.dim);
  kernel.components.forEach(({ kernel: own }, number) => {
    const some = frequencies(own, rows, derivedSeed("combination", seed, number), false);
    for (let row = 0; row < rows; row += 1) {
      const chosen = edges.filter((edge) => edge <= drawn[row]).length;
      if (chosen === number)
        found.set(some.subarray(row * kernel.dim, (row + 1) * kernel.dim), row * kernel.dim);
    }
  });
  return found;
}

/** Frequencies at the points of scrambled Sobol sequences, one for each group. */
function evenFrequencies(kernel, rows, seed, groups) {
  const { dim } = kernel;
  const wide = coordinates(kernel);
  const found = new Float32Array(rows * dim);
  for (let group = 0; group < groups; group += 1) {
    const points = sobolPoints(`fourier-features/sobol/${group}`, seed, rows / groups, wide);
    const at = frequencyMap(kernel);
    for (let row = 0; row < rows / groups; row += 1)
      found.set(at(points.subarray(row * wide, (row + 1) * wide)), (row * groups + group) * dim);
  }
  return found;
}

/** How many uniform numbers a frequency takes. */
function coordinates(kernel) {
  if (isScaled(kernel)) return coordinates(kernel.kernel);
  if (isProduct(kernel)) return kernel.factors.reduce((sum, each) => sum + coordinates(each.kernel), 0);
  if (isCombination(kernel)) return 1 + Math.max(...kernel.components.map((each) => coordinates(each.kernel)));
  return kernel.dim + (kernel.name === "matern" ? Math.ceil(kernel.parameters.smoothness) : 0);
}

/** From a point of the unit cube to a frequency of the kernel's spectral measure, in turns and in single precision. */
function frequencyMap(kernel) {
  const { dim } = kernel;
  if (isScaled(kernel)) {
    const own = frequencyMap(kernel.kernel);
    return (point) => own(point).map((value, i) => clipped(value / kernel.units[i]));
  }
  if (isProduct(kernel)) {
    let first = 0;
    const parts = kernel.factors.map((factor) => {
      const from = first;
      first += coordinates(factor.kernel);
      return [from, first, factor.columns, frequencyMap(factor.kernel)];
    });
    return (point) => {
      const total = new Float64Array(dim);
      for (const [from, to, columns, own] of parts)
        own(point.subarray(from, to)).forEach((value, i) => (total[columns[i]] += value));
      return Float32Array.from(total, clipped);
    };
  }
  if (isCombination(kernel)) {
    const edges = inner(kernel);
    const parts = kernel.components.map((each) => [coordinates(each.kernel), frequencyMap(each.kernel)]);
    return (point) => {
      const [wide, own] = parts[edges.filter((edge) => edge <= point[0]).length];
      return own(point.subarray(1, 1 + wide));
    };
  }
  const { bandwidth, power } = kernel;
  if (kernel.name === "laplacian")
    return (point) => Float32Array.from(point, (p) => clipped(cauchyQuantile(p) * (power / bandwidth / ONE_TURN)));
  if (kernel.name === "gaussian")
    return (point) => Float32Array.from(point, (p) => clipped(normalQuantile(p) * (Math.sqrt(power) / bandwidth / ONE_TURN)));
  const further = coordinates(kernel) - dim;
  const degrees = Math.round(2.0 * kernel.parameters.smoothness);
  return (point) => {
    const normal = normalQuantile(point[0]);
    const spread = Math.sqrt((normal * normal + chiSquare(point.subarray(1, further))) / degrees);
    return Float32Array.from(point.subarray(further), (p) =>
      clipped((normalQuantile(p) / spread) * (1.0 / bandwidth / ONE_TURN)),
    );
  };
}

/** Where the weights of a combination, added up, divide the unit interval. */
function inner(kernel) {
  const edges = [];
  kernel.components.reduce((sum, { weight }) => (edges.push(sum + weight), sum + weight), 0.0);
  return edges.slice(0, -1);
}

function clipped(value) {
  return Math.min(Math.max(value, -LARGEST), LARGEST);
}

export class FeatureReading {
  constructor(basis) {
    this.basis = basis;
    this.kernel = basis.kernel;
    const rows = basis.features;
    this.frequencies = basis.frequencies();
    this.block = basis.block * FEWEST_BLOCKS <= rows ? basis.block : 1;
    if (basis.sobol)
      for (this.block = basis.groups; 2 * this.block * SOBOL_BLOCKS <= rows; ) this.block *= 2;
    // More blocks take longer than the answers, and errors are known to 3 % from these.
    this.used = Math.min(rows, MOST_BLOCKS * this.block);
    this.blocks = Math.ceil(this.used / this.block);
  }

  lattice(row) {
    return row;
  }

  evaluate(table, query) {
    return [this.spread(table, query)[0]];
  }

  /** The mean over rows of what each says, and its variance from the spread of the first blocks. */
  spread(table, query) {
    const rows = this.basis.features;
    const fround = Math.fround;
    let [sum, squares, own, first] = [0.0, 0.0, 0.0, 0.0];
    for (let row = 0; row < rows; row += 1) {
      const fraction = this._fraction(row, query);
      own += fused(fround(table[2 * row]), cosine(fraction), fround(fround(table[2 * row + 1]) * sine(fraction)));
      if ((row + 1) % this.block === 0) {
        sum += own;
        if (row < this.used) {
          first += own;
          squares += (own * own) / this.block;
        }
        own = 0.0;
      }
    }
    const rest = rows % this.block;
    sum += own;
    if (rest && this.used === rows) {
      first += own;
      squares += (own * own) / rest;
    }
    const scale = this.basis.groups / AMPLITUDE;
    const variance =
      this.blocks < 2 ? NaN : (scale * scale * Math.max(0.0, squares - (first * first) / this.used)) / ((this.blocks - 1) * rows);
    return [(scale * sum) / rows, variance];
  }

  /** The phase of a point on a row, beyond whole turns. */
  _fraction(row, point) {
    const dim = point.length;
    let t = 0.0;
    for (let k = 0, at = row * dim; k < dim; k += 1, at += 1) t = fused(this.frequencies[at], point[k], t);
    return phaseFraction(t);
  }

  /** How many rows of a table are in each fold; none where there are fewer blocks than folds. */
  folds(number) {
    const { block, features } = this.basis;
    const sizes = new Array(number).fill(0);
    if (Math.ceil(features / block) >= number)
      for (let row = 0; row < features; row += 1) sizes[Math.floor(row / block) % number] += 1;
    return sizes;
  }

  /** What weighted points leave of a table, whose rows have the weights of their fold. */
  unexplained(table, points, weights) {
    const { block, groups, features } = this.basis;
    const left = Float64Array.from(table, Number);
    if (this.folds(weights.length)[0] === 0) return left;
    for (let row = 0; row < features; row += 1) {
      const fit = weights[Math.floor(row / block) % weights.length];
      let [cosines, sines] = [0.0, 0.0];
      points.forEach((point, i) => {
        const fraction = this._fraction(row, point);
        cosines += fit[i] * cosine(fraction);
        sines += fit[i] * sine(fraction);
      });
      left[2 * row] = evenRound(left[2 * row] - (AMPLITUDE / groups) * cosines);
      left[2 * row + 1] = evenRound(left[2 * row + 1] - (AMPLITUDE / groups) * sines);
    }
    return left;
  }

  noiseGain() {
    const { features, groups } = this.basis;
    return [groups ** 2 / (features * AMPLITUDE ** 2)];
  }

  methodVariance(table) {
    const rows = this.basis.features;
    let lengths = 0.0;
    for (const value of table.subarray(0, 2 * rows)) lengths += value * value;
    return [(lengths * (this.basis.groups / AMPLITUDE) ** 2) / rows / rows];
  }

  biasBound() {
    return [0.0];
  }

  total() {
    return null;
  }
}
