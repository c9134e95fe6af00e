// Formats numbers, dates, claims and column names for display.

/** The number that a rational such as "3/2" stands for. */
export function exact(text) {
  const [above, below] = String(text ?? 0).split("/");
  return Number(above) / Number(below ?? 1);
}

/** A number with this many significant digits, without padding: 0.0432, 1250, 3.2 × 10⁻⁹. */
export function short(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) {
    const [digit, power] = value.toExponential(digits - 1).split("e");
    const front = minus(String(Number(digit)));
    return `${front === "1" ? "" : `${front} × `}10${superscript(Number(power))}`;
  }
  const rounded = Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size)))));
  return minus(rounded.toLocaleString("en", { maximumSignificantDigits: 12, useGrouping: size >= 1e4 }));
}

/** How to write numbers that have this error: with as many places as it justifies. */
export function writer(error) {
  if (!Number.isFinite(error) || error === null || error <= 0) return (value) => short(value, 4);
  const places = Math.max(0, 1 - Math.floor(Math.log10(error)));
  if (places > 9) return (value) => short(value, 4);
  return (value) => {
    if (value === null || !Number.isFinite(value) || Math.abs(value) >= 1e9) return short(value, 4);
    const digits = { minimumFractionDigits: places, maximumFractionDigits: places };
    return minus(value.toLocaleString("en", { ...digits, useGrouping: Math.abs(value) >= 1e4 }));
  };
}

/** A value and its error: 0.0432 and 0.0021. An error that is not known is "unknown". */
export function withError(value, error) {
  const known = Number.isFinite(error) && error !== null && error > 0 && value !== null;
  const write = writer(error);
  return { value: write(value), error: known ? write(error) : "unknown" };
}

const minus = (text) => text.replace("-", "−");
const superscript = (power) => String(power).replace(/[-\d]/g, (each) => (each === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[each]));

/** A text as a sentence: a capital in front, a full stop behind. */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

/** A count with its noun. */
export const count = (number, noun, plural = `${noun}s`) => `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;

export function bytesInWords(size) {
  if (size < 1000) return `${size} bytes`;
  const power = Math.min(3, Math.floor(Math.log10(size) / 3));
  return `${short(size / 1000 ** power)} ${["", "kB", "MB", "GB"][power]}`;
}

const DATE = { day: "numeric", month: "short", year: "numeric" };
const DAY = new Intl.DateTimeFormat("en-GB", DATE);
const MOMENT = new Intl.DateTimeFormat("en-GB", { ...DATE, hour: "2-digit", minute: "2-digit", hour12: false });
// A date is one word: it is never broken over two lines.
const whole = (text) => text.replace(/ /g, "\u00a0");
export const day = (text) => whole(DAY.format(new Date(text)));
export const moment = (text) => whole(MOMENT.format(new Date(text)));

/** The numbers of a promise: ε 0.5, or ε 1, δ 10⁻⁶, or ρ 0.1. */
export function promise({ epsilon, delta, rho }) {
  const number = (value) => short(typeof value === "string" ? exact(value) : value, 4);
  if (rho && number(rho) !== "0") return `ρ ${number(rho)}`;
  return delta && number(delta) !== "0" ? `ε ${number(epsilon)}, δ ${number(delta)}` : `ε ${number(epsilon)}`;
}

/** What a claim protects: one record, one person with all records, or a row or an edge of a graph. */
export function protectedUnit(claim) {
  const whom = claim.unit === "person"
    ? `each person, up to ${count(claim.records_per_unit, "record")}`
    : `each ${claim.unit}`;
  return claim.secure === false ? "nobody, because its noise was seeded" : whom;
}

const UNITS = new Set(
  ("cm mm m km in ft mi kg g mg lb lbs s ms min h hours hrs days weeks months years yr eur usd gbp chf dollars euros pct percent " +
    "c k hpa pa mmhg bpm hz w kw kwh l ml deg kmh mph").split(" "),
);
const SPELLED = {
  pct: "%", percent: "%", eur: "€", usd: "$", gbp: "£", deg: "°", kmh: "km/h", mmhg: "mmHg", hpa: "hPa", kw: "kW", kwh: "kWh",
}; // prettier-ignore

/** A column's name in two parts: what it is, and the unit that it ends in, or null. */
function named(name) {
  const bracket = /^(.*?)[\s_]*[([]([^)\]]+)[)\]]$/.exec(name);
  if (bracket) return [plain(bracket[1]), bracket[2]];
  const parts = name.split("_");
  const unit = parts.length > 1 ? parts[parts.length - 1].toLowerCase() : "";
  return UNITS.has(unit) ? [plain(parts.slice(0, -1).join("_")), SPELLED[unit] ?? unit] : [plain(name), null];
}

/** A kernel with its width: gaussian, bandwidth 2. */
export function kernelInWords({ name, parameters }) {
  if (name === "scaled") return `${kernelInWords(parameters.kernel)} of each column's range`;
  return parameters.bandwidth ? `${name}, bandwidth ${short(parameters.bandwidth)}` : name;
}

const WAYS = { "hash-rows": "Hash rows", "grid-weights": "Grid", "fourier-features": "Fourier features" };

/** How a tally was counted. */
export const wayOf = (basis) => WAYS[basis] ?? basis.replace(/-/g, " ");

/** A column as an axis names it: height_cm → height (cm). */
export function columnLabel(name) {
  const [what, unit] = named(name);
  return unit === null ? what : `${what} (${unit})`;
}

/** Whether two columns have the same unit. */
export function sameUnit(one, other) {
  const [[, first], [, second]] = [named(one), named(other)];
  return first !== null && first === second;
}

/** A value of a column in words: height 164 cm. */
export function columnValue(name, value) {
  const [what, unit] = named(name);
  return `${what} ${short(value)}${unit === null ? "" : ` ${unit}`}`;
}
const plain = (name) => name.replace(/_/g, " ").trim() || name;

const MODELS = {
  density: "Density",
  histogram: "Histogram",
  classifier: "Kernel classifier",
  "kernel-svc": "Kernel support vector machine",
  "linear-svc": "Linear support vector machine",
  "gaussian-process": "Gaussian process regression",
  regressor: "Linear regression",
  outliers: "Outlier detector",
  neighbors: "Neighbour counts",
  modes: "Modes of the density",
  sampler: "Sampler of synthetic records",
  synthesizer: "Synthetic table of mixed columns",
  kmeans: "k-means clusters",
  mixture: "Gaussian mixture",
};

/** The display name of a kind of model. */
export const modelTitle = (name) => MODELS[name] ?? name.replace(/-/g, " ");
