// Answers with error bars: intervals of sums, and of sums over an estimated number of records.
import { quantile } from "./special_functions.js";

const LEAST_SQUARE = 0.01;

/** Values, standard errors and intervals of some queries, and the largest standard error that any data could have. */
export class Answers {
  constructor(number, level) {
    this.level = level;
    for (const name of ["value", "stderr", "lower", "upper", "bound"]) this[name] = new Float64Array(number);
  }

  get length() {
    return this.value.length;
  }
}

/** Sums that are about normal: ± reach standard errors. */
export function setSum(answers, i, sum, variance, largest, reach) {
  const stderr = Math.sqrt(variance);
  answers.value[i] = sum;
  answers.stderr[i] = stderr;
  answers.lower[i] = sum - reach * stderr;
  answers.upper[i] = sum + reach * stderr;
  answers.bound[i] = Math.sqrt(largest);
}

/**
 * A sum over the number of records, both estimated: all r for which sum − r·number is within `reach` standard
 * deviations of 0 (Fieller's interval).
 */
export function setMean(answers, i, sum, variance, largest, reach, number, numberVariance, covariance = 0.0) {
  const value = sum / number;
  const spread = (own) => {
    const total = own + value * value * numberVariance - 2.0 * value * covariance;
    return Math.sqrt(Math.max(total, 0.0)) / number;
  };
  answers.value[i] = value;
  answers.stderr[i] = spread(variance);
  answers.bound[i] = spread(largest);
  const square = reach * reach;
  const a = number ** 2 - square * numberVariance;
  const b = sum * number - square * covariance;
  const c = sum ** 2 - square * variance;
  const within = Math.max(a, LEAST_SQUARE * number ** 2);
  const inside = b * b - a * c;
  if (inside < 0.0) {
    const whole = (Math.abs(b) + reach * Math.sqrt(variance) * number) / within;
    answers.lower[i] = -whole;
    answers.upper[i] = whole;
    return;
  }
  // Of the two solutions the one nearer to 0 is c/(b ± root), whatever the sign of a.
  const far = b + (b < 0.0 ? -1.0 : 1.0) * Math.sqrt(inside);
  const near = far !== 0.0 ? c / far : 0.0;
  const ends = [near, far / within];
  answers.lower[i] = Number.isNaN(ends[0] + ends[1]) ? NaN : Math.min(...ends);
  answers.upper[i] = Number.isNaN(ends[0] + ends[1]) ? NaN : Math.max(...ends);
}

export { quantile };
