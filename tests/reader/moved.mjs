// How far one replaced record moves Fourier features, and a person's, as the reader for web pages finds it: the canonical
// JSON of a basis' parameters per line.
import { createInterface } from "node:readline";
import { parseCanonical } from "../../src/browser/canonical_json.js";
import { featuresBasis } from "../../src/browser/fourier_features.js";

for await (const line of createInterface({ input: process.stdin })) {
  const { moved } = featuresBasis(parseCanonical(line));
  const found = [false, true].map((person) => moved(2n, person)).map(({ l1, l2Squared }) => [String(l1), String(l2Squared)]);
  process.stdout.write(`${JSON.stringify(found)}\n`);
}
