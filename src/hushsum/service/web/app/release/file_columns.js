// Files of records: their formats, how they are sent, and the names of their columns, which are read in the browser. Only
// names: bounds must not be read off the records.
import { upload } from "../api.js";
import { bytesInWords, moment } from "../explorer/format.js";

const HEAD = 1 << 16;
const ENDINGS = [
  [".csv.gz", "csv.gz"],
  [".tsv.gz", "csv.gz"],
  [".csv", "csv"],
  [".tsv", "csv"],
  [".parquet", "parquet"],
  [".pq", "parquet"],
  [".arrow", "arrow"],
  [".feather", "arrow"],
  [".ipc", "arrow"],
  [".xlsx", "xlsx"],
];

/** What a field for such a file accepts. */
export const RECORDS = `.gz,${ENDINGS.map(([ending]) => ending).join(",")}`;
export const ENDING_RULE = "the file must end in .csv, .csv.gz, .parquet, .arrow or .xlsx";

/** How a file is named to the service, by its ending; null if it is none of the known ones. */
export const formatOf = (name) => ENDINGS.find(([ending]) => name.toLowerCase().endsWith(ending))?.[1] ?? null;

/** Send a file to a dataset, by its name; `report` is called with the fraction that is sent. */
export const sent = (dataset, file, format, report) =>
  upload(`/datasets/${dataset.id}/uploads?format=${format}&name=${encodeURIComponent(file.name.slice(-255))}`, file, report);

/** An upload in words; `until` says when it is deleted if nothing counts it. */
export const uploadInWords = ({ name, format, size, created, expires }) => ({
  what: `${name ?? "an upload without a name"}, ${name ? "" : `${format}, `}${bytesInWords(size)}, of ${moment(created)}`,
  until: `deleted ${moment(expires)} unless it is counted`,
});

/** The beginning of a CSV file, packed or not; null for other formats, whose owner types the columns' names. */
export async function headOf(file, format, encoding = "utf-8") {
  if (format === "csv") return new TextDecoder(encoding).decode(await file.slice(0, HEAD).arrayBuffer());
  if (format === "csv.gz") return await unpackedHead(file, encoding);
  return null;
}

/** Whether a file begins as text does: a first line that could be decoded, and nowhere a sign that no text has. */
export function isText(head) {
  return !/[\0-\x08\x0e-\x1f]/.test(head) && !head.split("\n", 1)[0].includes("\ufffd");
}

async function unpackedHead(file, encoding) {
  const reader = file.stream().pipeThrough(new DecompressionStream("gzip")).pipeThrough(
    new TextDecoderStream(encoding),
  ).getReader();
  let text = "";
  try {
    while (text.length < HEAD && !text.includes("\n")) {
      const { value, done } = await reader.read();
      if (done) break;
      text += value;
    }
  } catch {
    // Not packed after all; the service will say so.
  }
  reader.cancel().catch(() => {});
  return text;
}

const SEPARATORS = [",", ";", "\t", "|"];

/** The fields of the first line, with quotes as RFC 4180 has them; null if it does not look like names. */
export function headerOf(text) {
  const line = text.replace(/^\ufeff/, "").split(/\r?\n/, 1)[0];
  // What separates the names outside of quotes most often, as the service decides it.
  const outside = line.split('"').filter((_, at) => at % 2 === 0).join("");
  const [comma, ...others] = SEPARATORS.map((each) => [outside.split(each).length, each]);
  const [, separator] = others.reduce((most, each) => (each[0] > most[0] ? each : most), comma);
  const names = [];
  for (const match of line.matchAll(new RegExp(`(?:^|[${separator}])(?:"((?:[^"]|"")*)"|([^${separator}]*))`, "g"))) {
    names.push((match[1]?.replace(/""/g, '"') ?? match[2]).trim());
  }
  const looksRight = names.length > 0 &&
    names.every((each) => each !== "" && each.length <= 200 && Number.isNaN(Number(each)) && !/\p{Cc}/u.test(each));
  return looksRight ? names : null;
}
