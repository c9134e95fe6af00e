// Rows that the owner declares public: another upload of the dataset, chosen or sent here.
import { attempt, field, problemBox, select } from "../explorer/controls.js";
import { announce, h } from "../explorer/dom.js";
import { progress } from "../parts/feedback.js";
import { ENDING_RULE, formatOf, RECORDS, sent, uploadInWords } from "./file_columns.js";

const ABOUT =
  "Rows like the records that anybody may see, such as a published survey. They decide the bandwidth and the bounds that you leave empty, and improve the answers. The claim states the assumption that they are public. A part of the private records is not public.";

/** The choice of public rows; `own` is the upload of the records, which cannot be it. */
export function publicRows(dataset, uploads, own, changed) {
  const known = uploads.filter((each) => each.id !== own?.id && each.format !== "tally");
  const named = (each) => [each.id, uploadInWords(each).what];
  const said = h("div", {});
  const taken = select([["", "none"], ...known.map(named)], "", { onchange: changed });
  const file = h("input", { type: "file", accept: RECORDS, onchange: () => send(file.files[0]) });
  const node = h(
    "details",
    {},
    h("summary", {}, "Public rows"),
    h(
      "div",
      { class: "stack-small" },
      h("p", { class: "hint" }, ABOUT),
      h("div", { class: "fields" }, field("Rows that are public", taken), field("Or upload a file of them", file)),
      said,
    ),
  );

  async function send(chosen) {
    if (!chosen) return;
    const format = formatOf(chosen.name);
    if (format === null) {
      said.replaceChildren(problemBox({ kind: "file-refused", message: ENDING_RULE }, { heading: "h3" }));
      return;
    }
    const bar = progress(`Uploading ${chosen.name}`);
    said.replaceChildren(bar.node);
    await attempt(async () => {
      const made = await sent(dataset, chosen, format, (fraction) => bar.report(fraction, `Uploading ${chosen.name}`));
      uploads.push(made);
      taken.append(h("option", { value: made.id }, named(made)[1]));
      taken.value = made.id;
      said.replaceChildren();
      announce(`${chosen.name} is used as public rows.`);
      changed();
    }, said);
  }

  return {
    node,
    control: taken,
    /** The upload that is declared public; null if there is none. */
    id: () => (node.hidden ? null : taken.value || null),
    offer: (offered) => {
      node.hidden = !offered;
    },
  };
}
