// Functions that JavaScript does not have: special functions in double precision, and the root of an integer.
import { normalQuantile } from "./public_random.js";

/** The error function, to about 1e-15. */
export function erf(x) {
  const size = Math.abs(x);
  const value = size < 2.5 ? erfSeries(size) : size > 6.0 ? 1.0 : 1.0 - erfcFraction(size);
  return x < 0.0 ? -value : value;
}

/** 2/√π·e^(−x²)·Σ 2^n·x^(2n+1)/(2n+1)!!, of positive terms alone. */
function erfSeries(x) {
  let term = x;
  let sum = x;
  for (let n = 1; term > 1e-18 * sum; n += 1) {
    term *= (2.0 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2.0 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

/** Its complement by a continued fraction, from behind. */
function erfcFraction(x) {
  let value = x;
  for (let n = 120; n > 0; n -= 1) value = x + (0.5 * n) / value;
  return Math.exp(-x * x) / (Math.sqrt(Math.PI) * value);
}

/** How many standard errors an interval reaches: Student's t where they come from blocks, else normal. */
export function quantile(level, blocks = null) {
  const rank = 0.5 + level / 2.0;
  return blocks === null ? normalQuantile(rank) : studentQuantile(blocks - 1, rank);
}

/** The quantile of Student's distribution at a rank above 1/2, by Newton's method from the normal one. */
function studentQuantile(freedom, rank) {
  const tail = 1.0 - rank;
  const density = Math.exp(logGamma((freedom + 1) / 2) - logGamma(freedom / 2)) / Math.sqrt(freedom * Math.PI);
  if (freedom === 1) return Math.tan(Math.PI * (rank - 0.5));
  if (freedom === 2) return (2.0 * (rank - 0.5)) / Math.sqrt(2.0 * tail * rank);
  let low = 0.0;
  let high = 1e12;
  let t = normalQuantile(rank);
  for (let i = 0; i < 200; i += 1) {
    const above = studentTail(t, freedom) - tail;
    if (above > 0.0) low = t;
    else high = t;
    const slope = density * Math.pow(1.0 + (t * t) / freedom, -(freedom + 1) / 2);
    let next = t + above / slope;
    if (!(next > low && next < high)) next = 0.5 * (low + Math.min(high, 4.0 * low + 4.0));
    if (Math.abs(next - t) <= 1e-15 * Math.abs(next)) return next;
    t = next;
  }
  return t;
}

/** P(T > t) for t > 0. */
function studentTail(t, freedom) {
  return 0.5 * incompleteBeta(freedom / (freedom + t * t), freedom / 2, 0.5);
}

/** The regularised incomplete beta function, by Lentz's continued fraction. */
function incompleteBeta(x, a, b) {
  if (x <= 0.0) return 0.0;
  if (x >= 1.0) return 1.0;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return (front * betaFraction(x, a, b)) / a;
  return 1.0 - (front * betaFraction(1.0 - x, b, a)) / b;
}

function betaFraction(x, a, b) {
  const tiny = 1e-300;
  const kept = (value) => (Math.abs(value) < tiny ? tiny : value);
  let c = 1.0;
  let d = 1.0 / kept(1.0 - ((a + b) * x) / (a + 1));
  let h = d;
  for (let m = 1; m < 10000; m += 1) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1.0 / kept(1.0 + even * d);
    c = kept(1.0 + even / c);
    h *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1.0 / kept(1.0 + odd * d);
    c = kept(1.0 + odd / c);
    h *= d * c;
    if (Math.abs(d * c - 1.0) < 1e-16) break;
  }
  return h;
}

/** ln Γ(x) for x > 0: Stirling's series, after a step up for small numbers. */
export function logGamma(x) {
  let shift = 0.0;
  while (x < 15.0) {
    shift -= Math.log(x);
    x += 1.0;
  }
  const inverse = 1.0 / (x * x);
  const series = 1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse * (1 / 1188))));
  return shift + (x - 0.5) * Math.log(x) - x + 0.9189385332046727 + series / x;
}

/** The integer part of the root of an integer of any size, by Newton's method from above. */
export function wholeRoot(square) {
  if (square < 2n) return square;
  let root = 1n << BigInt((square.toString(2).length + 1) >> 1);
  for (;;) {
    const next = (root + square / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}
