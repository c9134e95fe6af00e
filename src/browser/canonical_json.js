// Canonical JSON: sorted keys, no spaces, UTF-8, one spelling of every number and string, as Hushsum writes it.
//
// Integers become numbers, or BigInt beyond 2^53; numbers with a point or an exponent become `Real`, so that a
// reader can tell 2 from 2.0 as the writer did.
import { FileRefused } from "./refusal.js";

const MOST_DEPTH = 900;
const ESCAPES = { '"': '"', "\\": "\\", n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/y;

/** A number that was written with a point or an exponent. */
export class Real {
  constructor(value) {
    this.value = value;
  }
}

/** What canonical JSON says; throws for any other spelling. */
export function parseCanonical(text) {
  let at = 0;

  function fail() {
    throw new FileRefused("The file is damaged: its header is not canonical JSON; get a fresh copy.");
  }

  function value(depth) {
    if (depth > MOST_DEPTH) fail();
    const first = text[at];
    if (first === "{") return members(depth);
    if (first === "[") return items(depth);
    if (first === '"') return string();
    for (const [word, meaning] of WORDS)
      if (text.startsWith(word, at)) {
        at += word.length;
        return meaning;
      }
    return number();
  }

  function members(depth) {
    // No prototype: a key such as __proto__ is a key.
    const found = Object.create(null);
    let before = null;
    at += 1;
    if (text[at] === "}") {
      at += 1;
      return found;
    }
    for (;;) {
      if (text[at] !== '"') fail();
      const key = string();
      if (before !== null && !precedes(before, key)) fail();
      before = key;
      if (text[at] !== ":") fail();
      at += 1;
      found[key] = value(depth + 1);
      const next = text[at];
      at += 1;
      if (next === "}") return found;
      if (next !== ",") fail();
    }
  }

  function items(depth) {
    const found = [];
    at += 1;
    if (text[at] === "]") {
      at += 1;
      return found;
    }
    for (;;) {
      found.push(value(depth + 1));
      const next = text[at];
      at += 1;
      if (next === "]") return found;
      if (next !== ",") fail();
    }
  }

  function string() {
    let found = "";
    at += 1;
    let start = at;
    for (;;) {
      const code = text.charCodeAt(at);
      if (Number.isNaN(code) || code < 0x20) fail();
      if (code === 0x22) {
        found += text.slice(start, at);
        at += 1;
        return found;
      }
      if (code !== 0x5c) {
        at += 1;
        continue;
      }
      found += text.slice(start, at);
      const escape = text[at + 1];
      if (escape === "u") {
        const digits = text.slice(at + 2, at + 6);
        const control = /^00[01][0-9a-f]$/.test(digits) ? parseInt(digits, 16) : 0x20;
        // Other characters are written as they are, and these five with a letter.
        if (control >= 0x20 || [8, 9, 10, 12, 13].includes(control)) fail();
        found += String.fromCharCode(control);
        at += 6;
      } else {
        if (!Object.hasOwn(ESCAPES, escape)) fail();
        found += ESCAPES[escape];
        at += 2;
      }
      start = at;
    }
  }

  function number() {
    NUMBER.lastIndex = at;
    const match = NUMBER.exec(text);
    if (match === null) fail();
    const spelled = match[0];
    at += spelled.length;
    if (match[1] === undefined && match[2] === undefined) {
      if (spelled === "-0" || spelled.length > 4300) fail();
      const whole = Number(spelled);
      return Number.isSafeInteger(whole) ? whole : BigInt(spelled);
    }
    const real = Number(spelled);
    if (!Number.isFinite(real) || writtenReal(real) !== spelled) fail();
    return new Real(real);
  }

  const found = value(0);
  if (at !== text.length) fail();
  return found;
}

const WORDS = [
  ["true", true],
  ["false", false],
  ["null", null],
];

/** Whether one key comes before another in the order of code points. */
function precedes(one, other) {
  const a = Array.from(one, (each) => each.codePointAt(0));
  const b = Array.from(other, (each) => each.codePointAt(0));
  for (let i = 0; i < Math.min(a.length, b.length); i += 1) if (a[i] !== b[i]) return a[i] < b[i];
  return a.length < b.length;
}

/** The shortest decimal of a real number, spelled as Python does: 1.0, 1e-07, 1e+16. */
export function writtenReal(value) {
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [mantissa, power] = Math.abs(value).toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const exponent = Number(power);
  const sign = value < 0 ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : "";
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${digits[0]}${fraction}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  if (digits.length <= exponent + 1) return `${sign}${digits.padEnd(exponent + 1, "0")}.0`;
  return `${sign}${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
}
