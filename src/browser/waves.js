// Cosine and sine of a phase in turns, in single precision and in the order of the native loop: equal bit for bit.
import { fused } from "./single_precision.js";

const ROUNDER = 12582912;
const SINE = [
  6.28318281855543, -41.34142139902815, 81.59618388037231, -76.58010059069983, 41.20539511562007, -12.27126270500227,
].map(Math.fround);
const COSINE = [
  -19.739049627337103, 64.93027910833467, -85.28685244792894, 58.85254905884002, -21.162601230825686,
].map(Math.fround);

/** What a phase is beyond whole turns, from -0.5 to 0.5; a phase that is no number becomes -0.5. */
export function phaseFraction(phase) {
  const fraction = Math.fround(phase - Math.fround(Math.fround(phase + ROUNDER) - ROUNDER));
  const least = fraction > -0.5 ? fraction : -0.5;
  return least < 0.5 ? least : 0.5;
}

export function cosine(fraction) {
  const square = Math.fround(fraction * fraction);
  return fused(square, polynomial(COSINE, square), 1.0);
}

export function sine(fraction) {
  return fused(fraction, polynomial(SINE, Math.fround(fraction * fraction)), 0.0);
}

function polynomial(terms, x) {
  let value = terms[terms.length - 1];
  for (let i = terms.length - 2; i >= 0; i -= 1) value = fused(value, x, terms[i]);
  return value;
}
