// Steps of a stream: how the noise of two of them goes together, and the change between them with its error.
import { GAUSSIAN, LAPLACE, SUMS, noiseFrom } from "./claim.js";
import { fields, list, rational, require, text, whole } from "./header.js";
import { QueryRefused } from "./refusal.js";
import { wholeRoot } from "./special_functions.js";

const MOST_STEPS = 2 ** 14;
const MOST_BUFFERS = 8;
const WHOLE = 2 ** 24;
const DECAY_BITS = 24n;
const GUARD = 1n << 20n;
// Python rounds the computed variance upwards by 10⁻⁶ and allows 10⁻⁵: what is within this it reads.
const CLOSE = 8e-6;

/** Which step of which stream a table is, and the noise of every output of the stream; as `StreamStep` in Python. */
export function stepFrom(value) {
  fields(value, ["stream", "step", "removals", "noise"]);
  fields(value.noise, ["strategy", "view", "table", "count"]);
  require(/^[0-9a-f]{32}$/.test(text(value.stream)) && typeof value.removals === "boolean");
  const strategy = strategyFrom(value.noise.strategy);
  const view = viewFrom(value.noise.view);
  const noises = [value.noise.table, value.noise.count].map(noiseFrom);
  const intervals = strategy.base !== undefined;
  require(noises.every(({ mechanism, parts }) => mechanism === (intervals ? LAPLACE : GAUSSIAN) && parts === 1));
  require(!intervals || view.decay === null || strategy.levels === 1);
  return {
    stream: value.stream,
    step: whole(value.step, 1, strategy.horizon),
    horizon: strategy.horizon,
    removals: value.removals,
    strategy,
    view,
    table: noises[0].variance,
    count: noises[1].variance,
    exact: noises.map(({ exact }) => exact),
  };
}

/**
 * Refuses a step whose stated noise is not that of its stream, or a stream whose noise does not keep the claim; as
 * `StreamStep.keeps` in Python.
 *
 * @param {(many: bigint, person: boolean) => object} moved how far a record moves the table
 */
export function checkStream(found, claim, stated, moved, cells) {
  const intervals = found.strategy.base !== undefined;
  const gain = rowOf(found).reduce((sum, each) => sum + each * each, 0.0);
  [found.table, found.count].forEach((variance, i) => {
    require(stated[i].mechanism === SUMS[intervals ? 1 : 0] && claim.mechanism === stated[i].mechanism);
    require(Math.abs(stated[i].variance - variance * gain) <= CLOSE * variance * gain);
  });
  const pure = claim.rho === null && claim.delta === 0;
  require(intervals === pure);
  if (claim.rho === null && !pure) return;
  const record = [moved(1n, false), moved(2n, false)];
  if ([...record].some((each) => (pure ? each.l1 : each.l2Squared) === null)) return;
  const number = [1n, 0n].map((each) => ({ l1: each, l2Squared: each }));
  const changes = [changeOf(record, claim, found.removals, BigInt(cells)), changeOf(number, claim, found.removals, 1n)];
  const lengths = pure
    ? changes.map(({ l1 }) => BigInt(found.strategy.levels) * l1)
    : changes.map((each) => lengthAbove(each, boundsOf(found.strategy)));
  const promised = rational(claim.exact.epsilon ?? claim.exact.rho);
  // Σ length/parameter, or half of it under ρ, compared with the promise without any division.
  const [one, other] = found.exact;
  const spent = lengths[0] * one.denominator * other.numerator + lengths[1] * other.denominator * one.numerator;
  const most = promised.numerator * one.numerator * other.numerator * (pure ? 1n : 2n);
  require(spent * promised.denominator <= most);
}

/** What one unit adds to the vectors of all steps together; as `step_changes` in Python. */
function changeOf([alone, replaced], claim, removals, cells) {
  const person = claim.unit === "person";
  const many = person ? BigInt(claim.recordsPerUnit) : 1n;
  const pair = removals && !person ? 2n : 1n;
  const larger = (a, b) => (a > b ? a : b);
  let [l1, squared] = [pair * alone.l1, pair * (alone.l2Squared ?? 0n)];
  if (claim.relation === "replace" && removals) [l1, squared] = [2n * l1, 4n * squared];
  else if (claim.relation === "replace") {
    l1 = larger(replaced.l1, 2n * alone.l1);
    squared = larger(replaced.l2Squared ?? 0n, 2n * (alone.l2Squared ?? 0n));
  }
  [l1, squared] = [many * l1, many * many * squared];
  return { l1, squared, touched: l1 < cells ? l1 : cells };
}

/** Bounds on ‖c‖² and ‖e‖² of a factorisation, in integers rounded upwards. */
function boundsOf({ horizon, unit, whole: { decays, weights } }) {
  const up = (number) => -(-number >> DECAY_BITS);
  const over = (number, by) => -(-number / by) + (number % by ? 1n : 0n);
  let terms = weights.map((weight) => up(weight * BigInt(unit) * GUARD));
  let errors = weights.map(() => GUARD);
  let [column, rounding] = [(BigInt(unit) * GUARD) ** 2n, 0n];
  const sum = (each) => each.reduce((a, b) => a + b, 0n);
  for (let at = 1; at < horizon; at += 1) {
    column += sum(terms) ** 2n;
    rounding += sum(errors) ** 2n;
    terms = terms.map((each, i) => up(each * decays[i]));
    errors = errors.map((each, i) => up(each * decays[i]) + GUARD);
  }
  return { column: over(column, GUARD ** 2n), rounding: over(rounding, GUARD ** 2n) };
}

/** The square of ‖c‖·√squared + √touched·‖e‖, rounded upwards; roots from above by 2⁻⁴⁰ at most. */
function lengthAbove({ squared, touched }, { column, rounding }) {
  const root = (square) => wholeRoot(square << 80n) + 1n;
  const length = (root(column * squared) + root(touched * rounding)) ** 2n;
  return (length >> 80n) + (length & ((1n << 80n) - 1n) ? 1n : 0n);
}

function strategyFrom(value) {
  if (value?.name === "interval sums") {
    fields(value, ["name", "horizon", "base", "levels"]);
    const horizon = whole(value.horizon, 1, MOST_STEPS);
    const base = whole(value.base, 2, MOST_STEPS);
    const levels = whole(value.levels, 1, 16);
    require(base ** (levels - 1) <= horizon);
    return { horizon, base, levels };
  }
  fields(value, ["name", "horizon", "fraction_bits", "decays", "weights"]);
  require(value.name === "factorisation");
  const shares = (each) => list(each, MOST_BUFFERS).map((number) => whole(number, 0, WHOLE) / WHOLE);
  const [decays, weights] = [shares(value.decays), shares(value.weights)];
  require(decays.length === weights.length && decays.every((each) => each < 1));
  require(weights.reduce((a, b) => a + b, 0.0) <= 1);
  const exact = { decays: value.decays.map(BigInt), weights: value.weights.map(BigInt) };
  return { horizon: whole(value.horizon, 1, MOST_STEPS), unit: 2 ** whole(value.fraction_bits, 0, 32), decays, weights, whole: exact };
}

function viewFrom(value) {
  fields(value, ["window", "decay"]);
  const window = value.window === null ? null : whole(value.window, 1, Number.MAX_SAFE_INTEGER);
  const decay = value.decay === null ? null : rational(value.decay).value;
  require(window === null || decay === null);
  require(decay === null || (decay > 0 && decay < 1));
  return { window, decay };
}

/** What the noise of each output so far weighs in what a step shows. */
function rowOf({ strategy, view, step }) {
  return strategy.base === undefined ? factorisedRow(strategy, view, step) : intervalsRow(strategy, view, step);
}

function factorisedRow({ unit, decays, weights }, view, step) {
  // The increments that are read back from an output of 1 at the first step, and 0 at all others.
  const buffers = new Float64Array(decays.length);
  const increments = new Float64Array(step);
  for (let at = 0; at < step; at += 1) {
    const found = (at === 0 ? 1.0 : 0.0) - buffers.reduce((sum, each) => sum + each, 0.0);
    for (let i = 0; i < buffers.length; i += 1) buffers[i] = decays[i] * buffers[i] + weights[i] * found;
    increments[at] = found;
  }
  return seriesOf(view, increments).reverse().map((each) => each / unit);
}

/** Sums, windows or decayed sums of a series. */
function seriesOf({ window, decay }, increments) {
  const found = new Float64Array(increments.length);
  let total = 0.0;
  for (let at = 0; at < increments.length; at += 1) {
    total = (decay === null ? 1.0 : decay) * total + increments[at];
    if (window !== null && at >= window) total -= increments[at - window];
    found[at] = total;
  }
  return found;
}

function intervalsRow(strategy, { window, decay }, step) {
  if (decay !== null) {
    require(strategy.levels === 1);
    return Float64Array.from({ length: step }, (_, at) => decay ** (step - 1 - at));
  }
  const row = new Float64Array(step);
  for (const end of intervals(strategy, step)) row[end - 1] += 1.0;
  if (window !== null && window < step) for (const end of intervals(strategy, step - window)) row[end - 1] -= 1.0;
  return row;
}

/** The steps whose outputs make up the running sum at a step. */
function intervals({ base, levels }, step) {
  const longest = base ** (levels - 1);
  const ends = [];
  let at = step;
  while (at % longest) {
    ends.push(at);
    let level = 0;
    while (level < levels - 1 && at % base ** (level + 1) === 0) level += 1;
    at -= base ** level;
  }
  for (; at > 0; at -= longest) ends.push(at);
  return ends;
}

/** The covariance of the noise that two steps of one stream have in a cell, and in the number of records. */
export function stepCovariance(first, second) {
  const [one, other] = [rowOf(first), rowOf(second)];
  let gain = 0.0;
  for (let at = 0; at < Math.min(one.length, other.length); at += 1) gain += one[at] * other[at];
  return { cell: first.table * gain, count: first.count * gain };
}

/**
 * The change from one step of a stream to another, as a function that answers sums: tables are subtracted cell by cell, so
 * that noise which both steps share cancels, and approximation errors are those of the change alone.
 *
 * @throws {QueryRefused} unless both are steps of one stream
 */
export function changeBetween(before, after) {
  const [from, to] = [before.streamStep, after.streamStep];
  if (!from || !to || from.stream !== to.stream || before.table.length !== after.table.length)
    throw new QueryRefused("A change is between two steps of one stream.");
  const covariance = stepCovariance(from, to);
  const table = Float64Array.from(after.table, (value, at) => value - before.table[at]);
  // Two equal steps share all of their noise; rounding must not make the rest negative.
  const spread = (one, other, both) => Math.max(one + other - 2.0 * both, 0.0);
  return after.changed({
    table,
    records: before.count + after.count,
    cellVariance: spread(before.cellVariance, after.cellVariance, covariance.cell),
    noisyCount: after.noisyCount - before.noisyCount,
    countNoiseVariance: spread(before.countNoise.variance, after.countNoise.variance, covariance.count),
  });
}
