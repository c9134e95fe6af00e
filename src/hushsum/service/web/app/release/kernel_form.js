// What releases and streams have in common: how near records must be to count, and whose records they are.
import { field, hintOf, number, numberIn, select, text } from "../explorer/controls.js";
import { bandwidthHint } from "./columns_form.js";
import { settingField } from "./setting_field.js";

const ABOUT = {
  gaussian: "falls off smoothly",
  matern: "smooth to sharp",
  laplacian: "falls off sharply",
  euclidean: "hash, distance in space",
  manhattan: "hash, distance along the axes",
  angular: "hash, direction only",
  hamming: "hash, share of equal codes",
};

const capital = (name) => name.charAt(0).toUpperCase() + name.slice(1);

/** Every kernel of the service, those that are described first. */
function kernelChoices(kernels) {
  const order = Object.keys(ABOUT);
  const rank = ({ name }) => (order.includes(name) ? order.indexOf(name) : order.length);
  return [...kernels]
    .sort((one, other) => rank(one) - rank(other))
    .map(({ name }) => [name, capital(name) + (ABOUT[name] ? `: ${ABOUT[name]}` : "")]);
}

/** A kernel and its settings, as the service declares them; those of other kernels are hidden. */
export function kernelForm(kernels, changed, bandwidthAtFirst = "") {
  const kernel = select(kernelChoices(kernels), "gaussian", { onchange: changed });
  const bandwidth = number({ required: true, min: 0, value: bandwidthAtFirst, oninput: changed });
  const width = field("Bandwidth", bandwidth, { hint: bandwidthHint() });
  const taken = () => kernels.find(({ name }) => name === kernel.value);
  const hasWidth = () => taken().parameters.includes("bandwidth");
  const settings = new Map(kernels.flatMap((each) => each.settings).map((each) => [each.name, each]));
  const further = [...settings.values()].map((each) => settingField(each, changed));
  const offered = (each) => taken().settings.some(({ name }) => name === each.name);
  const given = () => further.filter((each) => offered(each) && each.value() !== undefined);
  return {
    fields: [field("Similarity", kernel), width, ...further.map((each) => each.node)],
    names: [["kernel", kernel], ["bandwidth", bandwidth], ...further.map((each) => [each.name, each.control])], // prettier-ignore
    /** Show what the kernel has; `decided` if something else decides a bandwidth that is left empty. */
    look(decided = false) {
      width.hidden = !hasWidth();
      bandwidth.required = hasWidth() && !decided;
      for (const each of further) each.node.hidden = !offered(each);
      hintOf(bandwidth, bandwidthHint(further.find((each) => each.name === "scale")?.value()));
    },
    lacksBandwidth: () => bandwidth.required && !(numberIn(bandwidth) > 0),
    /** Whether its sums are counts of records: it is known, and never negative. */
    counts: () => taken().signed === false,
    request: () => ({
      kernel: kernel.value,
      ...(hasWidth() && numberIn(bandwidth) !== null ? { bandwidth: numberIn(bandwidth) } : {}),
      ...Object.fromEntries(given().map((each) => [each.name, each.value()])),
    }),
  };
}

/** Whose records they are, where a dataset protects persons; `over` says over what a person's records are counted. */
export function personForm(dataset, names, columns, over = "") {
  const { unit, max_per_unit: cap } = dataset.budget.terms;
  const person = unit === "person";
  const who = personColumn(names, columns, person);
  const most = number({ required: person, min: 1, step: 1, value: cap ?? "" });
  return {
    fields: person ? [field("Column with the person's id", who), field(`Most records per person${over}`, most)] : [],
    names: [["unit_column", who], ["max_per_unit", most]], // prettier-ignore
    most: () => (person ? numberIn(most) : null),
    request: () => (person ? { unit_column: who.value.trim(), max_per_unit: numberIn(most) } : {}),
  };
}

/** The column of persons' ids: one of the file's, or typed. It is not a feature. */
function personColumn(names, columns, person) {
  if (!person) return text();
  const bar = () => columns.bar("person", control.value.trim() || null);
  const control = names
    ? select(names.map((each) => [each, each]), names[0], { onchange: bar })
    : text({ required: true, onchange: bar });
  bar();
  return control;
}
