// For functions of sets there is no picture: members are typed.

import { h } from "../dom.js";
import { field, segments, text } from "../parts/fields.js";
import { readout } from "./readout.js";
import { answersAt } from "./subject.js";

export function setExplorer(place, subject) {
  let of = subject.readings[0][0];
  const members = text({
    required: true,
    inputmode: "numeric",
    pattern: "[0-9,\\s]+",
    placeholder: "3, 17, 204",
  });
  const output = readout(subject, () => {});
  const ask = async () => {
    try {
      const answers = await answersAt(subject, of, [
        members.value.split(/[\s,]+/).filter(Boolean).map(Number),
      ]);
      output.report({ of, other: null }, { own: answers, others: null, shown: answers });
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      output.fail(problem);
    }
  };
  place.replaceChildren(h(
    "div",
    { class: "card stack" },
    h(
      "form",
      {
        class: "stack",
        onsubmit: (event) => {
          event.preventDefault();
          ask();
        },
      },
      field("Members of a set, whole numbers", members, {
        hint: "This function compares sets, so there is no plot: query it with one.",
      }),
      h(
        "div",
        { class: "row" },
        h("button", {}, "Query"),
        segments("Reading", subject.readings.map(([each, , name]) => [each, name]), of, (next) => {
          of = next;
          if (members.value) ask();
        }),
      ),
    ),
    output.node,
  ));
}
