// One person's report in the local model, made on the person's own device: nothing but the report leaves it.
//
// A row and a column are drawn without regard to the record; the sign of the Hadamard matrix that the record has there is
// sent, and is the other one with probability 1 / (1 + e^ε), exactly: that probability is enclosed by integers and
// compared with as many random bits as the decision needs. So every report is ε-differentially private by itself.
import { parseCanonical } from "./canonical_json.js";
import { hashBasis } from "./hash_rows.js";
import { fields, rational, require } from "./header.js";
import { FileRefused, QueryRefused } from "./refusal.js";
import { sha256 } from "./sha256.js";

const FORMAT = "hushsum report terms";
const VERSION = 1;
const MOST_BYTES = 1 << 20;
const MOST_CELLS = 2 ** 28;
const MOST_EPSILON = 60;
const WORD = 64;

/** The terms that a collector published, from the bytes of their file. */
export function readTerms(bytes) {
  if (bytes.length > MOST_BYTES) throw new FileRefused("The file of terms is too large; get a fresh copy.");
  const document = parseCanonical(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  fields(document, ["basis", "epsilon", "format", "version"]);
  require(document.format === FORMAT && document.version === VERSION);
  fields(document.basis, ["name", "parameters"]);
  require(document.basis.name === "hash-rows");
  const basis = hashBasis(document.basis.parameters, document.basis.name);
  const epsilon = rational(document.epsilon);
  require(epsilon.numerator > 0n && epsilon.numerator <= BigInt(MOST_EPSILON) * epsilon.denominator);
  const [rows, width] = basis.shape;
  let order = 1;
  while (order < width) order *= 2;
  require(rows * order <= MOST_CELLS);
  const hasher = basis.kernel.hasher({ rows, width, seed: basis.seed });
  return { basis, epsilon, rows, order, hasher, digest: sha256(bytes).slice(0, 8) };
}

/** The report of one record: 24 characters. A second report of the same person spends ε again. */
export function makeReport(terms, record, { randomBytes = systemRandom } = {}) {
  const { basis, epsilon, rows, order, hasher, digest } = terms;
  const cells = new Int32Array(rows);
  hasher.cells(basis.kernel.prepare(within(numbers(record), basis.box), basis.box), cells);
  const row = below(rows, randomBytes);
  const column = below(order, randomBytes);
  const flipped = coin(epsilon, randomBytes);
  const negative = odd(cells[row] & column) !== flipped;
  const report = new Uint8Array(18);
  const view = new DataView(report.buffer);
  report.set(digest);
  view.setUint32(8, row, true);
  view.setUint32(12, column, true);
  report[16] = negative ? 1 : 0;
  report[17] = VERSION;
  return btoa(String.fromCharCode(...report));
}

function systemRandom(count) {
  return globalThis.crypto.getRandomValues(new Uint8Array(count));
}

/** A list of numbers. An empty field of a form is refused, and not taken for 0. */
function numbers(record) {
  const values = ArrayBuffer.isView(record) ? Array.from(record) : record;
  if (!Array.isArray(values) || !values.every((value) => typeof value === "number" || typeof value === "bigint"))
    throw new QueryRefused("A record is a list of numbers.");
  return values;
}

/** Records are clipped to the declared box, as the collector's program does. */
function within(record, box) {
  if (box === null || record.length !== box.dim) return record;
  return record.map((value, i) => Math.min(Math.max(Number(value), box.low[i]), box.high[i]));
}

function odd(bits) {
  let parity = 0;
  for (let left = bits; left !== 0; left &= left - 1) parity ^= 1;
  return parity === 1;
}

/** A uniform integer below a limit of at most 2^32, by rejection. */
function below(limit, randomBytes) {
  const fair = Math.floor(2 ** 32 / limit) * limit;
  for (;;) {
    const drawn = randomBytes(4);
    // A view into a larger buffer, such as Node's, begins where it says.
    const value = new DataView(drawn.buffer, drawn.byteOffset, 4).getUint32(0, true);
    if (value < fair) return value % limit;
  }
}

/** True with probability 1 / (1 + e^ε), exactly. */
export function coin({ numerator, denominator }, randomBytes) {
  let prefix = 0n;
  for (let known = WORD; ; known += WORD) {
    for (const byte of randomBytes(WORD / 8)) prefix = (prefix << 8n) | BigInt(byte);
    const bits = BigInt(known + WORD);
    const one = 1n << bits;
    const [low, high] = exponentialBounds(numerator, denominator, bits);
    const least = (low << bits) / (one + low);
    const most = ceiling(high << bits, one + high);
    if ((prefix + 1n) << BigInt(WORD) <= least) return true;
    if (prefix << BigInt(WORD) >= most) return false;
  }
}

/** Integers around 2^bits · e^(−p/q), for p, q > 0: the alternating series of a small argument, squared again and again. */
export function exponentialBounds(p, q, bits) {
  let halvings = 1n;
  while (p * 2n > q << halvings) halvings += 1n;
  const work = bits + halvings + 32n;
  const least = (p << work) / (q << halvings);
  const most = ceiling(p << work, q << halvings);
  let [low, high] = [1n << work, 1n << work];
  let [termLow, termHigh] = [1n << work, 1n << work];
  for (let n = 1n; termHigh > 1n; n += 1n) {
    termLow = ((termLow * least) >> work) / n;
    termHigh = ceiling(ceiling(termHigh * most, 1n << work), n);
    [low, high] = n % 2n === 1n ? [low - termHigh, high - termLow] : [low + termLow, high + termHigh];
  }
  // What is left of the series is smaller than its last term, which is at most 1.
  [low, high] = [low - 1n, high + 1n];
  for (let i = 0n; i < halvings; i += 1n) [low, high] = [(low * low) >> work, ceiling(high * high, 1n << work)];
  const spare = work - bits;
  return [low >> spare, ceiling(high, 1n << spare)];
}

function ceiling(over, under) {
  return (over + under - 1n) / under;
}
