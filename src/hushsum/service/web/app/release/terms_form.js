// What shall be promised, and under which name.

import { field, number, numberIn, text } from "../parts/fields.js";
import { standing } from "../parts/gauge.js";
import { short } from "../words.js";

/** Fields for the promise that the dataset's accounting takes; `earlier` is what was typed before. */
export function termsForm(dataset, changed, earlier = null) {
  const { left, letter, total } = standing(dataset.budget);
  const { accounting } = dataset.budget.terms;
  const start = earlier
    ? String(earlier.promise.rho ?? earlier.promise.epsilon)
    : String(Number(Math.min(left > 0 ? left : total, accounting === "zcdp" ? 0.1 : 1).toPrecision(3)));
  const name = text({
    required: true,
    maxlength: 80,
    pattern: "[A-Za-z0-9][A-Za-z0-9 ._\\-]*",
    placeholder: "heights of adults",
    value: earlier?.name ?? "",
  });
  const amount = number({ required: true, min: 0, value: start, oninput: changed });
  const delta = number({
    min: 0,
    max: 1,
    placeholder: "none",
    value: earlier?.promise.delta ?? "",
    oninput: changed,
  });
  const records = number({
    required: true,
    min: 1,
    step: 1,
    value: "10000",
    inputmode: "numeric",
    oninput: changed,
  });
  const small = field("δ to spend", delta, {
    hint: "Empty: pure ε. Else far below one over the number of records.",
  });
  return {
    fields: [
      field("Name of the function", name, { wide: true }),
      field(`${letter} to spend`, amount, { hint: `${short(left)} is left. Less is safer, and noisier.` }),
      accounting === "basic" ? small : null,
      field("Records, roughly", records, { hint: "For the prediction only. Declare it, do not count." }),
    ].filter(Boolean),
    /** Some models cannot do without a δ. */
    needDelta(needed) {
      delta.required = needed;
      if (needed && delta.value === "") delta.value = "1e-6";
    },
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
