// What a file holds, as a page: its claim and an explorer that answers here. Nothing is sent anywhere.
import { claimFacts, claimSentence, facts, inShort, meaning } from "./claims.js";
import { field, select } from "./controls.js";
import { h } from "./dom.js";
import { openExplorer } from "./explorer.js";
import { columnLabel, short, withError } from "./format.js";
import { aboutSums, readingsOf } from "./subjects.js";
import { themeSwitch } from "./theme.js";

/** The frame of a page about one function: its name, a place for the explorer, which is returned, and its privacy. */
export function functionPage(main, { title, about, claim, more = [], actions = [], embedded = false }) {
  const place = h("div", {});
  const details = h("details", {}, h("summary", {}, "Details of the claim"), facts([...claimFacts(claim), ...more]));
  const privacy = h("div", { class: "card stack" }, claimSentence(claim), meaning(claim), details);
  main.replaceChildren(
    h(
      "header",
      { class: "head" },
      h("div", { class: "head-text" }, h("h1", {}, title), about && h("p", {}, about)),
      h("div", { class: "row" }, actions, themeSwitch()),
    ),
    place,
    h(
      "section",
      { class: "section", "aria-label": "Privacy" },
      embedded
        ? h("details", {}, h("summary", {}, `Privacy: ${inShort(claim)}`), privacy)
        : h("div", { class: "stack" }, h("h2", {}, "Privacy"), privacy),
    ),
  );
  return place;
}

/** Show what `readHush` returned. `options` are {title, ranges, aspect, labels, quantity, area: {name, factor}}. */
export function showFile(main, found, options) {
  const claim = { ...found.claim, records_per_unit: Number(found.claim.recordsPerUnit) };
  const model = found.kind === "model";
  const place = functionPage(main, { title: options.title, claim, more: model ? aboutModel(found) : aboutFunction(found) });
  if (!model) return openExplorer(place, localSubject(found, options));
  const { parts } = found;
  if (parts.length === 0) return openExplorer(place, { kind: "none" });
  const here = h("div", {});
  let leave = null;
  const show = () => {
    leave?.();
    leave = openExplorer(here, localSubject(parts[Number(chosen.value)].function, { ...options, title: parts[Number(chosen.value)].name }));
  };
  const chosen = select(parts.map(({ name }, at) => [String(at), name]), "0", { onchange: show }); // prettier-ignore
  place.append(h("div", { class: "stack" }, field("Part of the model", chosen), here));
  show();
  return () => leave?.();
}

/** A function that was read here, as the subject of an explorer. */
function localSubject(found, { title, ranges, aspect = null, labels, quantity = "sum", area }) {
  const { kernel, dim } = found;
  const box = found.shownBox;
  const names = labels ?? Array.from({ length: dim ?? 0 }, (_, at) => found.columns?.[at] ?? `column ${at}`);
  const bounds = ranges ?? (box ? names.map((_, at) => [box.low[at], box.high[at]]) : null);
  const integral = kernel.integral ? kernel.integral() : Infinity;
  const readings = readingsOf(kernel.signed);
  if (area) readings.push({ of: "area", name: area.name, label: "Density", quantity: "sum", factor: area.factor });
  else if (Number.isFinite(integral) && integral > 0)
    readings.push({ of: "density", name: "probability density", label: "Density", quantity: "mean", factor: 1 / integral });
  const first = readings.findIndex(({ of }) => of === quantity);
  readings.unshift(...readings.splice(first, 1));
  const [across, up] = bounds ?? [];
  return {
    id: found.claim.sentence,
    title,
    kind: found.drawable ? "number" : "sets",
    codes: dim,
    local: true,
    names,
    labels: labels ?? names.map(columnLabel),
    bounds,
    unitRatio: aspect === null || !up ? null : (aspect * (across[1] - across[0])) / (up[1] - up[0]),
    classes: null,
    questions: null,
    counts: !kernel.signed,
    kernel: null,
    stream: null,
    readings,
    about: aboutSums(kernel.signed),
    source: { origin: () => null, answer: async (of, points, options) => answersOf(found, of, points, options) },
  };
}

/** Answers of the reader as lists, with null for what is not known. A query that it refuses is a problem without a status. */
export function answersOf(found, of, points, { lattice = null, together = false, level = 0.95 }) {
  try {
    const answers = lattice
      ? found.picture(lattice.axes, lattice.steps, lattice.fixed, { of, level, simultaneous: together })
      : found.query(points, { of, level });
    return listed([answers]);
  } catch (error) {
    throw error.name === "QueryRefused" ? Object.assign(error, { status: 0 }) : error;
  }
}

export function listed(parts) {
  const list = (name) => parts.flatMap((each) => Array.from(each[name], (value) => (Number.isFinite(value) ? value : null)));
  return { value: list("value"), stderr: list("stderr"), lower: list("lower"), upper: list("upper") };
}

const stated = ({ statement }) => Object.entries(statement).map(([name, value]) => [name, String(value)]);

const aboutModel = (found) => [
  ...Object.entries(found.about).filter(([, value]) => typeof value !== "object").map(([name, value]) => [name, String(value)]),
  ["Written by", found.producer],
  ...stated(found),
]; // prettier-ignore

function aboutFunction(found) {
  const { box, columns, method } = found;
  const { value, error } = withError(found.count, found.countStderr);
  const ends = box && box.low.map((low, at) => `${short(low)} to ${short(box.high[at])}`).join("; ");
  return [
    ["Kernel", found.kernel.words()],
    ["Columns", columns?.join(", ")],
    ["Bounds", ends],
    ["Records", error === "unknown" ? value : `about ${value} ± ${error}`],
    ["Table", found.basis && `${found.basis}, ${found.shape.join(" × ")}`],
    ["Method", method],
    ["Written by", found.producer],
    ...stated(found),
  ];
}
