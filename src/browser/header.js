// Values of a file's header, checked as they are taken: of the right type and in range, or the file is refused.
import { Real } from "./canonical_json.js";
import { nonsense, unsupported } from "./refusal.js";

const MOST_DIGITS = 2000;
const STORED = new RegExp(`^-?(0|[1-9][0-9]{0,${MOST_DIGITS - 1}})(/[1-9][0-9]{0,${MOST_DIGITS - 1}})?$`);

/** Refuse the file unless something holds. */
export function require(holds) {
  if (!holds) throw nonsense();
}

/** An object with exactly these names, of which those of `optional` may be missing. */
export function fields(value, names, optional = []) {
  require(isObject(value));
  const found = Object.keys(value);
  require(names.every((name) => name in value));
  require(found.every((name) => names.includes(name) || optional.includes(name)));
  return value;
}

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Real);
}

/** An integer in a range, as a number. */
export function whole(value, low, high) {
  require(typeof value === "number" && value >= low && value <= high);
  return value;
}

/** An integer of any size in a range, as a BigInt. */
export function bigWhole(value, low, high) {
  require(typeof value === "number" || typeof value === "bigint");
  const big = BigInt(value);
  require(big >= low && big <= high);
  return big;
}

/** A real number in a range. */
export function real(value, low, high) {
  require(value instanceof Real && value.value >= low && value.value <= high);
  return value.value;
}

export function text(value) {
  require(typeof value === "string");
  return value;
}

export function list(value, most = Infinity) {
  require(Array.isArray(value) && value.length <= most);
  return value;
}

export function flag(value) {
  require(typeof value === "boolean");
  return value;
}

/** Names of columns, or null. */
export function columnNames(value, dim) {
  if (value === null) return null;
  const names = list(value).map(text);
  require(names.every((name) => name !== "") && new Set(names).size === names.length);
  require(names.length === 1 || names.length === dim);
  return names;
}

/** A declared box: low and high ends and the centre of each column. */
export function box(value) {
  const pairs = list(value, 1 << 20);
  require(pairs.length > 0);
  const low = [];
  const high = [];
  for (const pair of pairs) {
    require(list(pair).length === 2);
    const [from, to] = pair.map((each) => real(each, -Infinity, Infinity));
    require(from < to && to / 2 - from / 2 <= 3.4028234663852886e38);
    low.push(from);
    high.push(to);
  }
  return { low, high, centre: low.map((from, i) => from / 2 + high[i] / 2), dim: pairs.length };
}

/** A rational as it is stored, in lowest terms: {numerator, denominator, value}. */
export function rational(value) {
  require(typeof value === "string" && STORED.test(value));
  const [over, under = "1"] = value.split("/");
  require(!value.includes("/") || under !== "1");
  const numerator = BigInt(over);
  const denominator = BigInt(under);
  require(value !== "-0" && gcd(numerator < 0n ? -numerator : numerator, denominator) === 1n);
  return { numerator, denominator, value: quotient(numerator, denominator) };
}

function gcd(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

/** The double that is nearest to a quotient of integers; infinity where it is beyond. */
export function quotient(numerator, denominator) {
  if (numerator === 0n) return 0;
  const negative = numerator < 0n;
  const size = negative ? -numerator : numerator;
  // 64 bits of the quotient and a bit for what is left: rounded once, by the conversion to a double.
  const shift = BigInt(bits(denominator) - bits(size) + 64);
  const scaled = shift >= 0n ? (size << shift) / denominator : size / (denominator << -shift);
  const left = shift >= 0n ? (size << shift) % denominator : size % (denominator << -shift);
  const rounded = Number((scaled << 1n) | (left ? 1n : 0n));
  const exponent = -Number(shift) - 1;
  // In two steps, since 2^exponent may be below the smallest double.
  const half = Math.trunc(exponent / 2);
  const value = rounded * 2 ** half * 2 ** (exponent - half);
  return negative ? -value : value;
}

function bits(value) {
  return value.toString(2).length;
}

/** Refuse what would take more work or memory than a page should give. */
export function affordable(holds, what) {
  if (!holds) throw unsupported(`${what} is more than this reader takes on in a page`);
}
