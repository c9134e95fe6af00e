// How far apart the Fourier features of two records of a declared box can be, in the arithmetic of Python
// (`hushsum.tables._fourier_features`, which has the proof): the same number, bit for bit.
import { cosine, phaseFraction, sine } from "./waves.js";
import { fused } from "./single_precision.js";

const AMPLITUDE = 1023;
const LENGTH = 1024;
const MOST_COLUMNS = 8;
/** Frequencies times points of the lattice: some tenths of a second in a page. */
const MOST_WORK = 2 ** 28;
const MOST_WAVES = 2 ** 22;
const FINEST = 0.004;
const [FEWEST_BITS, MOST_BITS, EXACT_BITS] = [6, 14, 53];
const [NARROWEST, WIDEST] = [2 ** -100, 2 ** 100];
const SINGLE = 2 ** -24;
const WAVE_ERROR = 2e-5;
const ROUNDING = 0.51;
const DOUBLE = 1e-9;
/** Adding and subtracting it rounds a small number to the nearest integer, ties to even. */
const ROUNDER = 1.5 * 2 ** 52;

/**
 * An upper bound of the squared distance between the integers of any two records of a box.
 *
 * @param {Float32Array} frequencies row after row, in turns per unit
 * @param {number[]} halves the half widths of the box, in single precision
 * @returns {bigint}
 */
export function squaredDiameter(frequencies, halves) {
  const dim = halves.length;
  const features = frequencies.length / dim;
  const always = 4 * features * LENGTH ** 2;
  const least = leastSimilarity(frequencies, halves);
  if (least === null) return BigInt(always);
  const phases = reach(frequencies, halves).map((each) => 2.0 * Math.PI * (dim + 1) * SINGLE * each);
  const length =
    AMPLITUDE * Math.sqrt(features * (2.0 - 2.0 * least)) +
    2.0 * AMPLITUDE * Math.sqrt(exactSum(phases.map((each) => each * each))) +
    2.0 * ROUNDING * Math.sqrt(2.0 * features);
  return BigInt(Math.min(always, Math.ceil(length * length * (1.0 + DOUBLE))));
}

/** A lower bound of the mean cosine of the difference of two records, above -1; null where none is found. */
function leastSimilarity(frequencies, halves) {
  const dim = halves.length;
  const features = frequencies.length / dim;
  const bitLength = 32 - Math.clz32(features);
  const bits = Math.min(MOST_BITS, Math.floor((EXACT_BITS - 2 - bitLength) / dim));
  if (dim > MOST_COLUMNS || bits < FEWEST_BITS) return null;
  if (!halves.every((half) => half >= NARROWEST && half <= WIDEST)) return null;
  const angular = Float64Array.from(frequencies, (each) => 2.0 * Math.PI * each);
  const sides = halves.map((half) => 2.0 * half);
  const parts = partsOfSides(angular, sides);
  if (parts === null) return null;
  const steps = sides.map((side, i) => side / parts[i] / 2.0);
  const factor = Math.sqrt(2.0) * (2.0 ** -(bits + 1) + WAVE_ERROR);
  let factors = 1.0;
  for (let column = 0; column < dim; column += 1) factors *= 1.0 + factor;
  const phases = (2.0 * Math.PI * 6.0 * SINGLE * exactSum(reach(frequencies, halves))) / features;
  const uncertain = largestRise(angular, steps) + factors - 1.0 + phases;
  if (!(uncertain < 1.0)) return null;
  const waves = parts.map((many, column) => {
    const places = column === 0 ? many + 1 : 2 * many + 1;
    const first = column === 0 ? 0 : -many;
    const at = Array.from({ length: places }, (_, i) => Math.fround(((first + i) / many) * sides[column]));
    return scaledWaves(frequencies, dim, column, at, 2 ** bits);
  });
  const found = latticeMinimum(waves, features) / (features * 2.0 ** (bits * dim)) - uncertain - DOUBLE;
  return found > -1.0 ? found : null;
}

/** The sum over columns of |frequency| times half width, of every feature. */
function reach(frequencies, halves) {
  const dim = halves.length;
  return Float64Array.from({ length: frequencies.length / dim }, (_, row) => {
    let total = 0.0;
    for (let column = 0; column < dim; column += 1) total += Math.abs(frequencies[row * dim + column]) * halves[column];
    return total;
  });
}

/** How many steps each side of the lattice has, as fine as the work allows; null if that is useless. */
function partsOfSides(angular, sides) {
  const dim = sides.length;
  const features = angular.length / dim;
  const scales = sides.map((side, column) => {
    const own = angular.filter((_, at) => at % dim === column);
    return side * Math.sqrt(exactSum(own.map((each) => each * each)) / features);
  });
  const coarsest = Math.sqrt(8.0 / dim);
  if (!scales.every((each) => each / coarsest < MOST_WAVES)) return null;
  for (let step = Math.sqrt((8.0 * FINEST) / dim); step < coarsest; step *= 1.1) {
    const parts = scales.map((each) => Math.max(1, Math.ceil(each / step)));
    const nodes = parts.map((each, column) => (column === 0 ? each + 1 : 2 * each + 1));
    const points = nodes.reduce((product, each) => product * each, 1);
    if (features * Math.max(...nodes) <= MOST_WAVES && features * points <= MOST_WORK) return parts;
  }
  return null;
}

/** How far k can rise from its minimum to the nearest point of a lattice with these halved steps. */
function largestRise(angular, halves) {
  const dim = halves.length;
  const features = angular.length / dim;
  const squares = new Float64Array(features);
  let found = 0.0;
  for (let corner = 0; corner < 2 ** (dim - 1); corner += 1) {
    for (let row = 0; row < features; row += 1) {
      let along = angular[row * dim] * halves[0];
      for (let column = 1; column < dim; column += 1) {
        const sign = (corner >> (dim - 1 - column)) & 1 ? 1.0 : -1.0;
        along += sign * halves[column] * angular[row * dim + column];
      }
      squares[row] = along * along;
    }
    found = Math.max(found, exactSum(squares) / (2.0 * features));
  }
  return found;
}

/** Cosines and sines of a column's phases at some places, as integers: [place][feature]. */
function scaledWaves(frequencies, dim, column, at, scale) {
  const features = frequencies.length / dim;
  const cosines = new Float64Array(at.length * features);
  const sines = new Float64Array(at.length * features);
  at.forEach((place, i) => {
    for (let row = 0; row < features; row += 1) {
      const turn = phaseFraction(fused(frequencies[row * dim + column], place, 0.0));
      cosines[i * features + row] = cosine(turn) * scale + ROUNDER - ROUNDER;
      sines[i * features + row] = sine(turn) * scale + ROUNDER - ROUNDER;
    }
  });
  return { places: at.length, cosines, sines };
}

/** The smallest sum over features, of integers below 2^53, over all points of the lattice. */
function latticeMinimum(waves, features) {
  const last = waves.length - 1;
  const sums = waves.map(() => [new Float64Array(features), new Float64Array(features)]);
  let found = Infinity;
  const visit = (column, cosines, sines) => {
    if (column === last) {
      found = Math.min(found, leastProduct(cosines, sines, waves[last]));
      return;
    }
    const own = waves[column];
    const [cosineSums, sineSums] = sums[column];
    for (let place = 0, at = 0; place < own.places; place += 1) {
      for (let row = 0; row < features; row += 1, at += 1) {
        cosineSums[row] = cosines[row] * own.cosines[at] - sines[row] * own.sines[at];
        sineSums[row] = cosines[row] * own.sines[at] + sines[row] * own.cosines[at];
      }
      visit(column + 1, cosineSums, sineSums);
    }
  };
  visit(0, new Float64Array(features).fill(1.0), new Float64Array(features));
  return found;
}

/** Three places at a time, so that each sum of phases is loaded once for all of them; the last may be taken twice. */
function leastProduct(cosines, sines, { places, cosines: others, sines: otherSines }) {
  const features = cosines.length;
  const last = (places - 1) * features;
  let found = Infinity;
  for (let at = 0; at <= last; at += 3 * features) {
    const next = Math.min(at + features, last);
    const third = Math.min(next + features, last);
    let [one, two, three] = [0.0, 0.0, 0.0];
    for (let row = 0; row < features; row += 1) {
      const x = cosines[row];
      const y = sines[row];
      one += x * others[at + row] - y * otherSines[at + row];
      two += x * others[next + row] - y * otherSines[next + row];
      three += x * others[third + row] - y * otherSines[third + row];
    }
    found = Math.min(found, one, two, three);
  }
  return found;
}

/** The sum of numbers, rounded once: what Python's `math.fsum` returns (Shewchuk 1997). */
function exactSum(values) {
  const partials = [];
  for (let x of values) {
    let kept = 0;
    for (let y of partials) {
      if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
      const high = x + y;
      const low = y - (high - x);
      if (low !== 0.0) partials[kept++] = low;
      x = high;
    }
    partials.length = kept;
    partials.push(x);
  }
  let total = partials.pop() ?? 0.0;
  while (partials.length) {
    const [x, y] = [total, partials.pop()];
    total = x + y;
    const low = y - (total - x);
    if (low === 0.0) continue;
    // A half that was rounded to even is rounded by the sign of what is left below it.
    const next = partials.at(-1);
    if (next !== undefined && low < 0.0 === next < 0.0 && total + 2.0 * low - total === 2.0 * low) total += 2.0 * low;
    break;
  }
  return total;
}
