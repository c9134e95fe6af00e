// Numbers to pixels, and where an axis has its ticks.

/** A map from an interval to an interval, and back. */
export function linear([low, high], [from, to]) {
  const size = high - low || 1;
  const scale = (value) => from + ((value - low) / size) * (to - from);
  scale.inverse = (pixel) => low + ((pixel - from) / (to - from)) * size;
  scale.domain = [low, high];
  return scale;
}

/** At most about `count` ticks at 1, 2 or 5 times a power of ten inside the interval. */
export function ticks([low, high], count) {
  const size = high - low;
  if (!(size > 0) || !Number.isFinite(size)) return [low];
  const rough = size / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999999);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** The smallest interval with these numbers in it; never empty. */
export function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const each of values) {
    if (each === null || !Number.isFinite(each)) continue;
    if (each < low) low = each;
    if (each > high) high = each;
  }
  if (low > high) return [0, 1];
  if (low === high) return [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  return [low, high];
}

/** The same with some air; an end at zero stays there. */
export function roomy(values) {
  const [low, high] = extent(values);
  const air = (high - low) * 0.05;
  return [low === 0 ? 0 : low - air, high === 0 ? 0 : high + air];
}

/** The words at ticks: just enough places to distinguish neighbours. */
export function tickTexts(at) {
  const largest = Math.max(...at.map(Math.abs));
  const step = at.length > 1 ? Math.abs(at[1] - at[0]) : largest || 1;
  if (largest >= 1e6 || (largest > 0 && largest < 1e-3)) {
    return at.map((
      each,
    ) => (each === 0
      ? "0"
      : each.toExponential(Math.max(0, Math.floor(Math.log10(largest)) - Math.floor(Math.log10(step))))
        .replace("-", "−").replace("e+", "e"))
    );
  }
  const places = Math.min(8, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  return at.map((each) =>
    each.toLocaleString("en", {
      minimumFractionDigits: places,
      maximumFractionDigits: places,
      useGrouping: largest >= 1e4,
    }).replace("-", "−")
  );
}

/** `number` numbers from low to high, both included. */
export const spread = ([low, high], number) =>
  Array.from({ length: number }, (_, at) => low + ((high - low) * at) / (number - 1));
