// SHA-256 (FIPS 180-4), for checksums. The browser's own is asynchronous, and missing on some pages.

const FRACTIONS = new Uint32Array(64);
const START = new Uint32Array(8);

(function tabulate() {
  // The first 32 bits of the fractions of roots of primes.
  let found = 0;
  for (let candidate = 2; found < 64; candidate += 1) {
    let prime = true;
    for (let factor = 2; factor * factor <= candidate; factor += 1) prime = prime && candidate % factor !== 0;
    if (!prime) continue;
    const fraction = (root) => Math.floor((root - Math.floor(root)) * 4294967296);
    if (found < 8) START[found] = fraction(Math.sqrt(candidate));
    FRACTIONS[found] = fraction(Math.cbrt(candidate));
    found += 1;
  }
})();

/** The digest of some pieces of bytes, one after the other: 32 bytes. */
export function sha256(...pieces) {
  const state = START.slice();
  const block = new Uint8Array(64);
  const words = new Uint32Array(64);
  let held = 0;
  let total = 0;
  for (const piece of pieces) {
    total += piece.length;
    let at = 0;
    if (held > 0) {
      at = Math.min(64 - held, piece.length);
      block.set(piece.subarray(0, at), held);
      held += at;
      if (held === 64) {
        compress(state, words, block, 0);
        held = 0;
      }
    }
    for (; held === 0 && at + 64 <= piece.length; at += 64) compress(state, words, piece, at);
    if (at < piece.length) {
      block.set(piece.subarray(at), held);
      held += piece.length - at;
    }
  }
  block[held] = 0x80;
  block.fill(0, held + 1);
  if (held >= 56) {
    compress(state, words, block, 0);
    block.fill(0);
  }
  const view = new DataView(block.buffer);
  view.setUint32(56, Math.floor(total / 536870912));
  view.setUint32(60, (total << 3) >>> 0);
  compress(state, words, block, 0);
  const digest = new Uint8Array(32);
  const out = new DataView(digest.buffer);
  for (let i = 0; i < 8; i += 1) out.setUint32(4 * i, state[i]);
  return digest;
}

/** The digest of bytes in hexadecimal digits. */
export function digestOf(bytes) {
  return Array.from(sha256(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function compress(state, words, bytes, start) {
  for (let i = 0, at = start; i < 16; i += 1, at += 4)
    words[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
  for (let i = 16; i < 64; i += 1) {
    const x = words[i - 15];
    const y = words[i - 2];
    const low = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const high = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    words[i] = (words[i - 16] + low + words[i - 7] + high) | 0;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i += 1) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const first = (h + s1 + ((e & f) ^ (~e & g)) + FRACTIONS[i] + words[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + second) | 0;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}
