// Answers from the file of a function, read in the page: after one download, a query needs no request.

import { answersOf, listed } from "../explorer/local.js";

const LARGEST_BYTES = 8e6;
const MOST_KEPT = 8;
const SLICE_MILLISECONDS = 12;
const LONGEST_MILLISECONDS = 3000;
const MEASURED_MILLISECONDS = 100;

/** The functions that were read, by the SHA-256 of their files; those used last come last. */
const kept = new Map();

/**
 * A source that answers from the file where the user may download it and the reader can answer it as Python does, and by
 * `query(of, points, signal, level, nonnegative)` otherwise; see sources/service.js.
 */
export function fileSource(response, { file, query }) {
  const readable = response.download && !response.facts.model && response.facts.size <= LARGEST_BYTES;
  let origin = null;
  let slow = false;
  let raised = true;
  return {
    origin: () => origin,
    readable,
    /** The function itself, to be answered here; null where the service answers. */
    local: async () => (readable ? (await functionOf(response.sha256, file)).answers : null),
    async answer(of, points, options = {}) {
      const { signal, lattice = null, together = false, glance = false, level = 0.95, nonnegative = false } = options;
      // By Bonferroni's inequality.
      const each = together ? 1 - (1 - level) / points.length : level;
      if (nonnegative && raised)
        try {
          const answers = await query(of, points, signal, each, true);
          origin = "The service computed the nearest values that are never negative and add up to the number of records.";
          return answers;
        } catch (problem) {
          // A function that has no such version.
          if (problem.status !== 422 && problem.status !== 400) throw problem;
          raised = false;
        }
      const found = readable && (!glance || kept.has(response.sha256)) ? await functionOf(response.sha256, file) : NONE;
      if (found.answers && !(slow && points.length > 1)) {
        const answers = await answered(found.answers, of, points, { signal, lattice, together, level });
        slow ||= answers === null;
        if (answers) {
          origin = "Computed in this page from the function's file, whose checksum was verified. Queries are not sent anywhere.";
          return answers;
        }
      }
      origin = found.reason;
      return query(of, points, signal, each);
    },
  };
}

const NONE = { answers: null, reason: null };

/** What a file holds, {answers, reason}: a function that is answered here, or why the service must answer it. */
function functionOf(sha256, file) {
  const found = kept.get(sha256) ?? opened(sha256, file);
  kept.delete(sha256);
  kept.set(sha256, found);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
  return found;
}

async function opened(sha256, file) {
  const by = (reason) => ({ answers: null, reason });
  try {
    const [{ FileRefused, digestOf, readHush }, downloaded] = await Promise.all([import("../../reader.js"), file()]);
    const bytes = new Uint8Array(await downloaded.arrayBuffer());
    if (digestOf(bytes) !== sha256) return by("Answered by the service: the downloaded file is not the one that was released.");
    try {
      const answers = readHush(bytes);
      return answers.kind === "function" && answers.complete ? { answers, reason: null } : NONE;
    } catch (error) {
      if (!(error instanceof FileRefused)) throw error;
      return error.kind === "unsupported" ? NONE : by("Answered by the service: the file could not be read here.");
    }
  } catch (error) {
    // A download or a module that failed. The next view tries again.
    kept.delete(sha256);
    if (error.status === undefined && !(error instanceof TypeError)) throw error;
    return NONE;
  }
}

/** Answers as the service reports them; null where that would take too long, or where the reader refuses a query. */
async function answered(found, of, points, { signal, lattice, together, level }) {
  try {
    if (lattice && found.quickPictures) return answersOf(found, of, points, { lattice, together, level });
    const each = together ? 1 - (1 - level) / points.length : level;
    return await inSlices(points, signal, (some) => found.query(some, { of, level: each }));
  } catch (error) {
    // The service explains what is wrong with a query.
    if (error.name === "QueryRefused") return null;
    throw error;
  }
}

/** Results for some points after the other, so that the page stays responsive; null if all would take too long. */
async function inSlices(points, signal, compute) {
  const parts = [];
  const started = performance.now();
  let size = 16;
  for (let at = 0; at < points.length;) {
    const before = performance.now();
    parts.push(compute(points.slice(at, at + size)));
    at += size;
    const now = performance.now();
    if (now - started > MEASURED_MILLISECONDS && ((now - started) * points.length) / at > LONGEST_MILLISECONDS) return null;
    size = Math.max(1, Math.min(2 * size, Math.round((size * SLICE_MILLISECONDS) / Math.max(now - before, 0.1))));
    if (at < points.length) await nextTurn();
    signal?.throwIfAborted();
  }
  return listed(parts);
}

/** Lets the browser draw and react; timers would wait for four milliseconds each time. */
function nextTurn() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
