// The hash families of the sketch: the cell of a query in every row, bit for bit as src/native has them.
import { affordable } from "./header.js";
import { multiplyShift, normals, rowWords, uniforms } from "./public_random.js";
import { fused } from "./single_precision.js";

const STRUCTURED_BLOCK = 128;
const LARGEST = 3.4028234663852886e38;
const MOST_NUMBERS = 1 << 24;

/** The upper half of a product of 32-bit numbers, from products of 16-bit halves. */
function upperProduct(a, b) {
  const a1 = a >>> 16;
  const a0 = a & 0xffff;
  const b1 = b >>> 16;
  const b0 = b & 0xffff;
  const middle = (Math.imul(a1, b0) >>> 0) + (Math.imul(a0, b0) >>> 16);
  const other = (Math.imul(a0, b1) >>> 0) + (middle & 0xffff);
  return (Math.imul(a1, b1) + (middle >>> 16) + (other >>> 16)) >>> 0;
}

/** Words of a row into one of `width` cells: multiply-shift hashing, after a bijection that scatters progressions. */
class Fold {
  constructor(family, seed, rows, words, width) {
    this.numbers = multiplyShift(family, seed, rows, words);
    this.words = words;
    this.width = width;
  }

  /** The cell of row `row` for the first `used` of its words. */
  cell(row, words, used) {
    const { low, high } = this.numbers;
    const start = row * (this.words + 1);
    let upper = high[start + this.words];
    let lower = low[start + this.words];
    for (let i = 0; i < used; i += 1) {
      let word = Math.imul(words[i], 0x9e3779b1);
      word = (word ^ (word >>> 16)) >>> 0;
      const a = low[start + i];
      const before = lower;
      lower = (lower + Math.imul(a, word)) >>> 0;
      upper = (upper + upperProduct(a, word) + Math.imul(high[start + i], word) + (lower < before ? 1 : 0)) >>> 0;
    }
    return upperProduct(upper, this.width);
  }
}

/** floor(z) of a number clamped to ±2^30, as a 32-bit word; what is no number goes to the lower bound. */
function floorWord(z) {
  if (!(z > -1073741824)) return -1073741824;
  return Math.floor(z < 1073741824 ? z : 1073741824);
}

/** Floors or signs of `count` numbers z per row, which subclasses compute, as the cells of a query. */
class ProjectedCells {
  constructor({ family, count, signs, rows, width, seed, fold }) {
    this.rows = rows;
    this.width = width;
    this.count = count;
    this.signs = signs;
    const words = signs ? Math.ceil(count / 32) : count;
    this.fold = fold ? new Fold(family, seed, rows, words, width) : null;
    this.held = new Int32Array(words);
    this.offsets = signs
      ? new Float32Array(rows * count)
      : Float32Array.from(uniforms(rowWords(`${family}/offsets`, seed, rows, count)));
  }

  _cell(row, z) {
    const { held, count } = this;
    if (this.signs) {
      held.fill(0);
      for (let i = 0; i < count; i += 1) if (z[i] >= 0.0) held[i >> 5] |= 1 << (i & 31);
    } else for (let i = 0; i < count; i += 1) held[i] = floorWord(z[i]);
    return this.fold === null ? held[0] >>> 0 : this.fold.cell(row, held, held.length);
  }
}

/** Dense random projections (Datar et al. 2004; Charikar 2002). */
export class DenseHasher extends ProjectedCells {
  constructor(options) {
    super(options);
    const { family, count, dim, rows, seed, scale } = options;
    const numbers = count * dim;
    this.dim = dim;
    this.weights = new Float32Array(rows * numbers);
    const cauchy = family === "manhattan";
    affordable(rows * numbers <= MOST_NUMBERS, "The number of random numbers behind this function");
    const drawn = normals(rowWords(`${family}/directions`, seed, rows, (cauchy ? 2 : 1) * numbers));
    for (let row = 0; row < rows; row += 1)
      for (let i = 0; i < numbers; i += 1) {
        const at = row * numbers;
        const direction = cauchy ? drawn[2 * at + i] / drawn[2 * at + numbers + i] : drawn[at + i];
        this.weights[at + i] = Math.min(Math.max(direction * scale, -LARGEST), LARGEST);
      }
    this.z = new Float64Array(count);
  }

  cells(query, out) {
    const { dim, count, rows, weights, offsets, z } = this;
    if (count === 1 && !this.signs) return this._floors(query, out);
    for (let row = 0, at = 0; row < rows; row += 1) {
      for (let i = 0; i < count; i += 1) {
        let sum = offsets[row * count + i];
        for (let k = 0; k < dim; k += 1, at += 1) sum = fused(weights[at], query[k], sum);
        z[i] = sum;
      }
      out[row] = this._cell(row, z);
    }
  }
}

DenseHasher.prototype._floors = function floors(query, out) {
  const { dim, rows, weights, offsets, width } = this;
  const { low, high } = this.fold.numbers;
  for (let row = 0, at = 0; row < rows; row += 1) {
    let z = offsets[row];
    for (let k = 0; k < dim; k += 1, at += 1) z = fused(weights[at], query[k], z);
    let word = Math.imul(floorWord(z), 0x9e3779b1);
    word ^= word >>> 16;
    const a = low[2 * row];
    const addend = low[2 * row + 1];
    const lower = (addend + Math.imul(a, word)) >>> 0;
    const carry = lower < addend ? 1 : 0;
    const upper = upperProduct(a, word) + Math.imul(high[2 * row], word) + high[2 * row + 1] + carry;
    out[row] = upperProduct(upper >>> 0, width);
  }
};

export function paddedSize(dim) {
  return Math.max(STRUCTURED_BLOCK, 2 ** Math.ceil(Math.log2(dim)));
}

export function structuredBlock(dim, count) {
  return Math.max(1, Math.min(STRUCTURED_BLOCK, Math.floor(paddedSize(dim) / count)));
}

/** Random signs for three rounds of transforms: [block][round][column]. */
export function randomSigns(purpose, seed, blocks, size) {
  const words = rowWords(purpose, seed, blocks, 3 * (size / 64));
  const signs = new Int8Array(blocks * 3 * size);
  for (let i = 0; i < signs.length; i += 1) {
    const half = (i >> 5) % 2 === 0 ? words.low : words.high;
    signs[i] = 1 - 2 * ((half[i >> 6] >>> (i & 31)) & 1);
  }
  return signs;
}

/** The Hadamard transform in single precision, from the widest butterflies to the narrowest. */
export function hadamard(values) {
  for (let half = values.length >> 1; half > 0; half >>= 1)
    for (let start = 0; start < values.length; start += 2 * half)
      for (let i = start; i < start + half; i += 1) {
        const [a, b] = [values[i], values[i + half]];
        values[i] = a + b;
        values[i + half] = a - b;
      }
}

/** Projections from three rounds of random signs and Hadamard transforms, for high dimension. */
export class StructuredHasher extends ProjectedCells {
  constructor(options) {
    super(options);
    const { family, count, dim, rows, seed, scale } = options;
    this.size = paddedSize(dim);
    this.block = structuredBlock(dim, count);
    this.scale = Math.fround(scale / this.size);
    const blocks = Math.ceil(rows / this.block);
    affordable(blocks * 3 * this.size <= MOST_NUMBERS, "The number of random numbers behind this function");
    this.flips = randomSigns(`${family}/signs`, seed, blocks, this.size);
    this.values = new Float32Array(this.size);
    this.z = new Float64Array(count);
  }

  cells(query, out) {
    const { size, block, values, flips, count, offsets, scale, z } = this;
    for (let first = 0; first < this.rows; first += block) {
      const start = (first / block) * 3 * size;
      values.fill(0);
      values.set(query);
      for (let round = 0; round < 3; round += 1) {
        for (let k = 0; k < size; k += 1) values[k] *= flips[start + round * size + k];
        hadamard(values);
      }
      for (let row = first; row < Math.min(first + block, this.rows); row += 1) {
        for (let i = 0; i < count; i += 1)
          z[i] = fused(values[(row - first) * count + i], scale, offsets[row * count + i]);
        out[row] = this._cell(row, z);
      }
    }
  }
}

/** Min-wise hashes of sets of integers (Broder 1997). A query is a list of BigInt. */
export class MinHasher {
  constructor({ power, rows, width, seed }) {
    this.rows = rows;
    this.width = width;
    this.power = power;
    this.mixers = rowWords("jaccard/mixers", seed, rows, power);
    const salt = rowWords("jaccard/salt", seed, 1, 1);
    this.salt = (BigInt(salt.high[0]) << 32n) | BigInt(salt.low[0]);
    this.fold = new Fold("jaccard", seed, rows, power + 1, width);
    this.held = new Int32Array(power + 1);
  }

  cells(members, out) {
    const { power, held, mixers } = this;
    const mixed = Uint32Array.from(members, (value) => this._mixed(value));
    const empty = mixed.length === 0;
    held[power] = empty ? 1 : 0;
    for (let row = 0; row < this.rows; row += 1) {
      for (let i = 0; i < power; i += 1) {
        const at = row * power + i;
        const mixer = mixers.high[at] | 1;
        let least = empty ? 0 : 0xffffffff;
        for (const value of mixed) least = Math.min(least, (Math.imul(mixer, value) + mixers.low[at]) >>> 0);
        held[i] = least;
      }
      // The last word is zero but for the empty set, and zeros add nothing.
      out[row] = this.fold.cell(row, held, empty ? power + 1 : power);
    }
  }

  /** The upper half of SplitMix64's finaliser. */
  _mixed(value) {
    const mask = 0xffffffffffffffffn;
    let x = BigInt.asUintN(64, value) ^ this.salt;
    x = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    x = ((x ^ (x >> 27n)) * 0x94d049bb133111ebn) & mask;
    return Number((x ^ (x >> 31n)) >> 32n);
  }
}

/** Sampled columns of code vectors (Indyk and Motwani 1998). A query is an Int32Array. */
export class CodeHasher {
  constructor({ dim, power, rows, width, seed }) {
    this.rows = rows;
    this.width = width;
    this.power = power;
    const drawn = rowWords("hamming/columns", seed, rows, power);
    this.columns = Int32Array.from(drawn.high, (word) => upperProduct(word, dim));
    this.fold = new Fold("hamming", seed, rows, power, width);
    this.held = new Int32Array(power);
  }

  cells(codes, out) {
    const { power, held } = this;
    for (let row = 0; row < this.rows; row += 1) {
      for (let i = 0; i < power; i += 1) held[i] = codes[this.columns[row * power + i]];
      out[row] = this.fold.cell(row, held, power);
    }
  }
}

/** One hash function of every factor of a product, concatenated. A query has one part for each. */
export class ConcatenatedHasher {
  constructor(hashers, { rows, width, seed }) {
    this.rows = rows;
    this.width = width;
    this.hashers = hashers;
    this.fold = new Fold("product", seed, rows, hashers.length, width);
    this.found = hashers.map(() => new Int32Array(rows));
    this.held = new Int32Array(hashers.length);
  }

  cells(parts, out) {
    this.hashers.forEach((hasher, i) => hasher.cells(parts[i], this.found[i]));
    for (let row = 0; row < this.rows; row += 1) {
      for (let i = 0; i < this.held.length; i += 1) this.held[i] = this.found[i][row];
      out[row] = this.fold.cell(row, this.held, this.held.length);
    }
  }
}
