// Released coefficients of records in a box: random cosines, Fourier series, and trigonometric polynomials.
import { affordable, bigWhole, box, columnNames, fields, real, require, whole } from "./header.js";
import { kernelFrom } from "./kernels.js";
import { normalQuantile, rowWords, uniform } from "./public_random.js";

const MOST_SCALE = 2 ** 20;
const MOST_COEFFICIENTS = 2 ** 18;
const MOST_FEATURES = 2 ** 20;
const MOST_PLACES = 2 ** 11;
const AROUND = 40;
const LEAST_SHARED = 0.1;
const NEGLIGIBLE = 1e-4;
const LEAST_WEIGHT = 64;
const MOST_NODES = 2 ** 14;
const HUGE = 1n << 4096n;

/** What the bases on a declared box have in common. */
function boxed(parameters, names) {
  fields(parameters, ["bounds", "columns", "scale", ...names]);
  const bounds = box(parameters.bounds);
  const scale = whole(parameters.scale, 2, MOST_SCALE);
  require((scale & (scale - 1)) === 0);
  const half = bounds.low.map((low, i) => {
    const corners = [low - bounds.centre[i], bounds.high[i] - bounds.centre[i]];
    return Math.max(...corners.map((each) => Math.abs(Math.fround(each))));
  });
  return { box: bounds, columns: columnNames(parameters.columns, bounds.dim), scale, half, dim: bounds.dim };
}

function gaussianOf(parameters, dim) {
  const kernel = kernelFrom(parameters.kernel);
  require(kernel.gaussianWidth !== undefined && kernel.dim === dim);
  return kernel;
}

/** The least power of a number of terms that a tensor has; refuses one that is too large. */
function tensorSize(terms, dim) {
  affordable(dim * Math.log2(Math.max(terms, 1)) <= Math.log2(MOST_COEFFICIENTS), "A tensor of that many coefficients");
  return terms ** dim;
}

// --- random cosines -------------------------------------------------------------------------------------------------

export function cosinesBasis(parameters) {
  const common = boxed(parameters, ["kernel", "features", "seed"]);
  const features = whole(parameters.features, 1, MOST_FEATURES);
  affordable(features * (common.dim + 1) <= 2 ** 24, "The number of random numbers behind this function");
  const kernel = gaussianOf(parameters, common.dim);
  const most = BigInt(common.scale);
  const moved = (many) => ({ l1: most * many * BigInt(features), l2Squared: (most * many) ** 2n * BigInt(features) });
  return { ...common, name: "cosine-features", moved, kernel, shape: [1, features], seed: bigWhole(parameters.seed, -HUGE, HUGE) };
}

export class CosineReading {
  constructor(basis) {
    this.basis = basis;
    this.kernel = basis.kernel;
    [, this.blocks] = basis.shape;
    const words = rowWords("cosine-features", basis.seed, this.blocks, basis.dim + 1);
    const width = basis.kernel.gaussianWidth * (2.0 * Math.PI);
    const per = basis.dim + 1;
    this.phases = new Float64Array(this.blocks);
    this.frequencies = new Float64Array(this.blocks * basis.dim);
    for (let i = 0; i < this.blocks; i += 1) {
      const at = i * per;
      this.phases[i] = uniform(words.low[at + basis.dim], words.high[at + basis.dim]);
      for (let c = 0; c < basis.dim; c += 1)
        this.frequencies[i * basis.dim + c] = normalQuantile(uniform(words.low[at + c], words.high[at + c])) / width;
    }
  }

  lattice(row) {
    const { dim } = this.basis;
    return this.phases.map((phase, i) => {
      let turns = phase;
      for (let c = 0; c < dim; c += 1) turns += row[c] * this.frequencies[i * dim + c];
      return cosineAndSine(turns)[0];
    });
  }

  evaluate(table, cosines) {
    return [this.spread(table, cosines)[0]];
  }

  spread(table, cosines) {
    const number = this.blocks;
    const factor = 2.0 / this.basis.scale;
    const products = cosines.map((cosine, i) => cosine * (table[i] * factor));
    const mean = products.reduce((a, b) => a + b, 0.0) / number;
    const squares = products.reduce((sum, each) => sum + (each - mean) ** 2, 0.0);
    return [mean, number > 1 ? squares / (number - 1) / number : NaN];
  }

  noiseGain(cosines) {
    const squares = cosines.reduce((sum, each) => sum + each * each, 0.0);
    return [squares * (2.0 / this.basis.scale / this.blocks) ** 2];
  }

  methodVariance(table) {
    let squares = 0.0;
    for (const value of table) squares += (value * (2.0 / this.basis.scale)) ** 2;
    return [squares / this.blocks / this.blocks];
  }

  biasBound() {
    return [0.0];
  }

  total() {
    return null;
  }
}

// --- series on the box ------------------------------------------------------------------------------------------------

/** A reading of coefficients in a box, with the error of the kernel that they stand for. */
class BoxReading {
  constructor(basis, kernel) {
    this.basis = basis;
    this.kernel = kernel;
    this.blocks = null;
  }

  lattice(row) {
    return Float64Array.from(row);
  }

  biasBound() {
    return [0.0];
  }

  totalCovariance() {
    return [0.0];
  }

  /** The squared error of the approximation if values of records repeat, as the released function finds them. */
  methodVariance(table, query) {
    const heaps = this._heaps(table);
    const read = this._readLattice(query);
    const { places } = this._lattice();
    let sum = 0.0;
    places.forEach((place, i) => (sum += (read[i] - this.kernel.similarity(place, query)) ** 2 * heaps[i]));
    return [sum];
  }

  /** The squared number of records at each place of the lattice. */
  _heaps(table) {
    if (this.heapsOf !== table) {
      const { places, shared } = this._lattice();
      this.heaps = places.map((place) => {
        const [found] = this.evaluate(table, Float64Array.from(place, Math.fround));
        return Math.max(found, 0.0) ** 2 / shared;
      });
      this.heapsOf = table;
    }
    return this.heaps;
  }

  /** Places all over the box, and the sum of k² over such a lattice without end. */
  _lattice() {
    if (this.places !== undefined) return this.places;
    const { half } = this.basis;
    let steps = half.map((each) => Math.max(1.0, (4.0 * each) / this.kernel.width));
    const all = steps.reduce((a, b) => a * b, 1.0);
    steps = steps.map((each) => each * Math.min(1.0, (MOST_PLACES / all) ** (1.0 / half.length)));
    const numbers = steps.map((each) => Math.max(1, evenRound(each)));
    let places = [[]];
    numbers.forEach((n, c) => {
      const axis = Array.from({ length: n }, (_, i) => half[c] * ((i + 0.5) * (2.0 / n) - 1.0));
      places = places.flatMap((place) => axis.map((value) => [...place, value]));
    });
    let shared = 1.0;
    const origin = new Float64Array(half.length);
    numbers.forEach((n, c) => {
      const spacing = (2.0 * half[c]) / n;
      const sums = [0.0, 0.5].map((shift) => {
        let sum = 0.0;
        for (let i = -AROUND; i <= AROUND; i += 1) {
          const row = new Float64Array(half.length);
          row[c] = (i + shift) * spacing;
          sum += this.kernel.similarity(row, origin) ** 2;
        }
        return sum;
      });
      shared *= Math.max(Math.min(...sums), LEAST_SHARED);
    });
    this.places = { places: places.map((place) => Float64Array.from(place)), shared };
    return this.places;
  }
}

export function seriesBasis(parameters) {
  const common = boxed(parameters, ["kernel", "frequencies", "padding", "taper"]);
  const highest = whole(parameters.frequencies, 1, 2 ** 10);
  const padding = real(parameters.padding, 0.0, Number.MAX_VALUE);
  const taper = real(parameters.taper, 0.0, 1.0);
  const kernel = gaussianOf(parameters, common.dim);
  tensorSize(2 * highest + 1, common.dim);
  const period = common.half.map((half) => 2.0 * half + padding * kernel.gaussianWidth);
  const series = pairsOf(common, highest, period, taper, kernel.gaussianWidth);
  return { ...common, name: "fourier-series", moved: movedBy(series), kernel, period, series, highest, shape: [1, 2 * series.length - 1] };
}

/** A pair moves by at most W, and by 2W under replace, where the constant stays unless a person has fewer records. */
function movedBy(series) {
  const [first, ...weights] = series.map(({ weight }) => weight);
  const sum = (of) => weights.reduce((total, weight) => total + of(weight), 0);
  const added = { l1: first + sum((w) => Math.floor(Math.sqrt(2 * w * w))), l2: first * first + sum((w) => w * w) };
  const exchanged = { l1: sum((w) => Math.floor(Math.sqrt(8 * w * w))), l2: sum((w) => 4 * w * w) };
  return (many) => {
    const other = many === 2n ? exchanged : added;
    return { l1: BigInt(Math.max(added.l1, other.l1)), l2Squared: BigInt(Math.max(added.l2, other.l2)) };
  };
}

/** Frequencies of the pairs, their integer weights, and the kernel's coefficients; the constant comes first. */
function pairsOf({ dim, scale }, highest, period, taper, gaussianWidth) {
  const widths = period.map((each) => gaussianWidth / each);
  const added = (k, c) => (k === 0 ? 0.0 : 2.0 * Math.PI * Math.PI * (k * widths[c]) * (k * widths[c]));
  // Weights of at least LEAST_WEIGHT, or half of the scale: powers of two, as the scale is one.
  const most = taper > 0.0 ? Math.max(Math.log2(scale / LEAST_WEIGHT), 1) * Math.LN2 : Infinity;
  let found = [{ m: [], decay: 0.0 }];
  for (let c = 0; c < dim; c += 1)
    found = found.flatMap(({ m, decay }) => {
      let reach = 0;
      while (reach < highest && (taper === 0.0 || (decay + added(reach + 1, c)) * taper <= most)) reach += 1;
      // Of two opposite frequencies, the one whose first order that is not 0 is positive.
      const least = m.every((k) => k === 0) ? 0 : -reach;
      return Array.from({ length: reach - least + 1 }, (_, i) => ({ m: [...m, least + i], decay: decay + added(least + i, c) }));
    });
  const size = ({ m }) => m.reduce((sum, k) => sum + k * k, 0);
  found.sort((a, b) => size(a) - size(b) || compare(a.m, b.m));
  const constant = widths.reduce((product, width) => product * (width * Math.sqrt(2.0 * Math.PI)), 1.0);
  return found.map(({ m, decay }, i) => {
    let weight = scale;
    if (taper > 0.0) weight = i === 0 ? evenRound(scale / Math.sqrt(2.0)) : evenRound(scale * Math.exp(-decay * taper));
    return { m, weight, kernel: constant * Math.exp(-decay) };
  });
}

function compare(a, b) {
  const at = a.findIndex((k, i) => k !== b[i]);
  return at < 0 ? 0 : a[at] - b[at];
}

export class SeriesReading extends BoxReading {
  _inside(query) {
    return query.every((value, c) => Math.abs(value) <= 0.5 * this.basis.period[c]);
  }

  /** cos and sin of 2π·m·x for each pair, as products of the columns' own waves. */
  _waves(point) {
    const columns = this.basis.period.map((period, c) => {
      const turns = point[c] / period;
      return Array.from({ length: this.basis.highest + 1 }, (_, k) => cosineAndSine(k * turns));
    });
    return this.basis.series.map(({ m }) => {
      let [re, im] = [1.0, 0.0];
      m.forEach((k, c) => {
        const [cosine, sine] = columns[c][Math.abs(k)];
        const signed = k < 0 ? -sine : sine;
        [re, im] = [re * cosine - im * signed, re * signed + im * cosine];
      });
      return [re, im];
    });
  }

  evaluate(table, query) {
    if (!this._inside(query)) return [0.0];
    const { series } = this.basis;
    let sum = (series[0].kernel / series[0].weight) * table[0];
    this._waves(query).forEach(([re, im], i) => {
      if (i === 0) return;
      const gain = (2.0 * series[i].kernel) / series[i].weight;
      sum += gain * (re * table[i] + im * table[series.length + i - 1]);
    });
    return [sum];
  }

  noiseGain(query) {
    if (!this._inside(query)) return [0.0];
    return [
      this.basis.series.reduce((sum, { kernel, weight }, i) => sum + (((i === 0 ? 1.0 : 2.0) * kernel) / weight) ** 2, 0.0),
    ];
  }

  /** As for every box; a bound on it where that is far below the noise. */
  methodVariance(table, query, count, variance) {
    const heaps = this._heaps(table).reduce((a, b) => a + b, 0.0);
    const bound = this._largestError(query) ** 2 * heaps;
    return bound > NEGLIGIBLE * variance * this.noiseGain(query)[0] ? super.methodVariance(table, query) : [bound];
  }

  /** How far the series is from the kernel, at most, for a record anywhere in the box. */
  _largestError(query) {
    const { period, half, series } = this.basis;
    const width = this.kernel.gaussianWidth;
    const far = period.map((each) => Math.exp(-((each / Math.sqrt(2.0) / width) ** 2)));
    const others = period.map((each, c) => {
      const gap = Math.max(each - Math.abs(query[c]) - half[c], 0.0);
      return (2.0 * Math.exp(-0.5 * (gap / width) ** 2)) / (1.0 - far[c]);
    });
    const whole = far.reduce((product, each) => product * (1.0 + (2.0 * each) / (1.0 - each)), 1.0);
    const kept = series.reduce((sum, { kernel }, i) => sum + (i === 0 ? 1.0 : 2.0) * kernel, 0.0);
    return others.reduce((product, each) => product * (1.0 + each), 1.0) - 1.0 + Math.max(whole - kept, 0.0);
  }

  _readLattice(query) {
    this.latticeWaves ??= this._lattice().places.map((place) => this._waves(place));
    if (!this._inside(query)) return new Float64Array(this.latticeWaves.length);
    const own = this._waves(query);
    const { series } = this.basis;
    return this.latticeWaves.map((waves) =>
      waves.reduce(
        (sum, [re, im], i) => sum + (i === 0 ? 1.0 : 2.0) * series[i].kernel * (re * own[i][0] + im * own[i][1]),
        0.0,
      ),
    );
  }

  total(table) {
    const first = this.basis.series[0].weight;
    return [table[0] / first, 1.0 / first ** 2];
  }
}

export function trigonometricBasis(parameters) {
  const common = boxed(parameters, ["terms"]);
  const terms = whole(parameters.terms, 1, 2 ** 12);
  const number = tensorSize(terms, common.dim);
  const [scale, all] = [BigInt(common.scale), BigInt(number)];
  const larger = (a, b) => (a > b ? a : b);
  const moved = (many) => ({
    l1: larger(scale * all, many === 2n ? 2n * scale * (all - 1n) : 0n),
    l2Squared: larger(scale ** 2n * all, many === 2n ? 4n * scale ** 2n * (all - 1n) : 0n),
  });
  return { ...common, name: "trigonometric", moved, terms, shape: [1, number] };
}

/** Chebyshev's polynomials of the record times the kernel's own coefficients. */
export class TrigonometricReading extends BoxReading {
  constructor(basis, kernel) {
    super(basis, kernel);
    require(kernel !== null && kernel.ofColumns && kernel.separable && kernel.dim === basis.dim);
    this.nodes = basis.half.map((half) =>
      Math.min(MOST_NODES, Math.max(4 * basis.terms, Math.trunc((8 * half) / kernel.width), 64)),
    );
    affordable(Math.max(...this.nodes) * basis.terms <= 2 ** 24, "A series of that many terms");
    // Waves of each column, and the kernel as a function of the difference in one.
    this.tables = this.nodes.map((nodes) => {
      const angles = Float64Array.from({ length: nodes }, (_, i) => (i + 0.5) * (Math.PI / nodes));
      const waves = Array.from({ length: basis.terms }, (_, r) =>
        angles.map((angle) => Math.cos(angle * r) * (2.0 / nodes) * (r === 0 ? 0.5 : 1.0)),
      );
      return { cosines: angles.map(Math.cos), waves };
    });
  }

  _profile(difference) {
    const { kernel } = this;
    if (kernel.name === "gaussian") return Math.exp(((-0.5 * kernel.power) / kernel.bandwidth ** 2) * difference * difference);
    if (kernel.name === "laplacian") return Math.exp((-kernel.power / kernel.bandwidth) * Math.abs(difference));
    return kernel.similarity([0.0], [Math.fround(difference)]);
  }

  _factors(query) {
    return this.tables.map(({ cosines, waves }, c) => {
      const values = cosines.map((cosine) => this._profile(this.basis.half[c] * cosine - query[c]));
      return waves.map((wave) => wave.reduce((sum, each, i) => sum + each * values[i], 0.0));
    });
  }

  evaluate(table, query) {
    let rest = Float64Array.from(table, (value) => value / this.basis.scale);
    for (const factor of this._factors(query).reverse()) {
      const terms = factor.length;
      const next = new Float64Array(rest.length / terms);
      for (let i = 0; i < rest.length; i += 1) next[Math.floor(i / terms)] += rest[i] * factor[i % terms];
      rest = next;
    }
    return [rest[0]];
  }

  noiseGain(query) {
    const gain = this._factors(query).reduce((product, factor) => product * factor.reduce((s, f) => s + f * f, 0.0), 1.0);
    return [gain / this.basis.scale ** 2];
  }

  _readLattice(query) {
    const factors = this._factors(query);
    return this._lattice().places.map((place) =>
      factors.reduce((product, factor, c) => {
        const x = Math.min(Math.max(place[c] / this.basis.half[c], -1.0), 1.0);
        let [before, now, sum] = [1.0, x, factor[0]];
        for (let k = 1; k < factor.length; k += 1) {
          sum += factor[k] * now;
          [before, now] = [now, Math.min(Math.max(2.0 * x * now - before, -1.0), 1.0)];
        }
        return product * sum;
      }, 1.0),
    );
  }

  total(table) {
    return [table[0] / this.basis.scale, 1.0 / this.basis.scale ** 2];
  }
}

const COSINE = Array.from({ length: 10 }, (_, k) => (k % 2 ? -1 : 1) / factorial(2 * k));
const SINE = Array.from({ length: 10 }, (_, k) => (k % 2 ? -1 : 1) / factorial(2 * k + 1));

function factorial(n) {
  return n < 2 ? 1 : n * factorial(n - 1);
}

/** cos(2πt) and sin(2πt), by operations that are rounded alike everywhere. */
function cosineAndSine(turns) {
  const fraction = turns - evenRound(turns);
  const quarter = evenRound(4.0 * fraction);
  const angle = (fraction - 0.25 * quarter) * (2.0 * Math.PI);
  const square = angle * angle;
  const horner = (terms) => terms.reduceRight((value, term) => value * square + term, 0.0);
  const cosine = horner(COSINE);
  const sine = angle * horner(SINE);
  if (Math.abs(quarter) === 1.0) return [-sine * quarter, cosine * quarter];
  return quarter === 0.0 ? [cosine, sine] : [-cosine, -sine];
}

/** The nearest integer, the even one of two that are as near. */
export function evenRound(value) {
  const low = Math.floor(value);
  if (value - low !== 0.5) return Math.round(value);
  return low % 2 === 0 ? low : low + 1;
}
