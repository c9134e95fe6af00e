// Two functions of the same columns: one over the other, or their difference with its error.

import { kernelInWords } from "../format.js";

/**
 * Whether a function can be compared with another: the same columns and the same readings. Steps of one stream share noise;
 * their change is shown by the film.
 */
export function comparable(one, other) {
  return one.id !== other.id && (one.stream === null || one.stream !== other.stream) && one.kind === "number" && other.kind === "number" &&
    one.questions === null && other.questions === null &&
    one.names.length === other.names.length && one.names.every((name, at) => name === other.names[at]) &&
    one.readings.every(([of, name], at) => other.readings[at]?.[0] === of && other.readings[at][1] === name);
}

/** Why a comparison may say little, or null. */
export function caution(one, other) {
  const [first, second] = [one, other].map(({ kernel }) => (kernel ? kernelInWords(kernel) : null));
  return first === second ? null : `They count nearness differently: ${first} against ${second}.`;
}

/**
 * The difference of two lists of answers. Every release draws noise of its own, so the squares of standard errors add up,
 * and so do those of the intervals' arms. Approximation errors of functions that share hashes partly cancel; then this is
 * larger than need be. Of functions whose noise depends on each other in an unknown way, errors add up at most: `joined`.
 */
export function difference(one, other, joined = Math.hypot) {
  const each = (pick) => one.value.map((_, at) => pick(at));
  const known = (...values) => values.every((value) => value !== null && value !== undefined);
  const value = each((at) => (known(one.value[at], other.value[at]) ? one.value[at] - other.value[at] : null));
  const arm = (at, up) => {
    const [first, second] = up
      ? [one.upper[at] - one.value[at], other.value[at] - other.lower[at]]
      : [one.value[at] - one.lower[at], other.upper[at] - other.value[at]];
    return joined(first, second);
  };
  const bounded = (at) =>
    known(value[at], one.lower[at], one.upper[at], other.lower[at], other.upper[at]);
  return {
    value,
    stderr: each((at) => (known(one.stderr[at], other.stderr[at]) ? joined(one.stderr[at], other.stderr[at]) : null)),
    lower: each((at) => (bounded(at) ? value[at] - arm(at, false) : null)),
    upper: each((at) => (bounded(at) ? value[at] + arm(at, true) : null)),
    label: null,
    scores: null,
  };
}
