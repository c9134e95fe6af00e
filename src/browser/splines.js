// B-splines on equal cells, and the coefficients that read a kernel's profile from their sums, as in
// src/hushsum/tables/_grid.py.
import { affordable } from "./header.js";

const GAUSSIAN_REACH = 8.0;
const DUAL_REACH = 48;
const LARGEST_FREQUENCY = 9.0;
const SMALLEST_TAIL = 1e-8;
const TAIL_SHARE = 0.1;
const STEPS_IN_DEVIATION = 1500.0;
const FIRST_STEPS = 64;
const FEWEST_STEPS = 32;
const MOST_STEPS = 8192;
const MOST_CORNER_STEPS = 512;
const OVER = 20.0;
const PHASES = 32;
const LARGEST_SCALE = 5e4;

/** What each of the degree + 1 nodes around a cell is given, for a place 0 ≤ u < 1 in the cell. */
function splineValues(degree, inside) {
  let values = [1.0];
  for (let k = 1; k <= degree; k += 1) {
    const raised = new Array(k + 1);
    for (let j = 0; j <= k; j += 1) {
      const x = inside + (k - j);
      let value = j > 0 ? x * values[j - 1] : 0.0;
      if (j < k) value += (k + 1 - x) * values[j];
      raised[j] = value / k;
    }
    values = raised;
  }
  return values;
}

/** ∫ b(x)·b(x − m) dx for m from −degree to degree. */
export function innerProducts(degree) {
  return splineValues(2 * degree + 1, 0.0).slice(0, 2 * degree + 1);
}

function dualResponse(degree, frequency) {
  const products = innerProducts(degree);
  let gram = 0.0;
  for (let m = -degree; m <= degree; m += 1) gram += products[m + degree] * Math.cos(m * frequency);
  const half = frequency / 2.0;
  const sinc = half === 0.0 ? 1.0 : Math.sin(half) / half;
  return sinc ** (degree + 1) / gram;
}

/** The even function whose cosine series has these coefficients: the real inverse transform of even size. */
function inverseTransform(spectrum, size) {
  const re = new Float64Array(size);
  const im = new Float64Array(size);
  const half = size / 2;
  for (let k = 0; k < Math.min(spectrum.length, half + 1); k += 1) {
    re[k] = spectrum[k];
    if (k > 0 && k < half) re[size - k] = spectrum[k];
  }
  for (let i = 1, j = 0; i < size; i += 1) {
    let bit = size >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) [re[i], re[j]] = [re[j], re[i]];
  }
  const cosines = new Float64Array(half || 1);
  const sines = new Float64Array(half || 1);
  for (let k = 0; k < half; k += 1) {
    cosines[k] = Math.cos((2.0 * Math.PI * k) / size);
    sines[k] = Math.sin((2.0 * Math.PI * k) / size);
  }
  for (let span = 2; span <= size; span *= 2) {
    const step = size / span;
    for (let start = 0; start < size; start += span)
      for (let k = 0, at = start; k < span / 2; k += 1, at += 1) {
        const [c, s] = [cosines[k * step], sines[k * step]];
        const to = at + span / 2;
        const x = re[to] * c - im[to] * s;
        const y = re[to] * s + im[to] * c;
        re[to] = re[at] - x;
        im[to] = im[at] - y;
        re[at] += x;
        im[at] += y;
      }
  }
  for (let i = 0; i < size; i += 1) re[i] /= size;
  return re;
}

/**
 * Coefficients c(t) of nodes at a distance of t cells from a query, even in t: `mesh` has them at t = i/steps; beyond
 * `reach` cells c is tail·exp(−t/scale), or 0 for a Gaussian.
 */
export class ColumnFactors {
  constructor(degree, scale, gaussian, steps, reach, tail, mesh) {
    Object.assign(this, { degree, scale, gaussian, steps, reach, tail, mesh });
  }

  at(distance) {
    const away = Math.abs(distance);
    if (!(away <= this.reach)) return this.tail ? this.tail * Math.exp(-away / this.scale) : 0.0;
    const place = Math.min(away * this.steps, this.mesh.length - 2);
    const left = Math.trunc(place);
    const lower = this.mesh[left];
    return lower + (place - left) * (this.mesh[left + 1] - lower);
  }

  /** What the factors stand for: the profile at a distance in cells. */
  shape(distance) {
    const away = Math.abs(distance) / this.scale;
    return this.gaussian ? Math.exp(-0.5 * away * away) : Math.exp(-away);
  }

  /** What a record counts that lies `inside` its cell, for a query at a distance from it in cells. */
  read(inside, distance) {
    if (this.degree === 0) return this.shape(distance);
    const weights = splineValues(this.degree, inside);
    const first = (this.degree - 1) / 2.0;
    let total = 0.0;
    for (let j = 0; j <= this.degree; j += 1) total += weights[j] * this.at(distance + inside + (first - j));
    return total;
  }
}

const known = new Map();

/** The factors of a profile whose scale is given in cells, for weights of a degree; 0 where records lie on nodes. */
export function columnFactors(degree, scale, gaussian) {
  const key = `${degree}/${scale}/${gaussian}`;
  if (!known.has(key)) {
    if (known.size > 512) known.clear();
    known.set(key, madeFactors(degree, scale, gaussian));
  }
  return known.get(key);
}

function madeFactors(degree, scale, gaussian) {
  affordable(scale > 0 && scale <= LARGEST_SCALE, "A kernel that is 50,000 times as wide as a cell");
  const wanted = 2 ** Math.max(0, Math.ceil(Math.log2(STEPS_IN_DEVIATION / scale)));
  const steps = gaussian
    ? Math.min(wanted, MOST_STEPS)
    : Math.min(Math.max(wanted, FEWEST_STEPS), MOST_CORNER_STEPS);
  const own = gaussian ? Math.ceil(GAUSSIAN_REACH * scale) : 0;
  const reach = own + (degree ? DUAL_REACH : 1);
  const [mesh, tail] = projected(degree, scale, gaussian, steps, reach);
  const whole = new ColumnFactors(degree, scale, gaussian, steps, reach, tail, mesh);
  if (!gaussian) return whole;
  const shortest = shortestReach(whole);
  return new ColumnFactors(degree, scale, gaussian, steps, shortest, tail, mesh.slice(0, shortest * steps + 2));
}

function projected(degree, scale, gaussian, steps, reach) {
  const count = reach * steps + 2;
  if (degree === 0) {
    const shape = (i) => {
      const away = i / steps / scale;
      return gaussian ? Math.exp(-0.5 * away * away) : Math.exp(-away);
    };
    return [Float64Array.from({ length: count }, (_, i) => shape(i)), gaussian ? 0.0 : 1.0];
  }
  const period = 2 ** Math.ceil(Math.log2(2 * reach + 2));
  const frequency = (k) => (2.0 * Math.PI * k) / period;
  if (gaussian) {
    const coarse = Math.min(steps, FIRST_STEPS);
    const most = (period * coarse) / 2;
    const kept = Math.min(most, Math.ceil(((LARGEST_FREQUENCY / scale) * period) / (2.0 * Math.PI)));
    const spectrum = Float64Array.from({ length: kept + 1 }, (_, k) => {
      const own = scale * Math.sqrt(2.0 * Math.PI) * Math.exp(-0.5 * (scale * frequency(k)) ** 2);
      return own * dualResponse(degree, frequency(k)) * coarse;
    });
    return [refined(inverseTransform(spectrum, period * coarse), steps / coarse, count), 0.0];
  }
  const samples = period * steps;
  const spectrum = Float64Array.from({ length: samples / 2 + 1 }, (_, k) => {
    const own = (2.0 * scale) / (1.0 + (scale * frequency(k)) ** 2);
    return own * dualResponse(degree, frequency(k)) * steps;
  });
  const mesh = inverseTransform(spectrum, samples).slice(0, count);
  const tail = eigenvalue(degree, 1.0 / scale);
  // What the other periods' tails add to this one.
  const over = -Math.expm1(-period / scale);
  for (let i = 0; i < count; i += 1) {
    const t = i / steps;
    mesh[i] -= (tail * (Math.exp(-(period - t) / scale) + Math.exp(-(period + t) / scale))) / over;
  }
  return [mesh, tail];
}

/** An even function on a mesh that is this many times finer, by polynomials through six neighbours. */
function refined(rough, factor, count) {
  if (factor === 1) return rough.slice(0, count);
  const around = [-2, -1, 0, 1, 2, 3];
  const weights = around.map((node) =>
    Float64Array.from({ length: factor }, (_, b) =>
      around.reduce((w, other) => (other === node ? w : (w * (b / factor - other)) / (node - other)), 1.0),
    ),
  );
  const found = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    const cell = Math.floor(i / factor);
    let sum = 0.0;
    for (let n = 0; n < 6; n += 1) sum += rough[Math.abs(cell + around[n])] * weights[n][i % factor];
    found[i] = sum;
  }
  return found;
}

function eigenvalue(degree, rate) {
  if (rate > OVER) return 0.0;
  const half = 0.5 * rate;
  const spline = half > 1e-8 ? (Math.sinh(half) / half) ** (degree + 1) : 1.0;
  const products = innerProducts(degree);
  let gram = 0.0;
  for (let m = -degree; m <= degree; m += 1) gram += products[m + degree] * Math.cosh(rate * m);
  return spline / gram;
}

/** The fewest cells beyond which all coefficients together are far below the error of the projection. */
function shortestReach(factors) {
  const { degree, scale, reach, steps, mesh } = factors;
  let own = 0.0;
  if (degree)
    for (let phase = 0; phase < PHASES; phase += 1)
      for (let i = 0; i < 8; i += 1) {
        const distance = 0.25 * scale * i;
        own = Math.max(own, Math.abs(factors.read(phase / PHASES, distance) - factors.shape(distance)));
      }
  const allowed = Math.max(TAIL_SHARE * own, SMALLEST_TAIL);
  let tail = 0.0;
  let shortest = reach;
  for (let cell = reach - 1; cell >= 0; cell -= 1) {
    let largest = 0.0;
    for (let i = cell * steps; i < (cell + 1) * steps; i += 1) largest = Math.max(largest, Math.abs(mesh[i]));
    tail += 2.0 * largest;
    if (tail > allowed) break;
    shortest = cell;
  }
  return Math.max(1, shortest);
}
