// The privacy parameters and the name of a release.
import { inShort } from "../explorer/claims.js";
import { field, NAMED, number, numberIn, text } from "../explorer/controls.js";
import { h } from "../explorer/dom.js";
import { exact, short } from "../explorer/format.js";
import { standing } from "../parts/gauge.js";

/** Fields for the promise that the dataset's accounting takes. */
export function termsForm(dataset, changed, declared = null) {
  const { left, letter, total } = standing(dataset.budget);
  const { accounting } = dataset.budget.terms;
  const start = firstAmount(left || total);
  const name = text({
    ...NAMED,
    placeholder: "heights of adults",
    value: declared ? "commuters by age and journey" : "",
  });
  const meant = h("p", { class: "hint", "aria-live": "polite" });
  const look = () => {
    check();
    changed();
  };
  const amount = number({ required: true, min: 0, max: left, value: String(start), oninput: look });
  const delta = number({ min: 0, max: 1, placeholder: "none", oninput: look });
  const limits = [[amount, left, letter], [delta, exact(dataset.budget.remaining.delta), "δ"]].map(
    ([control, most, what]) => ({ control, most, what, said: h("p", { class: "wrong", role: "alert" }) }),
  );

  /** Too large an amount is refused before anything is sent. */
  function check() {
    for (const { control, most, what, said } of limits) {
      const message = numberIn(control) > most ? `Only ${what} ${short(most)} is left in the budget.` : "";
      control.setCustomValidity(message);
      control.setAttribute("aria-invalid", String(message !== ""));
      said.textContent = message;
    }
    const given = numberIn(amount);
    const claim = accounting === "zcdp" ? { rho: given } : { epsilon: given, delta: numberIn(delta) ?? 0 };
    meant.textContent = given > 0 ? `For one ${dataset.budget.terms.unit}: ${inShort(claim)}.` : "";
  }
  const records = number({
    required: true,
    min: 1,
    step: 1,
    value: String(declared?.records ?? 10000),
    inputmode: "numeric",
    oninput: changed,
  });
  const small = field("δ to spend", delta, {
    hint: "Leave empty for pure ε. Otherwise much smaller than one over the number of records.",
  });
  const large = field(`${letter} to spend`, amount, {
    hint: `${short(left)} is left; a quarter of it is proposed. Less is safer, and noisier.`,
  });
  amount.parentElement.append(meant);
  for (const { control, said } of limits) control.parentElement.append(said);
  check();
  return {
    fields: [
      field("Name of the function", name, { wide: true }),
      large,
      accounting === "basic" ? small : null,
      field("Approximate number of records", records, { hint: "For the prediction only. Declare it; do not count the data." }),
    ].filter(Boolean),
    names: [["name", name], ["epsilon", amount], ["rho", amount], ["delta", delta]],
    recordsControl: records,
    /** Some models need a δ. */
    needDelta(needed) {
      delta.required = needed;
      if (needed && delta.value === "") delta.value = "1e-6";
      check();
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

/** A quarter of what is left, in at most two digits and never more than that: other releases will follow. */
export function firstAmount(left) {
  if (!(left > 0)) return left;
  const quarter = left / 4;
  const step = 10 ** (Math.floor(Math.log10(quarter) + 1e-9) - 1);
  return Number((Math.floor(quarter / step + 1e-9) * step).toPrecision(2));
}
