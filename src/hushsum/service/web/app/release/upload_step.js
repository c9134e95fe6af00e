// Step 1: upload records.
import { field, problemBox } from "../explorer/controls.js";
import { h } from "../explorer/dom.js";
import { bytesInWords, columnLabel, kernelInWords, moment, wayOf } from "../explorer/format.js";
import { progress } from "../parts/feedback.js";
import { ENDING_RULE, formatOf, headerOf, headOf, isText, RECORDS, sent, uploadInWords } from "./file_columns.js";
import { encodingChoice } from "./file_form.js";

/** A file to upload, or an upload or tally that waits. `done({upload, columns, nameless, encoding, tally})`. */
export function uploadStep(place, { dataset, uploads, tallies }, done) {
  const said = h("div", {});
  const file = h("input", { type: "file", required: true, accept: `${RECORDS},.tally` });
  const encoding = encodingChoice();
  const button = h("button", {}, "Upload");
  const form = h(
    "form",
    {
      class: "card stack",
      onsubmit: async (event) => {
        event.preventDefault();
        await send(file.files[0]);
      },
    },
    field("A file of records", file, {
      hint: "CSV or TSV with a header (also .gz), Parquet, Arrow, Excel (.xlsx), or a .tally file. One row per record.",
    }),
    h("details", {}, h("summary", {}, "Encoding of the text"), field("Encoding of a CSV file", encoding)),
    said,
    h(
      "p",
      { class: "hint" },
      "It is stored only until it is counted, then deleted; a file that is not counted is deleted at the time that is listed with it. It cannot be read back, and uploading spends no budget.",
    ),
    h("div", { class: "row" }, button),
  );
  place.replaceChildren(form, waiting());
  file.addEventListener("change", () => said.replaceChildren());

  const refuse = (message) => said.replaceChildren(problemBox({ kind: "file-refused", message }, { heading: "h3" }));

  async function send(chosen) {
    const format = chosen.name.toLowerCase().endsWith(".tally") ? "tally" : formatOf(chosen.name);
    if (format === null) {
      refuse(`${ENDING_RULE}, or be a .tally file; save it as one of them`);
      return;
    }
    const bar = progress(`Uploading ${chosen.name}`);
    said.replaceChildren(bar.node);
    button.disabled = true;
    try {
      const head = await headOf(chosen, format, encoding.value);
      if (head !== null && !isText(head)) {
        refuse(
          `the header could not be read: this is no text in ${encoding.selectedOptions[0].textContent}; choose the encoding of the text, or save the file as CSV with a header`,
        );
        encoding.closest("details").open = true;
        return;
      }
      const columns = head === null ? null : headerOf(head);
      const twice = columns?.find((each, at) => columns.indexOf(each) !== at);
      if (twice !== undefined) {
        refuse(`the columns must have distinct names, and “${twice}” is there twice; rename one of them in the file`);
        return;
      }
      const made = await sent(dataset, chosen, format, (fraction) =>
        bar.report(
          fraction,
          `Uploading ${chosen.name}, ${bytesInWords(chosen.size)}${
            fraction === null ? "" : `: ${Math.round(100 * fraction)} %`
          }`,
        ));
      uploads.push(made);
      done({ upload: made, columns, nameless: head !== null && columns === null, encoding: encoding.value });
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      said.replaceChildren(problemBox(problem, { heading: "h3" }));
    } finally {
      button.disabled = false;
    }
  }

  function waiting() {
    if (!uploads.length && !tallies.length) return h("div", {});
    const item = (text, action, until = null) =>
      h(
        "li",
        { class: "row" },
        h("span", {}, text, until && h("span", { class: "soft" }, ` · ${until}`)),
        h("button", { type: "button", class: "plain", onclick: action }, "Use it", h("span", { class: "unseen" }, `: ${text}`)),
      );
    return h(
      "section",
      { class: "section" },
      h("h2", {}, "Or continue with an earlier upload or tally"),
      h(
        "ul",
        { class: "stack-small bare" },
        tallies.map((each) =>
          item(
            `a tally of ${each.facts.columns?.map(columnLabel).join(", ") ?? "sets"}: ${
              wayOf(each.facts.basis).toLowerCase()
            }, ${kernelInWords(each.facts.kernel)}, counted ${moment(each.created)}`,
            () => done({ tally: each }),
          )
        ),
        uploads.map((each) => {
          const { what, until } = uploadInWords(each);
          return item(what, () => done({ upload: each, columns: null, encoding: encoding.value }), until);
        }),
      ),
    );
  }
}
