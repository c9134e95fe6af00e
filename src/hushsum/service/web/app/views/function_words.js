// A function in a few words.
import { columnLabel, modelTitle } from "../explorer/format.js";

/** What it is, and of which columns. */
export function whatItIs(facts) {
  const columns = facts.columns?.map(columnLabel).join(", ") ?? "unnamed columns";
  if (facts.model) {
    return `${modelTitle(facts.model.kind)}${
      facts.model.target ? `: ${columnLabel(facts.model.target)} from ${columns}` : ` of ${columns}`
    }`;
  }
  return `Counts of records near a point of ${columns}`;
}
