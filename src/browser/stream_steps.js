// Steps of a stream: how the noise of two of them goes together, and the change between them with its error.
import { noiseFrom } from "./claim.js";
import { fields, list, rational, require, text, whole } from "./header.js";
import { QueryRefused } from "./refusal.js";

const MOST_STEPS = 2 ** 14;
const MOST_BUFFERS = 8;
const WHOLE = 2 ** 24;

/** Which step of which stream a table is, and the noise of every output of the stream; as `StreamStep` in Python. */
export function stepFrom(value) {
  fields(value, ["stream", "step", "removals", "noise"]);
  fields(value.noise, ["strategy", "view", "table", "count"]);
  require(/^[0-9a-f]{32}$/.test(text(value.stream)) && typeof value.removals === "boolean");
  const strategy = strategyFrom(value.noise.strategy);
  return {
    stream: value.stream,
    step: whole(value.step, 1, strategy.steps),
    steps: strategy.steps,
    strategy,
    view: viewFrom(value.noise.view),
    table: noiseFrom(value.noise.table).variance,
    count: noiseFrom(value.noise.count).variance,
  };
}

function strategyFrom(value) {
  if (value?.name === "interval sums") {
    fields(value, ["name", "steps", "base", "levels"]);
    const steps = whole(value.steps, 1, MOST_STEPS);
    const base = whole(value.base, 2, MOST_STEPS);
    const levels = whole(value.levels, 1, 16);
    require(base ** (levels - 1) <= steps);
    return { steps, base, levels };
  }
  fields(value, ["name", "steps", "fraction_bits", "decays", "weights"]);
  require(value.name === "factorisation");
  const shares = (each) => list(each, MOST_BUFFERS).map((number) => whole(number, 0, WHOLE) / WHOLE);
  const [decays, weights] = [shares(value.decays), shares(value.weights)];
  require(decays.length === weights.length && decays.every((each) => each < 1));
  return { steps: whole(value.steps, 1, MOST_STEPS), unit: 2 ** whole(value.fraction_bits, 0, 32), decays, weights };
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
