// The frames of a film: the answers of each step of a stream, and of the change since another step.

import { difference } from "../explorer/comparison.js";
import { answersAt } from "../explorer/subject.js";
import { listed } from "../sources/file.js";

const MOST_KEPT = 800;

/**
 * Frames of the subjects of a stream's steps. `frame(state, request, signal)` resolves to {shown, exact}: the
 * answers of a step, or of the change since another one; `exact` is whether the error of a change accounts for the noise that
 * both steps share.
 */
export function framesOf(subjects) {
  const kept = new Map();
  /** Everything but the steps that a frame depends on. */
  const kindOf = ({ of, shown, at, ranges, since }) => JSON.stringify([of, shown, hidden(shown, at), ranges, since !== null]);

  async function compute({ of, step, since }, { points, lattice }, signal) {
    const together = since !== null || lattice.axes.length > 1;
    const at = (number) => answersAt(subjects[number], of, points, { signal, lattice, together });
    if (since === null) return { shown: await at(step), exact: true };
    const [before, after] = await Promise.all([since, step].map((number) => subjects[number].source.local()));
    if (before === null || after === null) {
      const [own, others] = await Promise.all([at(step), at(since)]);
      // Steps share noise, and only their files say how: standard errors add up at most.
      return { shown: difference(own, others, (first, second) => first + second), exact: false };
    }
    const { changeBetween } = await import("../../reader.js");
    const found = changeBetween(before, after).picture(lattice.axes, lattice.steps, lattice.fixed, { of: "sum", simultaneous: true });
    const shown = { ...listed([found]), label: null, scores: null };
    return { shown, exact: true };
  }

  return {
    async frame(state, request, signal) {
      const key = JSON.stringify([state.step, state.since, kindOf(state)]);
      const found = kept.get(key) ?? (await compute(state, request, signal));
      kept.delete(key);
      kept.set(key, found);
      if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
      return found;
    },
    /** The numbers between which all frames of this kind lie that were shown so far: one scale for the whole film. */
    span(state) {
      const kind = kindOf(state);
      let [low, high] = [Infinity, -Infinity];
      for (const [key, { shown }] of kept) {
        if (JSON.parse(key)[2] !== kind) continue;
        for (const value of state.layer === "error" ? shown.stderr : shown.value) {
          if (value === null) continue;
          if (value < low) low = value;
          if (value > high) high = value;
        }
      }
      return low <= high ? [low, high] : null;
    },
  };
}

/** The coordinates of the axes that are not shown. */
const hidden = (shown, at) => at.filter((_, axis) => !shown.includes(axis));
