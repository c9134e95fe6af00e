// How far the reading of a record from a grid may be from its kernel value: the bounds that the file holds, summed over
// the records, as in src/hushsum/tables/_grid.py.
import { GridReader, termOf } from "./grid_reading.js";
import { fields, flag, list, real, require } from "./header.js";
import { columnFactors, innerProducts } from "./splines.js";

const CORNER_CELLS = 1.5;
const NOISE_ALLOWANCE = 2.0;
const MOST_PROFILES = 128;
const MOST_WIDER = 3.0;
const LARGEST = 1e60;
const WIDEST = 1e4;

/** What a release stored: {profiles: [{height, scales, gaussian}], bound, typical}, each {height, wider, part, floor}. */
export function gridConstants(value, columns) {
  fields(value, ["profiles", "bound", "typical"]);
  const dim = columns.length;
  const diameter = Math.hypot(...columns.map((each) => each.spacing * each.nodes));
  const widest = Math.max(64.0 * diameter, 2.0 * WIDEST * Math.max(...columns.map((each) => each.spacing)));
  const profiles = list(value.profiles, MOST_PROFILES).map((profile) => {
    require(list(profile).length === 3 && list(profile[1]).length === dim && list(profile[2]).length === dim);
    const gaussian = profile[2].map(flag);
    return {
      height: real(profile[0], -LARGEST, LARGEST),
      scales: profile[1].map((scale, c) => real(scale, 1e-9 * columns[c].spacing, gaussian[c] ? widest : LARGEST)),
      gaussian,
    };
  });
  require(profiles.length > 0);
  const [bound, typical] = [value.bound, value.typical].map((numbers) => {
    require(list(numbers).length === 4);
    const [height, wider, part, floor] = numbers.map((each, i) => real(each, 0.0, i === 1 ? MOST_WIDER : LARGEST));
    return { height, wider, part, floor };
  });
  return { profiles, bound, typical };
}

export class ReadingErrors {
  constructor(kernel, reader, constants) {
    this.kernel = kernel;
    this.reader = reader;
    this.constants = constants;
    this.columns = reader.columns;
  }

  /** The largest error of the sums at each point of a lattice, but for the floor, in units of the table. */
  bound(table, lattice, variance) {
    this.bounding ??= this._terms(this.constants.bound);
    const number = lattice.reduce((product, places) => product * places.length, 1);
    const total = new Float64Array(number);
    for (const term of this.bounding) {
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
    const { floor } = this.constants.typical;
    this.typical ??= this._terms(this.constants.typical);
    const terms = this.typical;
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
    return this.constants.bound.floor;
  }

  /** The kernels of a bound, with their heights. */
  _terms({ height, wider, part }) {
    const { columns } = this;
    if (wider > 0.0) {
      const [one] = this.constants.profiles;
      const scales = one.scales.map((scale, c) => (columns[c].degree ? wider : 1.0) * scale);
      return [termOf(columns, height, scales, one.gaussian)];
    }
    if (height === 0.0 && part === 0.0) return [];
    return [
      ...this._cornerTerms().map((term) => ({ ...term, height: height * term.height })),
      ...this.reader.terms.map((term) => ({ ...term, height: part * Math.abs(term.height) })),
    ];
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
