// How the cells of a file are written. It is declared: nothing is guessed from the records.
import { checkbox, field, select, text } from "../explorer/controls.js";
import { h } from "../explorer/dom.js";
import { dateFields } from "./date_fields.js";

const POINT = ".";
const UTF_8 = "utf-8";
const SIGNS = [[POINT, "Point: 1.5"], [",", "Comma: 1,5"]];
const ENCODINGS = [
  [UTF_8, "UTF-8"],
  ["utf-16", "UTF-16, “Unicode text”"],
  ["windows-1250", "Windows-1250, Central Europe"],
  ["windows-1251", "Windows-1251, Cyrillic"],
  ["windows-1252", "Windows-1252, Western Europe"],
  ["iso-8859-1", "ISO 8859-1, Western Europe"],
  ["iso-8859-2", "ISO 8859-2, Central Europe"],
  ["iso-8859-15", "ISO 8859-15, Western Europe"],
  ["gb18030", "GB 18030, Chinese"],
  ["big5", "Big5, Chinese"],
  ["shift_jis", "Shift JIS, Japanese"],
  ["euc-kr", "EUC-KR, Korean"],
];

/**
 * Fields for how a file is written. `names` are the columns of the file, or null where they must be typed; `encoding` is
 * what was chosen for its header; `format` is that of the upload, where there is one.
 */
export function fileForm({ names = null, encoding = UTF_8, format = null, changed = () => {} } = {}) {
  const sign = select(SIGNS, POINT, { onchange: changed });
  const sheet = text({ maxlength: 31, placeholder: "the first", onchange: changed });
  const gaps = checkbox("Leave out records with missing values", { onchange: changed });
  const letters = select(ENCODINGS, encoding, { onchange: changed });
  const dates = dateFields(names, changed);
  return {
    node: h(
      "details",
      {},
      h("summary", {}, "How the file is written"),
      h(
        "div",
        { class: "stack" },
        h(
          "div",
          { class: "fields" },
          field("Decimal sign", sign, { hint: "Of numbers in a CSV file." }),
          field("Encoding", letters, { hint: "Of a CSV file." }),
          (format === null || format === "xlsx") && field("Sheet", sheet, { hint: "Of an Excel file." }),
        ),
        h(
          "div",
          { class: "field" },
          gaps,
          h("p", { class: "hint" }, "Those with an empty cell, NA, null, - or the like in a chosen column. Otherwise such a file is refused. How many are left out is not shown."),
        ),
        dates.node,
      ),
    ),
    dates,
    names: [["decimal", sign], ["encoding", letters], ["sheet", sheet], ["drop_missing", gaps.firstChild], ...dates.names],
    /** The part of a request; what is usual is left out. */
    written: () => ({
      ...(sign.value === POINT ? {} : { decimal: sign.value }),
      ...(letters.value === UTF_8 ? {} : { encoding: letters.value }),
      ...(sheet.value.trim() ? { sheet: sheet.value.trim() } : {}),
      ...(gaps.firstChild.checked ? { drop_missing: true } : {}),
      ...dates.written(),
    }),
  };
}

/** The choice of an encoding alone, before the header is read. */
export const encodingChoice = () => select(ENCODINGS, UTF_8);
