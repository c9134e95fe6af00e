// All steps of a stream that the user may query, as a film.
import { get } from "../api.js";
import { claimSentence } from "../explorer/claims.js";
import { empty } from "../explorer/controls.js";
import { h } from "../explorer/dom.js";
import { subjectOf } from "../explorer/subjects.js";
import { film } from "../film.js";
import { loading } from "../parts/feedback.js";
import { pageHead } from "../parts/page_head.js";
import { serviceSource } from "../sources/service.js";
import { whatItIs } from "./function_words.js";

/** The steps of a stream among functions, in their order. */
export const stepsOf = (functions, stream) =>
  functions.filter(({ facts }) => facts.stream?.stream === stream).sort((one, other) => one.facts.stream.step - other.facts.stream.step);

/** The name of a stream, by that of one of its functions. */
export const streamName = ({ name }) => name.replace(/ step \d+$/, "");

export async function filmView(place, stream) {
  place.append(loading("the film", 1));
  const steps = stepsOf(await get("/functions"), stream);
  const from = { href: "#/functions", name: "Functions" };
  if (!steps.length) {
    place.replaceChildren(
      pageHead("No such film", { from }),
      empty("Nothing to show", "No step of this stream was released, or none was granted to you."),
    );
    return undefined;
  }
  const latest = steps[steps.length - 1];
  const world = h("div", {});
  place.replaceChildren(
    pageHead(streamName(latest), { from, text: `${whatItIs(latest.facts)}: ${latest.facts.stream.shows}` }),
    h("div", { class: "stack-small" }, claimSentence(latest.facts.claim)),
    h("section", { class: "section", "aria-label": "Explorer" }, world),
  );
  const subjects = steps.map((each) => subjectOf(each, serviceSource(each)));
  if (subjects[0].kind !== "number") {
    world.append(empty("Nothing to plot", "The functions of this stream compare sets; query each of them with one."));
    return undefined;
  }
  return film(world, subjects, { numbers: steps.map(({ facts }) => facts.stream.step), horizon: latest.facts.stream.horizon });
}
