// A claim: its sentence, its numbers, and what it rests on.

import { h } from "../dom.js";
import { promise, protectedUnit } from "../format.js";

/** The sentence, set apart: it is what the release promises. */
export const claimSentence = (claim) => h("blockquote", { class: "claim" }, powers(claim.sentence));

/** Powers as they are written by hand; who copies or hears the sentence still gets the sign. */
function powers(sentence) {
  const raised = (base, power) => [base, h("span", { class: "unseen" }, "^"), h("sup", {}, power)];
  return sentence.split(/(e\^[\d.]*\d|\b1e-\d+)/).map((part, at) => {
    if (at % 2 === 0) return part;
    return part.startsWith("e") ? raised("e", part.slice(2)) : raised("10", `−${Number(part.slice(3))}`);
  });
}

export const claimNumbers = (claim) =>
  h("span", { class: "promise" }, promise(claim), h("small", {}, `for ${protectedUnit(claim)}`));

/** The parts of a claim as a list of facts. */
export function claimFacts(claim) {
  return [
    ["Privacy parameters", promise(claim)],
    ["Protects", protectedUnit(claim)],
    ["Neighbouring datasets", claim.relation === "replace" ? "one is replaced" : "one is added or removed"],
    ["Noise", claim.mechanism],
    ["Arithmetic", claim.arithmetic],
  ];
}

export const facts = (pairs) =>
  h(
    "dl",
    { class: "facts" },
    pairs.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, value))
    ),
  );
