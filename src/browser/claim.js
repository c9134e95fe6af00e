// The privacy claim of a release: checked, and in plain words.
import { bigWhole, fields, flag, list, rational, require, text, whole } from "./header.js";
import { wholeRoot } from "./special_functions.js";

const UNITS = ["record", "person", "adjacency row", "edge", "directed edge"];
const NAMES = [
  "epsilon", "delta", "rho", "unit", "records_per_unit", "relation", "mechanism", "arithmetic", "secure",
]; // prettier-ignore

/** The claim of a header: numbers, and a sentence. */
export function claimFrom(value) {
  fields(value, NAMES, ["assumptions", "trust"]);
  const [epsilon, rho] = [value.epsilon, value.rho].map((each) => (each === null ? null : positive(each)));
  const delta = rational(value.delta);
  require((epsilon === null) !== (rho === null));
  require(delta.value >= 0 && delta.value < 1 && (delta.numerator === 0n || delta.value > 0));
  require(rho === null || delta.numerator === 0n);
  require(UNITS.includes(text(value.unit)));
  require(value.relation === "add/remove" || value.relation === "replace");
  bigWhole(value.records_per_unit, 1n, 1n << 200n);
  const claim = {
    epsilon: epsilon === null ? null : epsilon.value,
    delta: delta.value,
    rho: rho === null ? null : rho.value,
    exact: { epsilon: value.epsilon, delta: value.delta, rho: value.rho },
    unit: value.unit,
    recordsPerUnit: value.records_per_unit,
    relation: value.relation,
    mechanism: text(value.mechanism),
    arithmetic: text(value.arithmetic),
    secure: flag(value.secure),
    assumptions: list(value.assumptions ?? []).map(text),
    trust: "trust" in value ? trustFrom(value.trust) : null,
  };
  return { ...claim, sentence: sentence(claim) };
}

const PUBLIC_SAMPLE = "the sample that parameters and answers were derived from is public";

/** The claim of a function that is read together with public points, which states that they are public. */
export function withPublicSample(claim) {
  if (claim.assumptions.includes(PUBLIC_SAMPLE)) return claim;
  const stated = { ...claim, assumptions: [...claim.assumptions, PUBLIC_SAMPLE] };
  return { ...stated, sentence: sentence(stated) };
}

const SECURE_AGGREGATION = "secure aggregation";
const SITE_NOISE = "site noise";

/** How several parties made the release; null where one holder of the data did. */
function trustFrom(value) {
  fields(value, ["model", "parties", "dropouts", "colluding"]);
  require([SECURE_AGGREGATION, SITE_NOISE].includes(value.model));
  const parties = whole(value.parties, 1, 2 ** 40);
  const dropouts = whole(value.dropouts, 0, parties);
  const colluding = whole(value.colluding, 0, parties);
  require(parties - dropouts - colluding >= 1);
  return { model: value.model, parties, dropouts, colluding };
}

function trusted({ model, parties, dropouts, colluding }) {
  if (model === SITE_NOISE)
    return (
      `Each of ${parties} sites added noise of its own before anything left it, and the results were added; the ` +
      "claim of a site's records rests on that site alone."
    );
  const others = colluding
    ? ` and up to ${colluding} of these sites, alone or together`
    : ", and not against the sites themselves, each of which knows its own share of the noise";
  return (
    `At least ${parties - dropouts} of ${parties} sites added noise inside a sum that nobody sees without it; ` +
    `the claim holds against the server${others}.`
  );
}

function positive(value) {
  const number = rational(value);
  require(number.numerator > 0n && number.value > 0 && Number.isFinite(number.value));
  return number;
}

function unitInWords({ unit, recordsPerUnit }) {
  if (unit === "person") return `person (with up to ${recordsPerUnit} records)`;
  if (unit.endsWith("edge") && recordsPerUnit > 1) return `${unit} (listed in up to ${recordsPerUnit} graphs)`;
  return unit === "adjacency row" ? `${unit} (the neighbours of one node in one list of edges)` : unit;
}

function sentence(claim) {
  const trust = claim.trust === null ? [] : [trusted(claim.trust)];
  return [promised(claim), ...trust, ...claim.assumptions.map((each) => `This assumes that ${each}.`)].join(" ");
}

/** As Hushsum says it in Python, so that a reader finds the same words everywhere. */
function promised(claim) {
  if (!claim.secure) return "No protection: the noise came from a seed, for tests only.";
  const who = `one ${unitInWords(claim)}`;
  const what = claim.relation === "add/remove" ? "is in the data or is not" : "is this one or another";
  const plain = inPlainWords(claim);
  if (claim.rho !== null)
    return `${significant(claim.rho)}-zero-concentrated differential privacy: it hides whether ${who} ${what}${plain}`;
  if (claim.delta)
    return (
      "Whatever anyone knows or computes, the probability of any set of answers changes to at most " +
      `e^${significant(claim.epsilon)} times itself plus ${significant(claim.delta)} because ${who} ${what}${plain}`
    );
  return (
    `Whatever anyone knows or computes, no answer is more than e^${significant(claim.epsilon)} times as ` +
    `likely or unlikely because ${who} ${what}${plain}`
  );
}

/** How the sentence ends: the factor, and how often a guess is right, as bounds for people; as in Python. */
function inPlainWords(claim) {
  const factor = claim.epsilon === null ? "" : `: ${times(claim.epsilon)}`;
  return (
    `${factor}. A guess which of the two it is, by somebody who knows everything else, is right at most ` +
    `${inHundred(bestGuess(claim))} times in 100.`
  );
}

const MOST_TIMES = 1e6;
const ROUNDING = 1e-9;

/** How often a guess between neighbouring datasets is right at most; the proof is in Python. */
function bestGuess({ epsilon, delta, rho }) {
  if (rho !== null) return (1 + Math.min(Math.sqrt(rho / 2), Math.sqrt(-Math.expm1(-rho)))) / 2;
  const odds = Math.exp(-epsilon);
  return Math.min(1, (1 + odds * delta) / (1 + odds));
}

/** e^ε with three digits, never rounded down. */
function times(epsilon) {
  if (epsilon >= Math.log(MOST_TIMES)) return "a factor above a million";
  const places = 2 - Math.floor(Math.log10(Math.exp(epsilon)));
  const rounded = Math.ceil(Math.exp(epsilon) * 10 ** places - ROUNDING) / 10 ** places;
  const [whole, part] = rounded.toFixed(Math.max(places, 0)).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return `at most ${part === undefined ? grouped : `${grouped}.${part}`} times as likely`;
}

/** A probability in whole percent, or with places where it is nearly certain; never rounded down. */
function inHundred(probability) {
  for (let places = 0; places < 4; places += 1) {
    const rounded = Math.ceil(100 * probability * 10 ** places - ROUNDING) / 10 ** places;
    if (rounded < 100) return rounded.toFixed(places);
  }
  return "100";
}

/** Fifteen significant digits, as Python's format ".15g". */
function significant(value) {
  const [mantissa, power] = value.toExponential(14).split("e");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 15) return String(Number(value.toPrecision(15)));
  const size = String(Math.abs(exponent)).padStart(2, "0");
  return `${String(Number(mantissa))}e${exponent < 0 ? "-" : "+"}${size}`;
}

export const LAPLACE = "discrete laplace";
export const GAUSSIAN = "discrete gaussian";
const GAMMA = "gamma radius";
const BINOMIAL = "binomial";
const SKELLAM = "skellam";
const SUM = "sum";
const NONE = "none";
const MOST_TERMS = 2 ** 16;
export const SUMS = ["factorised discrete gaussian", "interval sums discrete laplace"];

/** The distribution of noise on integers: its mechanism and the variance of one draw. */
export function noiseFrom(value) {
  if (value?.mechanism === SUM) return sumFrom(value);
  const { times: _, ...distribution } = value ?? {};
  require([LAPLACE, GAUSSIAN, GAMMA, BINOMIAL, SKELLAM, NONE, ...SUMS].includes(distribution.mechanism));
  const shared = distribution.mechanism === GAMMA;
  const optional = distribution.mechanism === LAPLACE ? ["parts"] : [];
  fields(distribution, shared ? ["mechanism", "parameter", "cells"] : ["mechanism", "parameter"], optional);
  const cells = shared ? whole(distribution.cells, 1, Number.MAX_SAFE_INTEGER) : 1;
  const parts = whole(distribution.parts ?? 1, 1, MOST_TERMS);
  const parameter = rational(distribution.parameter);
  const variance = noiseVariance(distribution.mechanism, parameter.value, cells) / parts;
  require(Number.isFinite(variance) && variance >= 0);
  return { mechanism: distribution.mechanism, exact: parameter, cells, parts, variance, public: distribution.mechanism === NONE };
}

/** The sum of independent noises, each added a number of times. */
function sumFrom(value) {
  fields(value, ["mechanism", "terms"]);
  require(list(value.terms).length >= 1 && value.terms.length <= MOST_TERMS);
  const terms = value.terms.map((each) => {
    require(each?.mechanism !== SUM);
    return { times: whole(each.times, 1, MOST_TERMS), noise: noiseFrom(each) };
  });
  const variance = terms.reduce((sum, { times, noise }) => sum + times * noise.variance, 0);
  return { mechanism: SUM, terms, variance, public: false };
}

/** The noises that a claim rests on, each of which must keep it alone; as in Python. */
function protecting(trust, noise, countNoise) {
  if (trust === null) return noise.mechanism === SUM || countNoise.mechanism === SUM ? [] : [[noise, countNoise]];
  const { parties, dropouts, colluding } = trust;
  if (trust.model === SITE_NOISE) {
    const [tables, counts] = [each(noise, parties), each(countNoise, parties)];
    return tables.length === counts.length ? tables.map((table, i) => [table, counts[i]]) : [];
  }
  const parts = [noise, countNoise].map((distribution) => honestPart(distribution, parties - dropouts, parties - dropouts - colluding));
  return parts.includes(null) ? [] : [parts];
}

function each(noise, parties) {
  if (noise.public) return Array(Math.min(parties, MOST_TERMS)).fill(noise);
  const found = noise.mechanism === SUM ? noise.terms.flatMap((term) => Array(term.times).fill(term.noise)) : [noise];
  return found.length === parties ? found : [];
}

/** The sum of the shares of the honest sites, as one noise that is no larger; null if there are too few. */
function honestPart(noise, least, honest) {
  if (noise.public) return noise;
  if (noise.mechanism === LAPLACE && noise.parts === 1) return honest === least ? noise : null;
  const terms = noise.mechanism === SUM ? noise.terms : [{ times: 1, noise }];
  if (terms.length !== 1 || terms[0].times < least) return null;
  const share = terms[0].noise;
  if (share.mechanism === LAPLACE) return share.parts <= honest ? { ...share, parts: 1 } : null;
  if (![GAUSSIAN, SKELLAM].includes(share.mechanism)) return null;
  // The sum of several shares of a smaller variance than 4 is no discrete Gaussian.
  if (share.mechanism === GAUSSIAN && honest > 1 && share.exact.numerator < 4n * share.exact.denominator) return null;
  return { ...share, exact: { ...share.exact, numerator: share.exact.numerator * BigInt(honest) } };
}

/**
 * Refuse a file whose noise cannot keep its claim, as Python does: it finds mistakes, not forgery.
 *
 * @param {object} claim
 * @param {object} noise of the cells
 * @param {object} countNoise of the number of records
 * @param {{l1: bigint | null, l2Squared: bigint | null}} moved what one record added or replaced moves; null where it is not known
 * @param {number} cells of the table
 */
export function checkNoise(claim, noise, countNoise, moved, cells) {
  const noises = protecting(claim.trust, noise, countNoise);
  require(noises.length >= 1);
  for (const [table, count] of noises) checkOne(claim, table, count, moved, cells);
}

function checkOne(claim, noise, countNoise, moved, cells) {
  const gaussian = noise.mechanism === GAUSSIAN;
  const shared = noise.mechanism === GAMMA;
  const person = claim.unit === "person";
  const known = person || claim.unit === "record";
  const many = person ? BigInt(claim.recordsPerUnit) : 1n;
  const counted = claim.relation === "replace" && !person ? 0n : many;
  require((noise.parts ?? 1) === 1 && (countNoise.parts ?? 1) === 1);
  // Pure ε, of Laplace noise, adds to anything but ρ.
  const distributions = [...(shared ? [] : [noise.mechanism]), ...(claim.rho === null ? [LAPLACE] : [])];
  require(!known || counted === 0n || distributions.includes(countNoise.mechanism));
  // Moments of the loss, which the audit sums.
  if (noise.mechanism === SKELLAM) return require(claim.rho !== null || claim.delta > 0);
  // With δ the audit recomputes it, which takes longer; pure ε is checked below.
  // Of a table of which some rows were published, the cells are those of the whole.
  require(!shared || noise.cells >= cells);
  if (claim.delta > 0 && noise.mechanism !== LAPLACE) return require(gaussian || shared || noise.mechanism === BINOMIAL);
  require(claim.epsilon === null ? gaussian : shared || noise.mechanism === LAPLACE);
  if (!known) return undefined;
  const { numerator: over, denominator: under } = noise.exact;
  const count = counted === 0n ? { numerator: 1n, denominator: 1n } : countNoise.exact;
  const promised = rational(claim.exact.epsilon ?? claim.exact.rho);
  // spent = x/(table) + y/(count), compared with the promise without any division.
  const keeps = (x, y, scale = 1n) =>
    (x * under * count.numerator + y * count.denominator * over * scale) * promised.denominator <=
    promised.numerator * over * scale * count.numerator;
  if (noise.mechanism === LAPLACE) return require(moved.l1 === null || keeps(moved.l1 * many, counted));
  if (moved.l2Squared === null) return undefined;
  const squared = moved.l2Squared * many * many;
  // The root of the square, from above, in units of 2^-40.
  if (shared) return require(keeps(wholeRoot(squared << 80n) + 1n, counted, 1n << 40n));
  // Both halves of ρ are halved: 2ρ is what the squares over the variances may be.
  promised.numerator *= 2n;
  return require(keeps(squared, counted * counted));
}

function noiseVariance(mechanism, parameter, cells) {
  if (mechanism === NONE) return 0.0;
  // The noise of a step of a stream is a sum of draws, and its parameter is its variance.
  if (SUMS.includes(mechanism)) return parameter;
  if (mechanism === SKELLAM) {
    require(parameter >= 2 ** -20 && parameter <= 2 ** 12);
    return parameter;
  }
  require(parameter >= 2 ** -40 && parameter <= (mechanism === GAUSSIAN ? 2 ** 78 : 2 ** 40));
  if (mechanism === BINOMIAL) {
    require(parameter % 2 === 0 && parameter >= 2 && parameter <= 2 ** 22);
    return parameter / 4;
  }
  if (mechanism === GAMMA) return parameter ** 2 * (cells + 1) + 1.0 / 12.0;
  if (mechanism === LAPLACE) {
    const half = 0.5 / parameter;
    return half < 100 ? 0.5 / Math.sinh(half) ** 2 : 2 * Math.exp(-2 * half);
  }
  if (parameter >= 1) {
    const terms = [1, 2].map((n) => [n, Math.exp(-2 * Math.PI ** 2 * parameter * n * n)]);
    const over = terms.reduce((sum, [n, term]) => sum + n * n * term, 0);
    const under = terms.reduce((sum, [, term]) => sum + term, 0);
    return parameter - 4 * Math.PI ** 2 * parameter * (parameter * ((2 * over) / (1 + 2 * under)));
  }
  let [over, under] = [0, 0];
  for (let z = 1; z < 12; z += 1) {
    const weight = Math.exp((-z * z) / (2 * parameter));
    over += z * z * weight;
    under += weight;
  }
  return (2 * over) / (1 + 2 * under);
}
