// While a view waits.
import { h } from "../explorer/dom.js";

/** While something is fetched: as high as what will come, so that nothing jumps. */
export function loading(what, number = 3) {
  return h(
    "div",
    { role: "status", "aria-label": `Loading ${what}` },
    h("div", { class: "cards", "aria-hidden": "true" }, Array.from({ length: number }, () => h("div", { class: "skeleton" }))),
  );
}

/** A bar for long work; `report(fraction or null, words)`. */
export function progress(label) {
  const bar = h("progress", { max: 1, "aria-label": label });
  const words = h("p", { class: "small soft", role: "status" }, label);
  const node = h("div", { class: "progress" }, bar, words);
  return {
    node,
    report(fraction, text) {
      if (fraction === null) bar.removeAttribute("value");
      else bar.value = fraction;
      if (text !== undefined && words.textContent !== text) words.textContent = text;
    },
  };
}
