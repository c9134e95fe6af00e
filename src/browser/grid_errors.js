// How far the reading of a record from a grid may be from its kernel value, as in src/hushsum/bases/grid_errors.py.
import { GridReader } from "./grid_reading.js";
import { affordable } from "./header.js";
import { Pcg64 } from "./pcg64.js";
import { columnFactors, innerProducts, splineValues } from "./splines.js";

const PHASES = 64;
const WIDER = [Math.sqrt(2.0), 2.0, 3.0];
const CUTS = [2.5, 3.0, 4.0, 5.0, 6.0, 8.0, Infinity];
const SHARE = 0.1;
const PAIRS = 8192;
const MARGIN = 1.25;
const CORNER_CELLS = 1.5;
const FAR = 0.05;
const SMALL = 1e-3;
const NOISE_ALLOWANCE = 2.0;
const LARGEST_SCALE = 1e4;

export class ReadingErrors {
  constructor(kernel, reader, rounding, typicalRounding) {
    this.kernel = kernel;
    this.reader = reader;
    this.rounding = rounding;
    this.typicalRounding = typicalRounding;
    this.columns = reader.columns;
  }

  /** The largest error of the sums at each point of a lattice, but for the floor, in units of the table. */
  bound(table, lattice, variance) {
    const { terms } = this._bound();
    const number = lattice.reduce((product, places) => product * places.length, 1);
    const total = new Float64Array(number);
    for (const term of terms) {
      const reader = new GridReader(this.columns, [term]);
      const gains = reader.gains(lattice);
      const sums = reader.sums(table, lattice);
      for (let i = 0; i < number; i += 1)
        total[i] += Math.max(sums[i], 0.0) + NOISE_ALLOWANCE * Math.sqrt(variance * gains[i]);
    }
    return total;
  }

  /** The expected squared error of the sums, in units of the table. */
  variance(squaredTable, lattice) {
    const shared = this.columns.reduce(
      (product, { degree }) => (degree ? product * innerProducts(degree)[degree] : product),
      1.0,
    );
    const { terms, floor } = this._typical();
    const heights = terms.reduce((sum, term) => sum + term.height, 0.0);
    const number = lattice.reduce((product, places) => product * places.length, 1);
    if (terms.length === 0) return new Float64Array(number);
    const squares = terms.map((term) => ({
      height: (heights * term.height) / shared,
      factors: term.factors.map((each) =>
        columnFactors(0, each.scale / (each.gaussian ? Math.sqrt(2.0) : 2.0), each.gaussian),
      ),
    }));
    const found = new GridReader(this.columns, squares).sums(squaredTable, lattice);
    let energy = 0.0;
    if (floor > 0.0) for (const value of squaredTable) energy += value;
    const rest = (floor ** 2 / shared) * energy;
    return found.map((value) => value + rest);
  }

  get floor() {
    return this._bound().floor;
  }

  _bound() {
    this.found ??= this._madeBound();
    return this.found;
  }

  _madeBound() {
    if (this.columns.every(({ degree }) => degree === 0)) return { terms: [], floor: 0.0 };
    const scales = this._gaussianScales();
    return scales === null ? this._sampledBound() : this._productBound(scales, false);
  }

  /** The standard deviation along each column in cells, of a kernel that is one Gaussian; null of others. */
  _gaussianScales() {
    const [one, ...more] = this.reader.terms;
    if (!this.kernel.smooth || more.length > 0 || one.height !== 1.0) return null;
    return one.factors.every((each) => each.gaussian) ? one.factors.map((each) => each.scale) : null;
  }

  _typical() {
    this.typical ??= this._madeTypical();
    return this.typical;
  }

  _madeTypical() {
    const { terms, floor } = this._bound();
    const scales = this._gaussianScales();
    if (scales !== null && terms.length > 0) return this._productBound(scales, true);
    const shrunk = 1.0 / Math.sqrt(3.0);
    return { terms: terms.map((each) => ({ ...each, height: shrunk * each.height })), floor: shrunk * floor };
  }

  /** Of a Gaussian: per column the error is at most A·κ + δ, κ a wider Gaussian. */
  _productBound(scales, typical) {
    const smooth = this.columns.map(({ degree }, c) => [degree, scales[c]]).filter(([degree]) => degree);
    let best = null;
    for (const wider of WIDER)
      for (const cut of CUTS) {
        const pairs = smooth.map(([degree, scale]) => columnBound(degree, scale, wider, cut, typical));
        const others = pairs.reduce((product, [a, b]) => product * (1.0 + a + b), 1.0);
        const height = others * Math.hypot(...pairs.map(([a]) => a));
        const floor = others * Math.hypot(...pairs.map(([, b]) => b));
        const cost = height * wider ** smooth.length * SHARE + floor;
        if (best === null || cost < best.cost) best = { cost, wider, height, floor };
      }
    const factors = this.columns.map(({ degree }, c) => columnFactors(degree, (degree ? best.wider : 1.0) * scales[c], true));
    const rounding = typical ? this.typicalRounding : this.rounding;
    return { terms: [{ height: best.height + rounding, factors }], floor: best.floor };
  }

  /** Of other kernels: pairs of a record and a query, near and far. */
  _sampledBound() {
    const { columns, kernel } = this;
    const dim = columns.length;
    const rng = new Pcg64();
    const draw = (number, make) => Float64Array.from({ length: number }, make);
    const spacing = columns.map((each) => each.spacing);
    // Distances in which the kernel falls off alike along all columns.
    const widths = kernel.columnWidths.map((own) => own / kernel.width);
    const least = Math.min(...spacing.map((each, c) => each / widths[c]));
    const side = Math.max(...columns.map((each, c) => (each.spacing * each.nodes) / widths[c]));
    const inside = draw(PAIRS * dim, () => rng.uniform());
    const direction = draw(PAIRS * dim, () => rng.normal());
    const chosen = draw(PAIRS * dim, () => rng.uniform());
    const part = draw(PAIRS, () => rng.uniform(0.3, 1.0));
    const radius = draw(PAIRS, () => least * Math.exp(rng.uniform(-2.0, Math.log(side / least))));
    const corners = this._cornerTerms();
    const origin = new Float64Array(dim);
    const [errors, near, kept] = [0, 0, 0].map(() => new Float64Array(PAIRS));
    for (let pair = 0; pair < PAIRS; pair += 1) {
      const own = direction.subarray(pair * dim, (pair + 1) * dim);
      for (let c = 0; c < dim; c += 1) own[c] *= chosen[pair * dim + c] < part[pair] ? 1.0 : 0.0;
      const length = Math.max(Math.sqrt(own.reduce((sum, each) => sum + each * each, 0.0)), 1e-9);
      const reach = pair < PAIRS / 4 ? 0.0 : radius[pair];
      const away = own.map((each, c) => ((reach * each) / length) * widths[c]);
      const cells = away.map((each, c) => each / spacing[c]);
      const place = inside.subarray(pair * dim, (pair + 1) * dim);
      const weights = columns.map(({ degree }, c) => (degree ? splineValues(degree, place[c]) : null));
      const exact = kernel.similarity(Float64Array.from(away, Math.fround), origin);
      const read = readTerms(this.reader.terms, weights, place, cells);
      errors[pair] = Math.abs(read - exact);
      near[pair] = readTerms(corners, weights, place, cells);
      kept[pair] = Math.max(read, 0.0);
    }
    let [largestPart, floor, height] = [0.0, 0.0, 0.0];
    for (let pair = 0; pair < PAIRS; pair += 1) {
      if (!(near[pair] < FAR)) continue;
      if (kept[pair] > SMALL) largestPart = Math.max(largestPart, errors[pair] / kept[pair]);
      else floor = Math.max(floor, errors[pair]);
    }
    largestPart *= MARGIN;
    floor *= MARGIN;
    for (let pair = 0; pair < PAIRS; pair += 1) {
      if (near[pair] < FAR) continue;
      const left = Math.max(errors[pair] - largestPart * kept[pair], 0.0);
      height = Math.max(height, left / Math.max(near[pair], FAR));
    }
    height = MARGIN * height + this.rounding;
    const terms = [
      ...corners.map((term) => ({ ...term, height: height * term.height })),
      ...this.reader.terms.map((term) => ({ ...term, height: largestPart * term.height })),
    ];
    return { terms, floor };
  }

  /** Where the kernel has corners: at the query; along every column for a product over columns. */
  _cornerTerms() {
    const narrow = this.columns.map(({ degree }) => columnFactors(degree, CORNER_CELLS, true));
    if (!this.kernel.separable || this.columns.length === 1) return [{ height: 1.0, factors: narrow }];
    return this.reader.terms.flatMap((term) =>
      this.columns.map((_, i) => ({
        height: term.height,
        factors: term.factors.map((each, c) => (c === i ? narrow[c] : each)),
      })),
    );
  }
}

/** What a record counts that lies `inside` its cell, with the splines' values there, at a query `away` from it in cells. */
function readTerms(terms, weights, inside, away) {
  let total = 0.0;
  for (const term of terms) {
    let product = term.height;
    for (let c = 0; c < term.factors.length; c += 1)
      product *= term.factors[c].readWeighted(weights[c], inside[c], away[c]);
    total += product;
  }
  return total;
}

/** A and δ: the error is at most A·exp(−t²/2·wider²) up to `cut` deviations, and δ beyond. */
function columnBound(degree, scale, wider, cut, typical) {
  const { distance, largest, rootMeanSquare } = envelope(degree, scale);
  const errors = typical ? rootMeanSquare : largest;
  let [height, rest] = [0.0, 0.0];
  for (let i = 0; i < distance.length; i += 1) {
    if (distance[i] <= cut) height = Math.max(height, errors[i] * Math.exp(0.5 * (distance[i] / wider) ** 2));
    else rest = Math.max(rest, errors[i]);
  }
  return [height, rest];
}

const envelopes = new Map();

/** Distances in deviations, and the largest and the root mean square error there over all places in a cell. */
function envelope(degree, scale) {
  const key = `${degree}/${scale}`;
  if (envelopes.has(key)) return envelopes.get(key);
  if (envelopes.size > 64) envelopes.clear();
  affordable(scale <= LARGEST_SCALE, "A kernel that is 10,000 times as wide as a cell");
  const factors = columnFactors(degree, scale, true);
  const step = Math.min(1.0, scale) / 16.0;
  const number = Math.ceil((factors.reach + degree + 1.0) / step);
  const places = Float64Array.from({ length: number }, (_, i) => i * step);
  const largest = new Float64Array(number);
  const squares = new Float64Array(number);
  const shape = places.map((place) => factors.shape(place));
  for (let phase = 0; phase < PHASES; phase += 1) {
    const weights = splineValues(degree, phase / PHASES);
    for (let i = 0; i < number; i += 1) {
      const error = Math.abs(factors.readWeighted(weights, phase / PHASES, places[i]) - shape[i]);
      largest[i] = Math.max(largest[i], error);
      squares[i] += error * error;
    }
  }
  const found = {
    distance: places.map((place) => place / scale),
    largest,
    rootMeanSquare: squares.map((sum) => Math.sqrt(sum / PHASES)),
  };
  envelopes.set(key, found);
  return found;
}
