// Kernels as sums of products over columns, which is how a grid reads them: {height, scales, gaussian} by column.
import { isCombination, isProduct, isScaled } from "./kernels.js";
import { nonnegativeLeastSquares } from "./least_squares.js";
import { affordable, require } from "./header.js";
import { unsupported } from "./refusal.js";

const RATIO = 1.6;
const TAIL = 1e-3;
const FINEST = 0.25;
const MOST_PROFILES = 128;
const MOST_SCALES = 64;

/** The profiles of a kernel, for nodes `spacings` apart in a box of `sides`. */
export function profilesOf(kernel, spacings, sides) {
  const found = listed(kernel, spacings, sides);
  if (found.length > MOST_PROFILES)
    throw unsupported(`This page does not read a kernel that is a sum of ${found.length} products over columns`);
  return found;
}

function listed(kernel, spacings, sides) {
  if (isScaled(kernel)) {
    const { units } = kernel;
    const own = listed(kernel.kernel, spacings.map((each, i) => each / units[i]), sides.map((each, i) => each / units[i]));
    return own.map((each) => ({ ...each, scales: each.scales.map((scale, i) => scale * units[i]) }));
  }
  if (isCombination(kernel))
    return kernel.components.flatMap(({ weight, kernel: own }) =>
      listed(own, spacings, sides).map((each) => ({ ...each, height: weight * each.height })),
    );
  if (isProduct(kernel)) {
    require(kernel.divided);
    const found = kernel.factors.map((factor) =>
      listed(factor.kernel, factor.columns.map((c) => spacings[c]), factor.columns.map((c) => sides[c])).map(
        (profile) => [factor.columns, profile],
      ),
    );
    const number = found.reduce((product, each) => product * each.length, 1);
    if (number > MOST_PROFILES)
      throw unsupported(`This page does not read a kernel that is a sum of ${number} products over columns`);
    return found
      .reduce((chosen, each) => chosen.flatMap((some) => each.map((one) => [...some, one])), [[]])
      .map((chosen) => joined(chosen, kernel.dim));
  }
  if (kernel.name === "gaussian") return [everywhere(kernel.dim, 1.0, kernel.width, true)];
  if (kernel.name === "laplacian") return [everywhere(kernel.dim, 1.0, kernel.width, false)];
  if (kernel.name === "euclidean" || kernel.name === "matern")
    return fitted(kernel, spacings, Math.hypot(...sides), true);
  if (kernel.name === "manhattan") return fitted(kernel, spacings, sides.reduce((a, b) => a + b, 0), false);
  throw unsupported(`This page does not read the kernel ${kernel.name} from a grid`);
}

function everywhere(dim, height, scale, gaussian) {
  return { height, scales: new Array(dim).fill(scale), gaussian: new Array(dim).fill(gaussian) };
}

function joined(chosen, dim) {
  const profile = everywhere(dim, 1.0, 1.0, true);
  for (const [columns, own] of chosen) {
    profile.height *= own.height;
    columns.forEach((column, place) => {
      profile.scales[column] = own.scales[place];
      profile.gaussian[column] = own.gaussian[place];
    });
  }
  return profile;
}

/** A kernel as a mixture of Gaussians or exponentials, fitted at distances from 0 to the diameter of the box. */
function fitted(kernel, spacings, diameter, gaussian) {
  const low = Math.min(FINEST * Math.max(...spacings), kernel.width / 4.0);
  const high = Math.max(4.0 * diameter, 8.0 * low);
  const steps = Math.ceil(Math.log(high / low) / Math.log(RATIO)) + 1;
  affordable(steps <= MOST_SCALES, "A kernel that is so narrow beside the box");
  const scales = Array.from({ length: steps }, (_, i) => low * RATIO ** i);
  const distances = [0.0, ...geometric(low / 4.0, Math.max(diameter, low), 400)];
  const origin = new Float64Array(kernel.dim);
  const values = distances.map((distance) => {
    const row = new Float64Array(kernel.dim);
    row[0] = Math.fround(distance);
    return kernel.similarity(row, origin);
  });
  const weights = values.map((value) => 1.0 / Math.max(value, TAIL));
  const columns = scales.map((scale) =>
    Float64Array.from(distances, (distance, i) => {
      const ratio = distance / scale;
      return weights[i] * (gaussian ? Math.exp(-0.5 * ratio ** 2) : Math.exp(-ratio));
    }),
  );
  const heights = nonnegativeLeastSquares(columns, Float64Array.from(values, (value, i) => value * weights[i]));
  return scales
    .map((scale, i) => everywhere(kernel.dim, heights[i], scale, gaussian))
    .filter(({ height }) => height > 1e-12);
}

function geometric(from, to, number) {
  const [first, last] = [Math.log10(from), Math.log10(to)];
  return Array.from({ length: number }, (_, i) => {
    if (i === 0) return from;
    return i === number - 1 ? to : 10 ** (first + (i * (last - first)) / (number - 1));
  });
}
