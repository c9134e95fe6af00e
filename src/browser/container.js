// The container of a .hush file: magic, version, canonical JSON header, payload, SHA-256.
//
// Lengths are checked against the bytes that are there before anything is taken of them, and every byte is covered by a
// checksum.
import { parseCanonical } from "./canonical_json.js";
import { isObject } from "./header.js";
import { FileRefused, nonsense } from "./refusal.js";
import { sha256 } from "./sha256.js";

const PREFIX = 24;
const DIGEST = 32;
const PAGE = 4096;
const VERSION = 1;
const MOST_HEADER = 1 << 20;
const RELEASED = "\x89HUSH\r\n\n";
const OTHERS = {
  "\x89TALY\r\n\n": "a confidential tally (.tally)",
  "\x89SRVD\r\n\n": "a confidential function that is served (.secret)",
  "\x89STRM\r\n\n": "the confidential state of a stream (.stream)",
  "\x89CKPT\r\n\n": "a confidential checkpoint of a count that is not finished (.checkpoint)",
};

/**
 * The header and the payload of a file, checked.
 *
 * @param {Uint8Array} bytes the whole file
 * @param {(header: object) => number} payloadSize how long the payload must be, from the header
 */
export function readContainer(bytes, payloadSize) {
  const magic = String.fromCharCode(...bytes.subarray(0, 8));
  if (magic !== RELEASED) throw otherKind(magic);
  if (bytes.length < PREFIX + DIGEST) throw damaged();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.getUint32(8, true);
  if (version !== VERSION)
    throw new FileRefused(
      `The file has format version ${version}, this page reads version ${VERSION}; get a later page.`,
      "other",
    );
  const headerLength = view.getUint32(12, true);
  const payloadLength = view.getUint32(16, true) + view.getUint32(20, true) * 4294967296;
  const start = PREFIX + headerLength;
  if (headerLength > MOST_HEADER || start + payloadLength + DIGEST !== bytes.length) throw damaged();
  const header = parsed(bytes.subarray(PREFIX, start));
  const payload = bytes.subarray(start, start + payloadLength);
  const paged = pagedLength(header, payloadLength);
  if (payloadSize(header) !== payloadLength) throw damaged();
  const digest = sha256(bytes.subarray(0, start), payload.subarray(paged));
  if (!equal(digest, bytes.subarray(start + payloadLength))) throw damaged();
  if (paged > 0) checkPages(payload, paged);
  return { header, payload };
}

export function digestsSize(paged) {
  return Math.ceil(paged / PAGE) * DIGEST;
}

function otherKind(magic) {
  if (Object.hasOwn(OTHERS, magic))
    return new FileRefused(
      `This is ${OTHERS[magic]}, not a released function (.hush); do not publish it.`,
      "other",
    );
  return new FileRefused("This is not a released function (.hush), or its first bytes are damaged.", "other");
}

function parsed(encoded) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(encoded);
  } catch {
    throw damaged();
  }
  const header = parseCanonical(text);
  if (!isObject(header)) throw damaged();
  return header;
}

/** The length of the part of a payload that has a digest for each page. */
function pagedLength(header, payloadLength) {
  if (!("paged" in header)) return 0;
  const paged = header.paged;
  if (typeof paged !== "number" || paged < 0 || paged + digestsSize(paged) > payloadLength) throw damaged();
  return paged;
}

function checkPages(payload, paged) {
  const digests = payload.subarray(payload.length - digestsSize(paged));
  for (let page = 0; page * PAGE < paged; page += 1) {
    const found = sha256(payload.subarray(page * PAGE, Math.min(paged, (page + 1) * PAGE)));
    if (!equal(found, digests.subarray(page * DIGEST, (page + 1) * DIGEST)))
      throw new FileRefused(
        "The file is damaged: a page of its table does not match its checksum; get a fresh copy.",
      );
  }
}

function equal(one, other) {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}

function damaged() {
  return new FileRefused(
    "The file is damaged: its bytes do not match its checksum or its lengths; get a fresh copy.",
  );
}

/** Numbers of a payload in one of the types of a header, copied, so that they are aligned. */
export function decodeNumbers(payload, type) {
  const kind = ARRAYS[type];
  if (kind === undefined) throw nonsense();
  const copy = new Uint8Array(payload);
  return new kind(copy.buffer, 0, copy.length / kind.BYTES_PER_ELEMENT);
}

/** How many bytes a number of a type takes; refuses unknown types. */
export function numberSize(type, { reals = false } = {}) {
  if (typeof type !== "string" || !Object.hasOwn(ARRAYS, type) || (type === "float64" && !reals)) throw nonsense();
  return ARRAYS[type].BYTES_PER_ELEMENT;
}

const ARRAYS = {
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  float64: Float64Array,
};
