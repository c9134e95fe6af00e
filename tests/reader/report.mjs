// Makes reports of the local model: {terms (base64), records} on standard input, with {pooled: true} from random bytes inside a
// larger buffer; or bounds of exponentials, {exponents, bits}.
import { readFileSync } from "node:fs";
import { exponentialBounds, makeReport, readTerms } from "../../src/browser/local_report.js";

const request = JSON.parse(readFileSync(0, "utf-8"));
if (request.exponents !== undefined) {
  const found = request.exponents.map(([p, q]) => exponentialBounds(BigInt(p), BigInt(q), BigInt(request.bits)).map(String));
  process.stdout.write(JSON.stringify(found));
} else {
  try {
    const terms = readTerms(Buffer.from(request.terms, "base64"));
    const how = request.pooled ? { randomBytes: pooled } : {};
    process.stdout.write(JSON.stringify({ reports: request.records.map((record) => makeReport(terms, record, how)) }));
  } catch (error) {
    process.stdout.write(JSON.stringify({ refused: error.message }));
  }
}

function pooled(count) {
  const pool = new Uint8Array(64);
  return globalThis.crypto.getRandomValues(pool.subarray(24, 24 + count));
}
