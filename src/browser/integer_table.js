// The noisy integers of a table: as they are, in Rice codes, or in a fixed number of bits per cell.
import { decodeNumbers, digestsSize, numberSize } from "./container.js";
import { affordable, bigWhole, fields, require, whole } from "./header.js";
import { nonsense } from "./refusal.js";

const LARGEST_STEP = 2 ** 31 - 1;
const BLOCK = 4096;
const MOST_ZEROS = 31;
const LARGEST_K = 62;
const MOST_BITS = 56;
const LARGEST = (1n << 63n) - 1n;
const SMALLEST = -(1n << 63n);
const MOST_CELLS = 2 ** 25;

/** How many bytes the payload of a table takes. */
export function tableSize(about, shape, header) {
  const cells = shape[0] * shape[1];
  require(Array.isArray(about.shape) && about.shape.length === 2 && about.shape.every((n, i) => n === shape[i]));
  affordable(cells <= MOST_CELLS, `A table of ${cells} cells`);
  if ("cells" in about) {
    const codes = codeBytes(cells, whole(about.cells.bits, 1, MOST_BITS));
    require(header.paged === codes);
    return codes + 16 * whole(about.cells.exceptions, 0, cells) + digestsSize(codes);
  }
  const size = cells * numberSize(about.type);
  if (!("packed" in about)) return size;
  const packed = whole(about.packed.size, 0, size);
  require(cells <= 8 * packed);
  return packed;
}

function codeBytes(cells, bits) {
  return (Math.ceil((cells * bits) / 64) + 1) * 8;
}

/** The cells, row after row: an Int32Array, or a Float64Array where cells are wider, and the step of rounding. */
export function tableCells(about, shape, payload) {
  const cells = shape[0] * shape[1];
  const step = "step" in about ? whole(about.step, 1, LARGEST_STEP) : 1;
  if ("cells" in about) {
    fields(about, ["shape", "step", "cells"]);
    return { step, cells: fixedBits(about.cells, cells, payload) };
  }
  fields(about, ["type", "shape"], ["step", "packed"]);
  if ("packed" in about) {
    fields(about.packed, ["centre", "size", "unit"]);
    const unit = whole(about.packed.unit, 1, LARGEST_STEP);
    const centre = bigWhole(about.packed.centre, SMALLEST, LARGEST);
    const wide = about.type === "int64";
    return { step, cells: riceDecoded(payload, cells, centre, unit, wide) };
  }
  const numbers = decodeNumbers(payload, about.type);
  return { step, cells: about.type === "int64" ? Float64Array.from(numbers, Number) : Int32Array.from(numbers) };
}

/** Bits of bytes, from the lowest of each to the highest. Reads past the end are refused. */
class BitReader {
  constructor(bytes) {
    this.bytes = bytes;
    this.bit = 0;
    this.end = 8 * bytes.length;
  }

  /** How many zeros come before the next one, which is taken too. */
  zeros() {
    let run = 0;
    for (;;) {
      if (this.bit >= this.end) throw nonsense();
      const set = (this.bytes[this.bit >> 3] >> (this.bit & 7)) & 1;
      this.bit += 1;
      if (set) return run;
      run += 1;
      if (run > MOST_ZEROS) throw nonsense();
    }
  }

  /** Up to 32 bits as a number. */
  take(many) {
    if (this.bit + many > this.end) throw nonsense();
    let value = 0;
    for (let had = 0; had < many; ) {
      const place = this.bit & 7;
      const here = Math.min(8 - place, many - had);
      value += ((this.bytes[this.bit >> 3] >> place) & ((1 << here) - 1)) * 2 ** had;
      had += here;
      this.bit += here;
    }
    return value;
  }

  takeBig(many) {
    const low = BigInt(this.take(Math.min(many, 32)));
    return many > 32 ? low | (BigInt(this.take(many - 32)) << 32n) : low;
  }

  /** The rest of a byte must be zeros: one spelling. */
  close() {
    while (this.bit & 7) if (this.take(1)) throw nonsense();
  }
}

function riceDecoded(bytes, count, centre, unit, wide) {
  const values = wide ? new Float64Array(count) : new Int32Array(count);
  const reader = new BitReader(bytes);
  const quick = Number(centre);
  const limit = (wide ? LARGEST : 2147483647n) / BigInt(unit);
  const quickLimit = wide ? Infinity : Math.floor(2147483647 / unit);
  for (let start = 0; start < count; start += BLOCK) {
    const k = reader.take(8);
    if (k > LARGEST_K) throw nonsense();
    const end = Math.min(start + BLOCK, count);
    for (let i = start; i < end; i += 1) {
      const run = reader.zeros();
      if (run < MOST_ZEROS && k <= 20 && !wide) {
        const z = run * 2 ** k + reader.take(k);
        const value = quick + (z % 2 === 0 ? z / 2 : -(z + 1) / 2);
        if (!(Math.abs(value) <= quickLimit) && !(unit === 1 && value === -2147483648)) throw nonsense();
        values[i] = value * unit;
        continue;
      }
      const z = run < MOST_ZEROS ? (BigInt(run) << BigInt(k)) | reader.takeBig(k) : reader.takeBig(64);
      if (run === MOST_ZEROS && z >> BigInt(k) < BigInt(MOST_ZEROS)) throw nonsense();
      const distance = z & 1n ? -((z + 1n) >> 1n) : z >> 1n;
      const value = BigInt.asIntN(64, centre + distance);
      const lowest = unit === 1 ? -limit - 1n : -limit;
      if (value > limit || value < lowest) throw nonsense();
      values[i] = Number(value * BigInt(unit));
    }
    reader.close();
  }
  if (reader.bit !== reader.end) throw nonsense();
  return values;
}

/** Codes of one number of bits; a code c stands for (base + c)·unit, but for the exceptions, whose codes are all ones. */
function fixedBits(about, count, payload) {
  fields(about, ["bits", "base", "unit", "exceptions", "total"]);
  const bits = whole(about.bits, 1, MOST_BITS);
  const unit = BigInt(whole(about.unit, 1, LARGEST_STEP));
  const base = bigWhole(about.base, SMALLEST, LARGEST);
  const total = bigWhole(about.total, SMALLEST, LARGEST + 1n);
  const codes = codeBytes(count, bits);
  const exceptions = about.exceptions;
  const listed = decodeNumbers(payload.subarray(codes, codes + 16 * exceptions), "int64");
  const lowest = base * unit;
  const highest = (base + (1n << BigInt(bits))) * unit;
  require(lowest >= SMALLEST && highest <= LARGEST);
  const narrow = lowest >= -(1n << 31n) && highest < 1n << 31n;
  const values = narrow && exceptions === 0 ? new Int32Array(count) : new Float64Array(count);
  const reader = new BitReader(payload.subarray(0, codes));
  const [first, by] = [Number(lowest), Number(unit)];
  for (let i = 0; i < count; i += 1)
    values[i] = bits <= 32 ? first + reader.take(bits) * by : Number((base + reader.takeBig(bits)) * unit);
  let before = -1n;
  for (let i = 0; i < exceptions; i += 1) {
    const cell = listed[i];
    require(cell > before && cell < BigInt(count));
    before = cell;
    values[Number(cell)] = Number(listed[exceptions + i]);
  }
  // Python takes the total of such a table from the header, as it reads single pages only: the same number of records.
  const sum = exactSum(values);
  require(sum === null || sum === total);
  return values;
}

/** The sum of integers, as a BigInt; null where one of them is beyond 2^53, and was rounded. */
function exactSum(values) {
  let sum = 0n;
  for (let start = 0; start < values.length; start += BLOCK) {
    const block = values.subarray(start, start + BLOCK);
    let [part, largest] = [0, 0];
    for (const value of block) {
      part += value;
      largest = Math.max(largest, Math.abs(value));
    }
    if (largest > Number.MAX_SAFE_INTEGER) return null;
    if (largest * BLOCK <= Number.MAX_SAFE_INTEGER) sum += BigInt(part);
    else for (const value of block) sum += BigInt(value);
  }
  return sum;
}
