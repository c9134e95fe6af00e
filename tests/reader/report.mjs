// Makes reports of the local model: {terms (base64), records} on standard input; or bounds of exponentials, {exponents, bits}.
import { readFileSync } from "node:fs";
import { exponentialBounds, makeReport, readTerms } from "../../src/browser/local_report.js";

const request = JSON.parse(readFileSync(0, "utf-8"));
if (request.exponents !== undefined) {
  const found = request.exponents.map(([p, q]) => exponentialBounds(BigInt(p), BigInt(q), BigInt(request.bits)).map(String));
  process.stdout.write(JSON.stringify(found));
} else {
  try {
    const terms = readTerms(Buffer.from(request.terms, "base64"));
    process.stdout.write(JSON.stringify({ reports: request.records.map((record) => makeReport(terms, record)) }));
  } catch (error) {
    process.stdout.write(JSON.stringify({ refused: error.message }));
  }
}
