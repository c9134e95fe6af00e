// Public random numbers: SHAKE-128 streams and normal numbers by inversion, bit for bit as in
// src/hushsum/kernels/_public_randomness.py. Only correctly rounded operations are used, so every machine has the same.
import { affordable } from "./header.js";

const RATE = 168;
const ROWS_A_STREAM = 64;
const MOST_WORDS = 1 << 24;

/** 64-bit words of `rows` rows, low and high halves, row after row. */
export class Words {
  constructor(low, high, perRow) {
    this.low = low;
    this.high = high;
    this.perRow = perRow;
  }

  get length() {
    return this.low.length;
  }
}

export function rowWords(purpose, seed, rows, words) {
  affordable(rows * words <= MOST_WORDS, "The number of random numbers behind this function");
  const label = `hushsum/1/${purpose}/${seed}/`;
  const total = rows * words;
  const low = new Uint32Array(total);
  const high = new Uint32Array(total);
  for (let block = 0; block * ROWS_A_STREAM < rows; block += 1) {
    const first = block * ROWS_A_STREAM * words;
    const many = Math.min(ROWS_A_STREAM * words, total - first);
    shake128(label + String(block), many, low.subarray(first, first + many), high.subarray(first, first + many));
  }
  return new Words(low, high, words);
}

// --- Keccak-f[1600] on pairs of 32-bit halves -------------------------------------------------------------------------

const ROUND_LOW = new Uint32Array(24);
const ROUND_HIGH = new Uint32Array(24);
const SHIFTS = new Uint8Array(25);
const TARGETS = new Uint8Array(25);

(function tabulate() {
  let register = 1;
  for (let round = 0; round < 24; round += 1)
    for (let j = 0; j < 7; j += 1) {
      if (register & 1) {
        const bit = (1 << j) - 1;
        if (bit < 32) ROUND_LOW[round] |= 1 << bit;
        else ROUND_HIGH[round] |= 1 << (bit - 32);
      }
      register = register & 0x80 ? ((register << 1) ^ 0x171) & 0xff : register << 1;
    }
  let [x, y] = [1, 0];
  for (let t = 0; t < 24; t += 1) {
    SHIFTS[x + 5 * y] = (((t + 1) * (t + 2)) / 2) % 64;
    [x, y] = [y, (2 * x + 3 * y) % 5];
  }
  for (let i = 0; i < 25; i += 1) TARGETS[i] = Math.floor(i / 5) + 5 * ((2 * (i % 5) + 3 * Math.floor(i / 5)) % 5);
})();

const movedLow = new Uint32Array(25);
const movedHigh = new Uint32Array(25);
const parityLow = new Uint32Array(5);
const parityHigh = new Uint32Array(5);

function permute(low, high) {
  for (let round = 0; round < 24; round += 1) {
    for (let x = 0; x < 5; x += 1) {
      parityLow[x] = low[x] ^ low[x + 5] ^ low[x + 10] ^ low[x + 15] ^ low[x + 20];
      parityHigh[x] = high[x] ^ high[x + 5] ^ high[x + 10] ^ high[x + 15] ^ high[x + 20];
    }
    for (let x = 0; x < 5; x += 1) {
      const next = (x + 1) % 5;
      const before = (x + 4) % 5;
      const dLow = parityLow[before] ^ ((parityLow[next] << 1) | (parityHigh[next] >>> 31));
      const dHigh = parityHigh[before] ^ ((parityHigh[next] << 1) | (parityLow[next] >>> 31));
      for (let i = x; i < 25; i += 5) {
        const a = low[i] ^ dLow;
        const b = high[i] ^ dHigh;
        const shift = SHIFTS[i];
        const to = TARGETS[i];
        const turn = shift & 31;
        const [p, q] = shift < 32 ? [a, b] : [b, a];
        movedLow[to] = turn === 0 ? p : (p << turn) | (q >>> (32 - turn));
        movedHigh[to] = turn === 0 ? q : (q << turn) | (p >>> (32 - turn));
      }
    }
    for (let y = 0; y < 25; y += 5)
      for (let x = 0; x < 5; x += 1) {
        const one = y + ((x + 1) % 5);
        const two = y + ((x + 2) % 5);
        low[y + x] = movedLow[y + x] ^ (~movedLow[one] & movedLow[two]);
        high[y + x] = movedHigh[y + x] ^ (~movedHigh[one] & movedHigh[two]);
      }
    low[0] ^= ROUND_LOW[round];
    high[0] ^= ROUND_HIGH[round];
  }
}

function shake128(label, words, outLow, outHigh) {
  const message = new TextEncoder().encode(label);
  const padded = new Uint8Array((Math.floor(message.length / RATE) + 1) * RATE);
  padded.set(message);
  padded[message.length] ^= 0x1f;
  padded[padded.length - 1] ^= 0x80;
  const view = new DataView(padded.buffer);
  const low = new Uint32Array(25);
  const high = new Uint32Array(25);
  for (let start = 0; start < padded.length; start += RATE) {
    for (let lane = 0; lane < RATE / 8; lane += 1) {
      low[lane] ^= view.getUint32(start + 8 * lane, true);
      high[lane] ^= view.getUint32(start + 8 * lane + 4, true);
    }
    permute(low, high);
  }
  const lanes = RATE / 8;
  for (let word = 0; word < words; word += 1) {
    const lane = word % lanes;
    if (word > 0 && lane === 0) permute(low, high);
    outLow[word] = low[lane];
    outHigh[word] = high[lane];
  }
}

// --- uniform and normal numbers ---------------------------------------------------------------------------------------

/** A number strictly between 0 and 1. */
export function uniform(low, high) {
  return (high * 1048576 + (low >>> 12) + 0.5) * 2 ** -52;
}

export function uniforms(words) {
  return Float64Array.from(words.low, (low, i) => uniform(low, words.high[i]));
}

export function normals(words) {
  const found = new Float64Array(words.length);
  for (let i = 0; i < found.length; i += 1) found[i] = normalQuantile(uniform(words.low[i], words.high[i]));
  return found;
}

/** The quantile of the normal distribution (Wichura 1988, algorithm AS 241). */
export function normalQuantile(p) {
  const q = p - 0.5;
  if (Math.abs(q) <= 0.425) {
    const r = 0.180625 - q * q;
    return q * (polynomial(r, CENTRE[0]) / polynomial(r, CENTRE[1]));
  }
  const tail = Math.sqrt(-logarithm(Math.min(p, 1.0 - p)));
  const [shift, [over, under]] = tail <= 5.0 ? [1.6, NEAR] : [5.0, FAR];
  const outer = polynomial(tail - shift, over) / polynomial(tail - shift, under);
  return q < 0.0 ? -outer : outer;
}

const scratch = new DataView(new ArrayBuffer(8));
const SERIES = Array.from({ length: 14 }, (_, k) => 1.0 / (2 * k + 1));

/** The natural logarithm of a positive normal number, by operations that are rounded alike everywhere. */
function logarithm(x) {
  scratch.setFloat64(0, x);
  const top = scratch.getUint32(0);
  let exponent = ((top >>> 20) & 0x7ff) - 1022;
  scratch.setUint32(0, ((top & 0x800fffff) | 0x3fe00000) >>> 0);
  let mantissa = scratch.getFloat64(0);
  if (mantissa < 0.7071067811865476) {
    mantissa = 2.0 * mantissa;
    exponent -= 1;
  }
  const s = (mantissa - 1.0) / (mantissa + 1.0);
  return 2.0 * s * polynomial(s * s, SERIES) + exponent * 0.6931471805599453;
}

function polynomial(x, coefficients) {
  let value = coefficients[coefficients.length - 1];
  for (let i = coefficients.length - 2; i >= 0; i -= 1) value = value * x + coefficients[i];
  return value;
}

const CENTRE = [
  [
    3.387132872796366608, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
    4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
  ],
  [
    1.0, 4.2313330701600911252e1, 6.871870074920579083e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
    3.930789580009271061e4, 2.8729085735721942674e4, 5.226495278852854561e3,
  ],
];
const NEAR = [
  [
    1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055, 3.64784832476320460504,
    1.27045825245236838258, 2.4178072517745061177e-1, 2.27238449892691845833e-2, 7.7454501427834140764e-4,
  ],
  [
    1.0, 2.05319162663775882187, 1.6763848301838038494, 6.8976733498510000455e-1, 1.4810397642748007459e-1,
    1.51986665636164571966e-2, 5.475938084995344946e-4, 1.05075007164441684324e-9,
  ],
];
const FAR = [
  [
    6.6579046435011037772, 5.4637849111641143699, 1.7848265399172913358, 2.9656057182850489123e-1,
    2.6532189526576123093e-2, 1.2426609473880784386e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7,
  ],
  [
    1.0, 5.9983220655588793769e-1, 1.3692988092273580531e-1, 1.48753612908506148525e-2, 7.868691311456132591e-4,
    1.8463183175100546818e-5, 1.4215117583164458887e-7, 2.04426310338993978564e-15,
  ],
];

/** Multipliers and addends of the pairwise independent hash into the cells of a row. */
export function multiplyShift(family, seed, rows, words) {
  return rowWords(`${family}/rehash`, seed, rows, words + 1);
}

/** Standard normal vectors, row after row; orthogonal ones within blocks of `dim` rows. */
export function normalDirections(purpose, seed, rows, dim, orthogonal) {
  const vectors = normals(rowWords(purpose, seed, rows, dim));
  if (orthogonal && dim > 1) orthogonalise(vectors, rows, dim);
  return vectors;
}

function orthogonalise(vectors, rows, dim) {
  const row = (r) => vectors.subarray(r * dim, (r + 1) * dim);
  const lengths = new Float64Array(rows);
  for (let r = 0; r < rows; r += 1) lengths[r] = Math.sqrt(dot(row(r), row(r)));
  for (let r = 0; r < rows; r += 1) {
    const own = row(r);
    for (let earlier = Math.floor(r / dim) * dim; earlier < r; earlier += 1) {
      const unit = row(earlier);
      const along = dot(own, unit);
      for (let k = 0; k < dim; k += 1) own[k] -= along * unit[k];
    }
    const length = Math.sqrt(dot(own, own));
    for (let k = 0; k < dim; k += 1) own[k] /= length;
  }
  for (let r = 0; r < rows; r += 1) for (let k = 0; k < dim; k += 1) vectors[r * dim + k] *= lengths[r];
}

const parts = new Float64Array(8);

/** In eight sums, in the order of the native loop. */
function dot(a, b) {
  parts.fill(0.0);
  for (let k = 0; k < a.length; k += 1) parts[k % 8] += a[k] * b[k];
  return parts[0] + parts[4] + (parts[2] + parts[6]) + (parts[1] + parts[5] + (parts[3] + parts[7]));
}

/** A public seed for one of several parts. */
export function derivedSeed(purpose, seed, number) {
  const words = rowWords(`composition/${purpose}`, seed, number + 1, 1);
  return (BigInt(words.high[number]) << 32n) | BigInt(words.low[number]);
}

// --- scrambled Sobol points -------------------------------------------------------------------------------------------

const BITS = 32;

// Direction numbers of Joe and Kuo, copyright (c) 2008, Frances Y. Kuo and Stephen Joe; their licence stands in
// src/hushsum/kernels/_public_randomness.py.
const JOE_KUO = [
  [3, 1], [7, 1, 3], [11, 1, 3, 1], [13, 1, 1, 1], [19, 1, 1, 3, 3], [25, 1, 3, 5, 13], [37, 1, 1, 5, 5, 17],
  [41, 1, 1, 5, 5, 5], [47, 1, 1, 7, 11, 19], [55, 1, 1, 5, 1, 1], [59, 1, 1, 1, 3, 11], [61, 1, 3, 5, 5, 31],
  [67, 1, 3, 3, 9, 7, 49], [91, 1, 1, 1, 15, 21, 21], [97, 1, 3, 1, 13, 27, 49], [103, 1, 1, 1, 15, 7, 5],
  [109, 1, 3, 1, 15, 13, 25], [115, 1, 1, 5, 5, 19, 61], [131, 1, 3, 7, 11, 23, 15, 103],
  [137, 1, 3, 7, 13, 13, 15, 69], [143, 1, 1, 3, 13, 7, 35, 63], [145, 1, 3, 5, 9, 1, 25, 53],
  [157, 1, 3, 1, 13, 9, 35, 107], [167, 1, 3, 1, 5, 27, 61, 31], [171, 1, 1, 5, 11, 19, 41, 61],
  [185, 1, 3, 5, 3, 3, 13, 69], [191, 1, 1, 7, 13, 1, 19, 1], [193, 1, 3, 7, 5, 13, 19, 59],
  [203, 1, 1, 3, 9, 25, 29, 41], [211, 1, 3, 5, 13, 23, 1, 55], [213, 1, 3, 7, 3, 13, 59, 17],
]; // prettier-ignore

export const MOST_COORDINATES = 1 + JOE_KUO.length;

/** The first points of a scrambled Sobol sequence, strictly between 0 and 1, point after point. */
export function sobolPoints(purpose, seed, rows, dim) {
  const words = rowWords(purpose, seed, dim, BITS / 2 + 1);
  const points = new Float64Array(rows * dim);
  const digits = new Uint32Array(rows);
  for (let column = 0; column < dim; column += 1) {
    // 32 random columns of a matrix, and a shift: low halves are even numbers, high halves odd ones.
    const random = (i) => (i % 2 ? words.high : words.low)[column * (BITS / 2 + 1) + (i >> 1)];
    digits[0] = random(BITS);
    directions(column).forEach((direction, power) => {
      const added = scrambled(direction, random);
      const done = 2 ** power;
      for (let row = done; row < Math.min(2 * done, rows); row += 1) digits[row] = digits[row - done] ^ added;
    });
    for (let row = 0; row < rows; row += 1) points[row * dim + column] = (digits[row] + 0.5) * 2 ** -BITS;
  }
  return points;
}

/** What each digit of a point's number adds, modulo 2. */
function directions(column) {
  const numbers = column === 0 ? Array(BITS).fill(1) : JOE_KUO[column - 1].slice(1);
  if (column > 0) {
    const polynomial = JOE_KUO[column - 1][0];
    const degree = numbers.length;
    for (let k = degree; k < BITS; k += 1) {
      let number = numbers[k - degree] ^ (numbers[k - degree] << degree);
      for (let i = 1; i < degree; i += 1) if ((polynomial >> (degree - i)) & 1) number ^= numbers[k - i] << i;
      numbers.push(number);
    }
  }
  return numbers.map((number, k) => number << (BITS - 1 - k));
}

/** A direction number times a lower triangular matrix of random bits, with ones on its diagonal. */
function scrambled(direction, random) {
  let found = 0;
  for (let place = 0; place < BITS; place += 1) {
    const top = 1 << (BITS - 1 - place);
    if (direction & top) found ^= (random(place) & ((top >>> 0) - 1)) | top;
  }
  return found;
}

const factorial = (n) => (n < 2 ? 1.0 : n * factorial(n - 1));
const SINE = Array.from({ length: 9 }, (_, k) => 1.0 / factorial(2 * k + 1));
const COSINE = Array.from({ length: 10 }, (_, k) => 1.0 / factorial(2 * k));

/** The quantile of the Cauchy distribution: tan π(p − 1/2), by the series of sine and cosine up to π/4. */
export function cauchyQuantile(p) {
  const q = p - 0.5;
  const steep = Math.abs(q) > 0.25;
  const angle = Math.PI * (steep ? 0.5 - Math.abs(q) : Math.abs(q));
  const square = -angle * angle;
  const sine = angle * polynomial(square, SINE);
  const cosine = polynomial(square, COSINE);
  const tangent = steep ? cosine / sine : sine / cosine;
  return q < 0.0 ? -tangent : tangent;
}

/** −2 times the logarithm of the product of up to 16 uniform numbers. */
export function chiSquare(uniformNumbers) {
  return 0.0 - 2.0 * logarithm(uniformNumbers.reduce((product, p) => product * p, 1.0));
}
