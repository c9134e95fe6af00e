// A claim: its sentence, its numbers, what it rests on, and what it means for one person.

import { h } from "./dom.js";
import { count, promise, protectedUnit, short } from "./format.js";

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

// --- what it means for one person --------------------------------------------------------------------------------------

const MARKS = [0.1, 0.5, 1, 2, 4];

/** How much more likely anything can become: e^ε; null for a claim in ρ, which has one for every small probability. */
export const factor = ({ epsilon }) => (epsilon === null || epsilon === undefined ? null : Math.exp(epsilon));

/**
 * How often a guess is right at most, between two cases that are equally likely and differ in one unit. Of ε and δ:
 * the sum of both errors of a test is at least 2 (1 − δ) / (1 + e^ε). Of ρ: the total variation is at most √(ρ/2)
 * (Pinsker) and √(1 − e^−ρ) (Bretagnolle and Huber), since the divergence is at most ρ.
 */
export function bestGuess({ epsilon, delta, rho }) {
  if (rho) return (1 + Math.min(Math.sqrt(rho / 2), Math.sqrt(1 - Math.exp(-rho)))) / 2;
  const odds = Math.exp(-epsilon);
  return Math.min(1, (1 + odds * (delta ?? 0)) / (1 + odds));
}

/** "1.35 times": never rounded down, since it is a bound. */
export function times(value) {
  if (value >= 1e6) return `${short(value, 2)} times`;
  const step = 10 ** (Math.floor(Math.log10(value)) - 2);
  return `${short(Math.ceil(value / step - 1e-9) * step, 3)} times`;
}

/** A probability in whole percent, or with a place where it is nearly certain; never rounded down. */
export function inHundred(probability) {
  const percent = 100 * probability;
  for (const digits of [1, 10, 100, 1000]) {
    const rounded = Math.ceil(percent * digits - 1e-9) / digits;
    if (rounded < 100) return String(rounded);
  }
  return "100";
}

const WHOSE = {
  record: "your record",
  person: "all your records",
  "adjacency row": "the list of your neighbours",
  edge: "one edge of yours",
  "directed edge": "one edge of yours",
};
const whose = (claim) => WHOSE[claim.unit] ?? `your ${claim.unit}`;

/** What must be public for the claim to hold, as a sentence; null for most claims. */
const assumed = ({ assumptions }) => assumptions?.length ? `This assumes that ${assumptions.join(", and that ")}.` : null;

/** A short form for cards and forms. */
export function inShort(claim) {
  if (claim.secure === false) return "no protection: its noise was seeded";
  const most = factor(claim);
  const bound = most === null
    ? `a guess is right at most ${inHundred(bestGuess(claim))} times in 100`
    : `at most ${times(most)} as likely`;
  return assumed(claim) ? `${bound}, under an assumption` : bound;
}

/** The claim for one person: a bound, a worked example, and a scale. */
export function meaning(claim, { heading = "h3" } = {}) {
  if (claim.secure === false) return h("p", { class: "note note-warn" }, "No protection: the noise came from a seed, for tests only.");
  const subject = whose(claim);
  const most = factor(claim);
  const guess = bestGuess(claim);
  const other = claim.relation === "replace" ? "with another in its place" : "without it";
  return h(
    "div",
    { class: "meaning stack-small" },
    h(heading, {}, "What it means for one person"),
    most !== null && h(
      "p",
      {},
      "Whatever anyone could learn from the answers is ",
      h("strong", {}, `at most ${times(most)} as likely`),
      ` with ${subject} in the data as ${other}`,
      claim.delta > 0 && `, plus a probability of at most 1 in ${short(1 / claim.delta)}`,
      ".",
    ),
    h(
      "p",
      { class: "soft" },
      `An example: a coin decides whether ${subject} ${claim.unit === "person" ? "are" : "is"} ${
        claim.relation === "replace" ? "in the data or exchanged" : "in the data or left out"
      }. Somebody who knows everyone else's data must guess which. Without the answers they are right 50 times in 100; with them, however many they ask for, at most ${
        inHundred(guess)
      } times in 100.`,
    ),
    scale(guess),
    assumed(claim) && h("p", { class: "hint" }, `${assumed(claim)} What is public is not protected.`),
    claim.unit === "person" &&
      h("p", { class: "hint" }, `It covers up to ${count(claim.records_per_unit, "record")} of each person.`),
  );
}

/** From a coin toss to certainty, with this claim and some well-known ε on it. */
function scale(guess) {
  const at = (probability) => `${Math.min(100, Math.max(0, 200 * (probability - 0.5)))}%`;
  const placed = (node, probability) => {
    node.style.left = at(probability);
    return node;
  };
  const filled = h("span", { class: "scale-fill" });
  filled.style.width = at(guess);
  return h(
    "div",
    {
      class: "guess-scale",
      role: "img",
      "aria-label": `On a scale from 50, a coin toss, to 100, certainty: ${inHundred(guess)}.`,
    },
    h("div", { class: "scale-bar" }, filled, placed(h("span", { class: "scale-here" }), guess)),
    h(
      "div",
      { class: "scale-marks", "aria-hidden": "true" },
      MARKS.map((epsilon) =>
        placed(h("span", {}, epsilon === MARKS[0] ? `ε ${epsilon}` : String(epsilon)), bestGuess({ epsilon }))
      ),
    ),
    h(
      "div",
      { class: "scale-ends", "aria-hidden": "true" },
      h("span", {}, "50: a coin toss"),
      h("strong", {}, `${inHundred(guess)} in 100`),
      h("span", {}, "100: certain"),
    ),
  );
}
