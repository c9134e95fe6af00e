// The film of a stream: play, pause, any step by a slider, and the change since another step with its error.

import { plot } from "../charts/plot.js";
import { announce, freshId, h, refill } from "../dom.js";
import { asTable, summary } from "../explorer/answer_table.js";
import { choicesOf } from "../explorer/choices.js";
import { lattice, pictureOf } from "../explorer/picture.js";
import { knownRanges, rangeForm } from "../explorer/ranges.js";
import { sliders } from "../explorer/sliders.js";
import { problemBox } from "../parts/feedback.js";
import { field, select } from "../parts/fields.js";
import { onTheme } from "../theme.js";
import { framesOf } from "./frames.js";

const SPEEDS = [["1", "1 step per second"], ["3", "3 steps per second"], ["8", "8 steps per second"]];
const BEFORE = "before";

/**
 * Fill a place with the film of `subjects`, one per step in their order; returns how to leave it. `numbers` are those of the
 * steps, of which some may be missing, and `steps` is how many are planned.
 */
export function film(place, subjects, { numbers, steps }) {
  const ranges = knownRanges(subjects[0]);
  const about = { numbers, steps };
  if (ranges) return shown(place, subjects, about, ranges);
  let leave = () => {};
  place.replaceChildren(h(
    "div",
    { class: "card" },
    rangeForm(subjects[0], null, (found) => {
      leave = shown(place, subjects, about, found);
    }, { heading: "Which range should be shown?", hint: "This stream declares no bounds and answers anywhere. Enter the range to plot." }),
  ));
  return () => leave();
}

function shown(place, subjects, { numbers, steps }, ranges) {
  const last = subjects.length - 1;
  const whole = numbers[last] === subjects.length;
  const planned = steps > numbers[last] ? ` (${steps} planned)` : "";
  const inWords = (at) => `Step ${numbers[at]}${whole ? ` of ${subjects.length}` : `: ${at + 1} of the ${subjects.length} that you may see`}${planned}`;
  const [subject] = subjects;
  const frames = framesOf(subjects);
  const state = {
    step: last,
    since: null,
    ranges,
    at: ranges.map(([low, high]) => (low + high) / 2),
    shown: ranges.length === 1 ? [0, null] : [0, 1],
    of: subject.readings[0][0],
    layer: "value",
    other: null,
    mode: "overlay",
    marks: false,
    span: null,
  };
  let compared = "";
  let playing = null;
  let waiting = null;
  let current = null;

  const about = freshId("film");
  const picture = plot({ describedBy: about, onpoint: () => {}, onstep: (x) => go(state.step + Math.sign(x)), onenter: toggle });
  const legend = h("ul", { class: "legend" });
  const words = h("p", { class: "small soft" });
  const certain = h("p", { class: "small soft" });
  const table = h("div", {});
  const said = h("div", {});
  const button = h("button", { type: "button", class: "film-play", onclick: toggle }, "Play");
  const slider = h("input", {
    type: "range",
    id: freshId("step"),
    min: 1,
    max: subjects.length,
    step: 1,
    oninput: () => {
      stop();
      go(Number(slider.value) - 1);
    },
  });
  const where = h("output", { class: "film-where", for: slider.id });
  const speed = select(SPEEDS, "3");
  const since = select(
    [["", "nothing: the function itself"], [BEFORE, whole ? "the step before" : "the one before"], ...numbers.map((number, at) => [String(at), `step ${number}`])],
    "",
    { onchange: () => {
      compared = since.value;
      arrange();
      go(state.step);
    } },
  );
  const choices = h("div", {});
  const others = h("div", { class: "others" });

  place.replaceChildren(
    h(
      "section",
      { class: "explorer", "aria-label": "Film", onkeydown: keys },
      h(
        "div",
        { class: "card" },
        said,
        h("div", { class: "film-bar" }, button, h("label", { class: "unseen", for: slider.id }, "Step"), slider, where),
        picture.node,
        h(
          "div",
          { class: "under" },
          legend,
          words,
          certain,
          h("p", { class: "unseen", id: about }, "Arrow keys go from step to step, Enter plays and pauses. A table follows."),
          table,
        ),
      ),
      h(
        "div",
        { class: "panel" },
        h(
          "div",
          { class: "card panel" },
          h("h2", {}, "Change"),
          field("Show the change since", since, {
            hint: "Its error accounts for the noise that both steps have in common.",
          }),
          field("Speed", speed),
        ),
        h("div", { class: "card panel" }, choices, others),
      ),
    ),
  );

  /** Space plays and pauses, wherever the focus is and nothing else takes it. */
  function keys(event) {
    if (event.key !== " " || event.target.matches("button, select, summary, input:not([type=range])")) return;
    event.preventDefault();
    toggle();
  }

  function arrange() {
    const changing = compared !== "";
    // The change in a share would need the error of two estimated numbers of records; counts do not.
    if (changing) state.of = subject.readings[0][0];
    Object.assign(state, { mode: changing ? "difference" : "overlay", marks: changing });
    const readings = changing ? subject.readings.slice(0, 1) : subject.readings;
    const again = () => {
      arrange();
      go(state.step);
    };
    refill(choices, choicesOf({ ...subject, readings }, state, [], { arranged: again, read: () => go(state.step), coloured: draw }));
    const axes = state.shown.filter((each) => each !== null);
    const cut = subject.names.map((_, at) => at).filter((at) => !axes.includes(at));
    refill(others, sliders(subject, cut, state, (axis, value) => {
      state.at[axis] = value;
      go(state.step);
    }));
  }

  function toggle() {
    if (playing) return stop();
    playing = new AbortController();
    button.textContent = "Pause";
    play(playing.signal);
  }

  function stop() {
    if (!playing) return;
    playing.abort();
    playing = null;
    button.textContent = "Play";
    announce(where.textContent);
  }

  async function play(signal) {
    if (state.step === last) await go(0);
    while (!signal.aborted) {
      const due = performance.now() + 1000 / Number(speed.value);
      if (state.step === last) return stop();
      if (!(await go(state.step + 1))) return stop();
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    }
  }

  /** Show a step; resolves to whether it was shown. */
  async function go(step) {
    state.step = Math.min(last, Math.max(0, step));
    state.since = compared === "" || (compared === BEFORE && state.step === 0)
      ? null
      : compared === BEFORE
      ? state.step - 1
      : Number(compared);
    state.other = state.since === null ? null : { title: `step ${numbers[state.since]}` };
    slider.value = state.step + 1;
    where.textContent = inWords(state.step);
    slider.setAttribute("aria-valuetext", where.textContent);
    waiting?.abort();
    waiting = new AbortController();
    const { signal } = waiting;
    try {
      const shown = { ...state, at: [...state.at] };
      const request = lattice(subject, shown);
      const answers = await frames.frame(shown, request, signal);
      if (signal.aborted) return false;
      current = { request, answers };
      said.replaceChildren();
      draw();
      return true;
    } catch (problem) {
      if (problem.name === "AbortError") return false;
      if (problem.status === undefined) throw problem;
      said.replaceChildren(problemBox(problem, { heading: "h3", again: () => go(state.step) }));
      return false;
    }
  }

  function draw() {
    if (current === null) return;
    state.span = frames.span(state);
    const changing = state.since !== null;
    const now = { ...subject, title: `step ${numbers[state.step]}` };
    const shownState = changing ? state : { ...state, other: null, mode: "overlay", marks: false };
    const { spec, legend: items } = pictureOf(now, shownState, current.request, current.answers);
    const text = summary(now, shownState, current.request, current.answers.shown);
    picture.draw({ ...spec, label: `${where.textContent}. ${text}` });
    refill(legend, items);
    words.textContent = text;
    certain.textContent = changing ? certainty(current.answers, numbers[state.since], numbers[state.step]) : "";
    if (playing) return;
    const open = table.querySelector("details")?.open ?? false;
    refill(table, asTable(now, shownState, current.request, current.answers.shown));
    table.querySelector("details").open = open;
  }

  arrange();
  go(last);
  const forget = onTheme(draw);
  return () => {
    forget();
    stop();
    picture.end();
    waiting?.abort();
  };
}

/** How much of a picture of a change differs from zero, and what its interval is. */
function certainty({ shown: { lower, upper }, exact }, since, step) {
  const known = lower.filter((each) => each !== null).length;
  const apart = lower.filter((each, at) => each !== null && (each > 0 || upper[at] < 0)).length;
  const share = known ? Math.round((100 * apart) / known) : 0;
  return `The change from step ${since} to step ${step} differs from zero in ${share} % of the picture, by 95 % intervals that hold for all of its points together${
    exact ? "." : ": they add up the errors of both steps and are wider than need be, because only the files say how their noise goes together."
  }`;
}
