// What shall be promised, and under which name.

import { field, number, numberIn, text } from "../parts/fields.js";
import { standing } from "../parts/gauge.js";
import { short } from "../words.js";

/** Fields for the promise that the dataset's accounting takes. */
export function termsForm(dataset, changed) {
  const { left, letter, total } = standing(dataset.budget);
  const { accounting } = dataset.budget.terms;
  const start = String(Number(Math.min(left > 0 ? left : total, accounting === "zcdp" ? 0.1 : 1).toPrecision(3)));
  const name = text({ required: true, maxlength: 80, pattern: "[A-Za-z0-9][A-Za-z0-9 ._\\-]*", placeholder: "heights of adults" });
  const amount = number({ required: true, min: 0, value: start, oninput: changed });
  const delta = number({ min: 0, max: 1, placeholder: "none", oninput: changed });
  const records = number({ required: true, min: 1, step: 1, value: "10000", inputmode: "numeric", oninput: changed });
  const withDelta = accounting !== "pure";
  return {
    fields: [
      field("Name of the function", name, { wide: true }),
      field(`${letter} to spend`, amount, { hint: `${short(left)} is left. Less is safer, and noisier.` }),
      withDelta && accounting === "basic" ? field("δ to spend", delta, { hint: "Empty: pure ε." }) : null,
      field("Records, roughly", records, { hint: "For the prediction only. Declare it, do not count." }),
    ].filter(Boolean),
    name: () => name.value.trim(),
    records: () => numberIn(records),
    /** The promise as the service takes it; null if it is not complete. */
    promise() {
      const given = numberIn(amount);
      if (given === null || given <= 0) return null;
      if (accounting === "zcdp") return { rho: given };
      return numberIn(delta) ? { epsilon: given, delta: numberIn(delta) } : { epsilon: given };
    },
  };
}
