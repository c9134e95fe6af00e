// Single-precision arithmetic that is rounded as on a processor with fused multiply-adds.

const number = new Float64Array(1);
const halves = new Uint32Array(number.buffer);

/**
 * a·b + c of single-precision numbers, rounded once.
 *
 * The product is exact in double precision, and the sum s = a·b + c is rounded to it. A second rounding, to single
 * precision, errs only where s is the midpoint of two single-precision numbers r and r + 2·(s − r) by its own rounding.
 */
export function fused(a, b, c) {
  const sum = a * b + c;
  const nearest = Math.fround(sum);
  const rest = sum - nearest;
  const other = nearest + 2.0 * rest;
  if (rest === 0.0 || Math.fround(other) !== other) return nearest;
  return roundedToOdd(a * b, c, sum);
}

/** Where s is a midpoint: its last bit stands for everything that was lost below it. */
function roundedToOdd(product, c, sum) {
  const back = sum - product;
  const lost = product - (sum - back) + (c - back);
  number[0] = sum;
  if (lost === 0.0 || (halves[0] & 1) === 1) return Math.fround(sum);
  if (lost > 0.0 === sum > 0.0) halves[0] |= 1;
  else if (halves[0] === 0) {
    halves[0] = 0xffffffff;
    halves[1] -= 1;
  } else halves[0] -= 1;
  return Math.fround(number[0]);
}
