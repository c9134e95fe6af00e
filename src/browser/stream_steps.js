// Steps of a stream: how the noise of two of them goes together, and the change between them with its error.
import { GAUSSIAN, LAPLACE, SUMS, noiseFrom } from "./claim.js";
import { fields, list, rational, require, text, whole } from "./header.js";
import { QueryRefused } from "./refusal.js";
import { wholeRoot } from "./special_functions.js";

const MOST_STEPS = 2 ** 14;
const LAST_STEP = 2 ** 40;
const FAR = 2 ** 24;
const MOST_BUFFERS = 12;
const WHOLE = 2 ** 24;
const DECAY_BITS = 24n;
const STATE_BITS = 6n;
const RENEWAL_BITS = 28;
const BOUND_BITS = 60n;
// Python rounds the computed variance upwards by 10⁻⁶ and allows 10⁻⁵: what is within this it reads.
const CLOSE = 8e-6;

/** Which step of which stream a table is, and the noise of every output of the stream; as `StreamStep` in Python. */
export function stepFrom(value) {
  fields(value, ["stream", "step", "removals", "noise"]);
  fields(value.noise, ["strategy", "view", "table", "count", "count_bits"]);
  require(/^[0-9a-f]{32}$/.test(text(value.stream)) && typeof value.removals === "boolean");
  const strategy = strategyFrom(value.noise.strategy);
  const view = viewFrom(value.noise.view);
  const noises = [value.noise.table, value.noise.count].map(noiseFrom);
  const intervals = strategy.base !== undefined;
  const bits = whole(value.noise.count_bits, 0, 32);
  require(noises.every(({ mechanism, parts }) => mechanism === (intervals ? LAPLACE : GAUSSIAN) && parts === 1));
  require(!intervals || view.decay === null || strategy.levels === 1);
  return {
    stream: value.stream,
    step: whole(value.step, 1, strategy.horizon ?? LAST_STEP),
    horizon: strategy.horizon,
    removals: value.removals,
    strategy,
    view,
    table: noises[0].variance,
    countBits: bits,
    count: noises[1].variance / 4 ** bits,
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
  const gain = covarianceOf(found, found.step, found.step);
  require(gain > 0 && gain < Infinity);
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
  // The number of records enters with a power of two for each.
  const finer = 1n << BigInt(found.countBits);
  // Without a horizon, records with which a unit changes may be in different outputs.
  const apart = found.horizon === null ? changes[1].l1 : 1n;
  [changes[1].l1, changes[1].squared] = [changes[1].l1 * finer, changes[1].squared * finer ** 2n];
  const lengths = pure
    ? changes.map(({ l1 }) => BigInt(found.strategy.levels) * l1)
    : changes.map(({ squared, touched }) => lengthAbove({ squared, touched: apart * touched }, boundsOf(found.strategy)));
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

/** Bounds on ‖c‖² and ‖e‖² of a factorisation, in integers rounded upwards; as `_bounds` in Python. */
function boundsOf({ horizon, unit, periods, whole: { decays, weights } }) {
  const up = (number, bits) => -(-number >> bits);
  const one = 1n << BOUND_BITS;
  const reach = horizon ?? 2 ** RENEWAL_BITS;
  const levels = reach.toString(2).length;
  const pairs = decays.flatMap((_, i) => decays.slice(0, i + 1).map((_, j) => [i, j]));
  const left = decays.map(() => one);
  let sums = pairs.map(() => one);
  const found = [];
  for (let level = 0; level < levels; level += 1) {
    for (let i = 0; i < left.length; i += 1) {
      if (level === periods[i]) left[i] = decays[i] << (BOUND_BITS - DECAY_BITS);
      else if (level > periods[i]) left[i] = up(left[i] ** 2n, BOUND_BITS);
    }
    const products = pairs.map(([i, j]) => up(left[i] * left[j], BOUND_BITS));
    found.push({ sums, products });
    sums = sums.map((each, at) => each + up(each * products[at], BOUND_BITS));
  }
  const total = pairs.map(() => 0n);
  const factors = pairs.map(() => one);
  for (let level = levels - 1; level >= 0; level -= 1) {
    if (Math.floor(reach / 2 ** level) % 2 === 0) continue;
    for (let at = 0; at < pairs.length; at += 1) {
      total[at] += up(factors[at] * found[level].sums[at], BOUND_BITS);
      factors[at] = up(factors[at] * found[level].products[at], BOUND_BITS);
    }
  }
  let column = (BigInt(unit) << STATE_BITS) ** 2n << BOUND_BITS;
  pairs.forEach(([i, j], at) => {
    column += (i === j ? 1n : 2n) * weights[i] * weights[j] * (total[at] - one);
  });
  // The largest error of an output is a sum of fractions: over their common denominator.
  let [over, under] = [0n, 1n];
  for (let i = 0; i < decays.length; i += 1) {
    const often = BigInt(Math.floor(reach / 2 ** periods[i]) + 1);
    const rest = (1n << DECAY_BITS) - decays[i];
    const [a, b] = 1n << DECAY_BITS < often * rest ? [1n << DECAY_BITS, rest] : [often, 1n];
    [over, under] = [over * b + a * under, under * b];
  }
  under <<= STATE_BITS;
  over = decays.length ? over + under : 0n;
  const rounding = BigInt(reach - 1) * over ** 2n;
  return {
    column: up(column, BOUND_BITS + 2n * STATE_BITS),
    rounding: rounding / under ** 2n + (rounding % under ** 2n ? 1n : 0n),
  };
}

/** The square of ‖c‖·√squared + √touched·‖e‖, rounded upwards; roots from above by 2⁻⁴⁰ at most. */
function lengthAbove({ squared, touched }, { column, rounding }) {
  const root = (square) => wholeRoot(square << 80n) + 1n;
  const length = (root(column * squared) + root(touched * rounding)) ** 2n;
  return (length >> 80n) + (length & ((1n << 80n) - 1n) ? 1n : 0n);
}

function strategyFrom(value) {
  const horizon = value?.horizon === null ? null : whole(value?.horizon, 1, MOST_STEPS);
  if (value?.name === "interval sums") {
    fields(value, ["name", "horizon", "base", "levels"]);
    const base = whole(value.base, 2, FAR);
    const levels = whole(value.levels, 1, 25);
    require(base ** (levels - 1) <= (horizon ?? FAR));
    return { horizon, base, levels };
  }
  fields(value, ["name", "horizon", "fraction_bits", "decays", "weights", "periods"]);
  require(value.name === "factorisation");
  const bits = whole(value.fraction_bits, 0, 32);
  const numbers = (each, most) => list(each, MOST_BUFFERS).map((number) => whole(number, 0, most));
  const [decays, weights] = [numbers(value.decays, WHOLE - 1), numbers(value.weights, 4 * WHOLE)];
  const periods = numbers(value.periods, RENEWAL_BITS - 1);
  require(decays.length === weights.length && decays.length === periods.length);
  require(weights.reduce((a, b) => a + b, 0) <= 4 * WHOLE);
  const fine = weights.map((each) => (BigInt(each) << (BigInt(bits) + STATE_BITS)) >> DECAY_BITS);
  const unit = 2 ** bits;
  return {
    horizon,
    unit,
    periods,
    decays: decays.map((each) => each / WHOLE),
    shares: fine.map((each) => Number(each) / (unit * 2 ** Number(STATE_BITS))),
    whole: { decays: decays.map(BigInt), weights: fine },
  };
}

function viewFrom(value) {
  fields(value, ["window", "decay"]);
  const window = value.window === null ? null : whole(value.window, 1, Number.MAX_SAFE_INTEGER);
  const decay = value.decay === null ? null : rational(value.decay).value;
  require(window === null || decay === null);
  require(decay === null || (decay > 0 && decay < 1));
  return { window, decay };
}

/** The covariance of what two steps show, for noise of variance 1 in every output. */
function covarianceOf({ strategy, view: { window, decay } }, first, second) {
  const sums = strategy.base === undefined ? factorised(strategy, decay ?? 1.0) : intervals(strategy, decay);
  const between = (a, b) => sums(Math.min(a, b), Math.max(a, b));
  if (window === null) return between(first, second);
  const [one, other] = [first, second].map((step) => Math.max(step - window, 0));
  return between(first, second) - between(first, other) - between(one, second) + between(one, other);
}

const times = (a, b) => a.map((row) => b[0].map((_, j) => row.reduce((sum, each, k) => sum + each * b[k][j], 0.0)));
const turned = (a) => a[0].map((_, j) => a.map((row) => row[j]));
const plus = (a, b) => a.map((row, i) => row.map((each, j) => each + b[i][j]));
const congruent = (a, b) => times(times(a, b), turned(a));
const isSet = (number, level) => Math.floor(number / 2 ** level) % 2 === 1;

/**
 * Covariances of running or decayed sums. What 2^level steps do to the errors of the buffers, and to that of the sum
 * behind them, is a matrix and the covariance of what their draws add; as `_block` in Python.
 */
function factorised({ horizon, unit, decays, shares, periods }, rate) {
  const size = decays.length + 1;
  const noise = [...shares, 1.0];
  const blocks = [];
  /** What is left of the buffers, and of a sum, by what happens after every 2^level steps. */
  const leftBy = (level) => {
    const renewed = horizon === null && level === RENEWAL_BITS;
    return [...decays.map((each, i) => (renewed ? 0.0 : periods[i] === level ? each : 1.0)), 1.0];
  };
  const block = (level) => {
    if (blocks[level]) return blocks[level];
    let steps = noise.map((share, i) =>
      noise.map((_, j) => (j < size - 1 ? (i === j ? 1.0 : 0.0) - share : i === j ? rate : 0.0)),
    );
    let added = noise.map((a) => noise.map((b) => a * b));
    if (level > 0) {
      const half = block(level - 1);
      steps = times(half.steps, half.steps);
      added = plus(congruent(half.steps, half.added), half.added);
    }
    const left = leftBy(level);
    steps = steps.map((row, i) => row.map((each) => left[i] * each));
    added = added.map((row, i) => row.map((each, j) => left[i] * left[j] * each));
    blocks[level] = { steps, added };
    return blocks[level];
  };
  return (low, high) => {
    const levels = high.toString(2).length;
    let joint = noise.map(() => noise.map(() => 0.0));
    for (let level = levels - 1; level >= 0; level -= 1) {
      if (!isSet(low, level)) continue;
      const { steps, added } = block(level);
      joint = plus(congruent(steps, joint), added);
    }
    // From here on what the earlier step shows is fixed, and new draws are independent of it.
    let shared = joint.map((row) => [row[size - 1]]);
    let at = low;
    const go = (level) => {
      shared = times(block(level).steps, shared);
      at += 2 ** level;
    };
    for (let level = 0; level < levels; level += 1) {
      // A block that ends where longer ones do: what decays with these decays now.
      if (at > low && at % 2 ** level === 0) shared = shared.map(([each], i) => [leftBy(level)[i] * each]);
      if (isSet(at, level) && at + 2 ** level <= high) go(level);
    }
    for (let level = levels - 1; level >= 0; level -= 1) if (at + 2 ** level <= high) go(level);
    return shared[size - 1][0] / unit ** 2;
  };
}

/** Covariances of running sums of intervals, or of decayed sums of single steps. */
function intervals({ base, levels }, decay) {
  require(decay === null || levels === 1);
  if (decay !== null)
    return (low, high) => ((1.0 - decay ** (2 * low)) / (1.0 - decay ** 2)) * decay ** (high - low);
  const digit = (step, level) => Math.floor(step / base ** level) % (level < levels - 1 ? base : Infinity);
  return (low, high) => {
    // Of the first digit that differs, the smaller number of intervals is in both; of higher digits all.
    let both = 0;
    for (let level = levels - 1; level >= 0; level -= 1) {
      const [one, other] = [digit(low, level), digit(high, level)];
      both += Math.min(one, other);
      if (one !== other) break;
    }
    return both;
  };
}

/** The covariance of the noise that two steps of one stream have in a cell, and in the number of records. */
export function stepCovariance(first, second) {
  const gain = covarianceOf(first, first.step, second.step);
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
