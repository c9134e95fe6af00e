// The film of a stream: play, pause, any step by a slider, and the change since another step with its error.
import { field, problemBox, select } from "./explorer/controls.js";
import { announce, freshId, h, refill } from "./explorer/dom.js";
import { plot } from "./explorer/drawing.js";
import { choicesOf, pictureOf, refillTable, sliders, startState, withRanges } from "./explorer/explorer.js";
import { listed } from "./explorer/local.js";
import { answersAt, difference, lattice, summary } from "./explorer/subjects.js";
import { onTheme } from "./explorer/theme.js";

const SPEEDS = [["1", "1 step per second"], ["3", "3 steps per second"], ["8", "8 steps per second"]]; // prettier-ignore
const BEFORE = "before";
const ANYWHERE = "This stream declares no bounds and answers anywhere. Enter the range to plot.";
const MOST_KEPT = 800;

/**
 * Fill a place with the film of `subjects`, one per step in their order; returns how to leave it. `numbers` are those of the
 * steps, of which some may be missing, and `horizon` is how many are planned.
 */
export const film = (place, subjects, about) =>
  withRanges(place, subjects[0], ANYWHERE, (ranges) => shown(place, subjects, about, ranges));

function shown(place, subjects, { numbers, horizon }, ranges) {
  const last = subjects.length - 1;
  const whole = numbers[last] === subjects.length;
  const planned = horizon && horizon > numbers[last] ? ` (${horizon} planned)` : "";
  const inWords = (at) =>
    `Step ${numbers[at]}${whole ? ` of ${subjects.length}` : `: ${at + 1} of the ${subjects.length} that you may see`}${planned}`;
  const [subject] = subjects;
  const frames = framesOf(subjects);
  const state = { ...startState(subject, ranges), step: last, since: null, marks: false, span: null };
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
  const slid = () => {
    stop();
    go(Number(slider.value) - 1);
  };
  const slider = h("input", { type: "range", id: freshId("step"), min: 1, max: subjects.length, step: 1, oninput: slid });
  const where = h("output", { class: "film-where", for: slider.id });
  const speed = select(SPEEDS, "3");
  const earlier = numbers.map((number, at) => [String(at), `step ${number}`]);
  const since = select([["", "nothing: the function itself"], [BEFORE, whole ? "the step before" : "the one before"], ...earlier], "", {
    onchange: () => {
      compared = since.value;
      arranged();
    },
  }); // prettier-ignore
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
          field("Show the change since", since, { hint: "Its error accounts for the noise that both steps have in common." }),
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

  const again = () => go(state.step);

  function arranged() {
    arrange();
    again();
  }

  function arrange() {
    const changing = compared !== "";
    // The change in a share would need the error of two estimated numbers of records; counts do not.
    if (changing) state.of = subject.readings[0].of;
    Object.assign(state, { mode: changing ? "difference" : "overlay", marks: changing });
    const readings = changing ? subject.readings.slice(0, 1) : subject.readings;
    refill(choices, choicesOf({ ...subject, readings }, state, [], { arranged, read: again, coloured: draw }));
    refill(others, sliders(subject, state, again));
  }

  function toggle() {
    if (playing) return stop();
    playing = new AbortController();
    button.textContent = "Pause";
    return play(playing.signal);
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
      if (state.step === last || !(await go(state.step + 1))) return stop();
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    }
    return undefined;
  }

  /** Show a step; resolves to whether it was shown. */
  async function go(step) {
    state.step = Math.min(last, Math.max(0, step));
    const nothing = compared === "" || (compared === BEFORE && state.step === 0);
    state.since = nothing ? null : compared === BEFORE ? state.step - 1 : Number(compared);
    state.other = state.since === null ? null : { title: `step ${numbers[state.since]}` };
    slider.value = state.step + 1;
    where.textContent = inWords(state.step);
    slider.setAttribute("aria-valuetext", where.textContent);
    waiting?.abort();
    waiting = new AbortController();
    const { signal } = waiting;
    try {
      const taken = { ...state, at: [...state.at] };
      const request = lattice(subject, taken);
      const answers = await frames.frame(taken, request, signal);
      if (signal.aborted) return false;
      current = { request, answers };
      said.replaceChildren();
      draw();
      return true;
    } catch (problem) {
      if (problem.name === "AbortError") return false;
      if (problem.status === undefined) throw problem;
      said.replaceChildren(problemBox(problem, { heading: "h3", again }));
      return false;
    }
  }

  function draw() {
    if (current === null) return;
    const { request, answers } = current;
    state.span = frames.span(state);
    const changing = state.since !== null;
    const now = { ...subject, title: `step ${numbers[state.step]}` };
    const seen = changing ? state : { ...state, other: null, mode: "overlay", marks: false };
    const { spec, legend: items } = pictureOf(now, seen, request, answers);
    words.textContent = summary(now, seen, request, answers.shown);
    picture.draw({ ...spec, label: `${where.textContent}. ${words.textContent}` });
    refill(legend, items);
    certain.textContent = changing ? certainty(answers, numbers[state.since], numbers[state.step], state) : "";
    if (!playing) refillTable(table, now, seen, request, answers.shown);
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
function certainty({ shown: { lower, upper }, exact }, since, step, { level }) {
  const known = lower.filter((each) => each !== null).length;
  const apart = lower.filter((each, at) => each !== null && (each > 0 || upper[at] < 0)).length;
  const share = known ? Math.round((100 * apart) / known) : 0;
  const wider = exact
    ? "."
    : ": they add up the errors of both steps and are wider than need be, because only the files say how their noise goes together.";
  const intervals = `by ${100 * level} % intervals that hold for all of its points together`;
  return `The change from step ${since} to step ${step} differs from zero in ${share} % of the picture, ${intervals}${wider}`;
}

/**
 * Frames of the subjects of a stream's steps. `frame(state, request, signal)` resolves to {shown, exact}: the answers of a
 * step, or of the change since another one; `exact` is whether the error of a change accounts for the noise that both share.
 */
function framesOf(subjects) {
  const kept = new Map();
  /** Everything but the steps that a frame depends on; of the coordinates, those of the axes that are not shown. */
  const kindOf = ({ of, shown: axes, at, ranges, since, level, together }) =>
    JSON.stringify([of, axes, at.filter((_, axis) => !axes.includes(axis)), ranges, since !== null, level, together]);

  async function compute(state, { points, lattice: given }, signal) {
    const { of, step, since, level } = state;
    const together = since !== null || (state.together ?? given.axes.length > 1);
    const at = (number) => answersAt(subjects[number], of, points, { signal, lattice: given, together, level });
    if (since === null) return { shown: await at(step), exact: true };
    const [before, after] = await Promise.all([since, step].map((number) => subjects[number].source.local()));
    if (before === null || after === null) {
      const [own, others] = await Promise.all([at(step), at(since)]);
      // Steps share noise, and only their files say how: standard errors add up at most.
      return { shown: difference(own, others, (first, second) => first + second), exact: false };
    }
    const { changeBetween } = await import("../reader.js");
    const options = { of: "sum", simultaneous: true, level };
    const found = changeBetween(before, after).picture(given.axes, given.steps, given.fixed, options);
    return { shown: { ...listed([found]), label: null, scores: null }, exact: true };
  }

  return {
    async frame(state, request, signal) {
      const key = JSON.stringify([state.step, state.since, kindOf(state)]);
      const found = kept.get(key) ?? (await compute(state, request, signal));
      kept.delete(key);
      kept.set(key, found);
      if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
      return found;
    },
    /** The numbers between which all frames of this kind lie that were shown so far: one scale for the whole film. */
    span(state) {
      const kind = kindOf(state);
      let [low, high] = [Infinity, -Infinity];
      for (const [key, { shown: answers }] of kept) {
        if (JSON.parse(key)[2] !== kind) continue;
        for (const value of state.layer === "error" ? answers.stderr : answers.value) {
          if (value === null) continue;
          low = Math.min(low, value);
          high = Math.max(high, value);
        }
      }
      return low <= high ? [low, high] : null;
    },
  };
}
