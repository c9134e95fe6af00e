// Answers requests from standard input, one JSON object per line, with the reader for web pages: {path, queries, of,
// level, picture}; with `since` the change from another step of a stream, with `probe` at a query that the function must take. A refused file gives {refused, kind}; anything else that is thrown is a finding, {threw}.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { FileRefused, changeBetween, readHush } from "../../src/browser/released_function.js";
import { stepCovariance } from "../../src/browser/stream_steps.js";

const NUMBERS = ["value", "stderr", "lower", "upper", "bound"];

function answered(answers) {
  const listed = (values) => Array.from(values, (value) => (Number.isFinite(value) ? value : String(value)));
  return Object.fromEntries(NUMBERS.map((name) => [name, listed(answers[name])]));
}

function facts(found) {
  const { statement } = found;
  const claim = { ...found.claim, recordsPerUnit: Number(found.claim.recordsPerUnit) };
  if (found.kind === "model") return { kind: "model", claim, parts: found.parts.map(({ name }) => name) };
  return { kind: "function", claim, statement, count: found.count, countStderr: found.countStderr, columns: found.columns, complete: found.complete };
}

/** A query that a kernel takes. */
function probeOf(kernel) {
  if (kernel.dim === null) return [1, 2];
  const point = new Array(kernel.dim).fill(kernel.ofColumns ? 0.5 : 1);
  for (const each of kernel.components ?? [{ kernel }])
    for (const factor of each.kernel.factors ?? []) if (factor.kernel.dim === null) point[factor.columns[0]] = [1, 2];
  return point;
}

function answer({ path, base64, queries, of, level, picture, part, probe, since }) {
  const bytes = path === undefined ? Buffer.from(base64, "base64") : readFileSync(path);
  let found;
  const started = performance.now();
  try {
    found = readHush(bytes);
    if (part !== undefined) found = found.parts.find(({ name }) => name === part).function;
    const result = facts(found);
    if (since !== undefined) {
      const before = readHush(Buffer.from(since, "base64"));
      result.covariance = stepCovariance(before.streamStep, found.streamStep);
      result.change = answered(changeBetween(before, found).query(queries, { of: "sum", level }));
    }
    if (queries !== undefined && found.kind === "function") result.answers = answered(found.query(queries, { of, level }));
    if (probe && found.kind === "function") {
      result.probe = probeOf(found.kernel);
      result.answers = answered(found.query([result.probe]));
    }
    if (picture !== undefined)
      result.picture = answered(found.picture(picture.axes, picture.steps, picture.fixed, { of, level }));
    return { ...result, milliseconds: performance.now() - started };
  } catch (error) {
    if (error instanceof FileRefused) return { refused: error.message, kind: error.kind };
    return { threw: `${error.name}: ${error.message}\n${error.stack}` };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(answer(request))}\n`);
}
