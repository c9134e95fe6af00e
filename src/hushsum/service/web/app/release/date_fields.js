// Which columns are dates, how these are written, and what numbers they become. It is declared, for files of any kind.
import { checkbox, field, select, text } from "../explorer/controls.js";
import { freshId, h } from "../explorer/dom.js";
import { columnLabel } from "../explorer/format.js";

const DAY = 86_400_000;
const EPOCH = "1970-01-01";
/** Milliseconds; a year is the mean one of the calendar, as in the library. */
const UNITS = { seconds: 1000, minutes: 60_000, hours: 3_600_000, days: DAY, weeks: 7 * DAY, years: 31_556_952_000 };
const FORMATS = [
  ["%d.%m.%Y", "31.05.2024"],
  ["%d/%m/%Y", "31/05/2024"],
  ["%m/%d/%Y", "05/31/2024"],
  ["%Y-%m-%d %H:%M", "2024-05-31 14:30"],
  ["%d.%m.%Y %H:%M", "31.05.2024 14:30"],
];

/** The fields; those of the format are shown once a column is chosen. `names` are the columns, or null to type them. */
export function dateFields(names, changed) {
  const look = () => {
    more.hidden = !columns().length;
    changed();
  };
  const typed = names === null ? text({ placeholder: "hired, born", onchange: look }) : null;
  const boxes = names?.map((name) => [name, checkbox(columnLabel(name), { onchange: look })]) ?? [];
  const boxOf = ([, label]) => label.querySelector("input");
  const columns = () =>
    typed
      ? typed.value.split(",").map((each) => each.trim()).filter(Boolean)
      : boxes.filter((each) => boxOf(each).checked).map(([name]) => name);
  const listed = h("datalist", { id: freshId("formats") }, FORMATS.map(([value, label]) => h("option", { value, label })));
  const format = text({ maxlength: 64, list: listed.id, onchange: changed });
  const unit = select(Object.keys(UNITS).map((each) => [each, each]), "days", { onchange: changed });
  const origin = h("input", { type: "date", value: EPOCH, onchange: changed });
  const more = h(
    "div",
    { class: "fields", hidden: true },
    field("Date format", format, { hint: "As the file has them, such as %d.%m.%Y. Empty: 2024-05-31, with or without a time of day." }),
    listed,
    field("Unit of dates", unit, { hint: "Dates become numbers: so many of these after the date that is 0. The bandwidth is in them, too." }),
    field("The date that is 0", origin),
  );
  const since = () => origin.value || EPOCH;
  return {
    node: h(
      "div",
      { class: "stack" },
      typed
        ? field("Columns of dates", typed, { hint: "Their names, separated by commas. Empty: none." })
        : h(
          "fieldset",
          { class: "field" },
          h("legend", { class: "label" }, "Columns of dates"),
          h("div", { class: "choices" }, boxes.map(([, label]) => label)),
        ),
      more,
    ),
    names: [
      ["dates", typed ?? (boxes.length ? boxOf(boxes[0]) : null)],
      ["date_format", format],
      ["date_unit", unit],
      ["date_origin", origin],
    ].filter(([, control]) => control !== null),
    has: (name) => columns().includes(name),
    /** The number that a date in the form of a field for dates becomes; null if there is none. */
    numberOf: (date) => (date === "" ? null : (Date.parse(date) - Date.parse(since())) / UNITS[unit.value]),
    /** The part of a request; what is usual is left out. */
    written: () => ({
      ...(columns().length ? { dates: columns() } : {}),
      ...(columns().length && format.value.trim() ? { date_format: format.value.trim() } : {}),
      ...(columns().length && unit.value !== "days" ? { date_unit: unit.value } : {}),
      ...(columns().length && since() !== EPOCH ? { date_origin: since() } : {}),
    }),
  };
}
