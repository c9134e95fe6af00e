// The explorer: choose what is plotted, query points, compare with another function, export.

import { plot } from "../charts/plot.js";
import { freshId, h, refill, settled } from "../dom.js";
import { problemBox } from "../parts/feedback.js";
import { onTheme } from "../theme.js";
import { asTable, exported, summary } from "./answer_table.js";
import { choicesOf } from "./choices.js";
import { difference } from "./comparison.js";
import { exportRow } from "./exports.js";
import { lattice, pictureOf } from "./picture.js";
import { knownRanges, rangeForm } from "./ranges.js";
import { readout } from "./readout.js";
import { sliders } from "./sliders.js";
import { answersAt } from "./subject.js";

const QUICK_MILLISECONDS = 25;

/**
 * Fill a place with the explorer of a subject; returns how to leave it. `others` are subjects that it can be compared
 * with; `requests` makes texts for terminals and programs, by their names.
 */
export function explorer(place, subject, { others = [], requests = {}, compact = false } = {}) {
  const options = { others, requests, compact };
  const ranges = knownRanges(subject);
  if (ranges) return explore(place, subject, ranges, options);
  let leave = () => {};
  place.replaceChildren(h(
    "div",
    { class: "card" },
    rangeForm(subject, null, (found) => {
      leave = explore(place, subject, found, options);
      place.querySelector("svg").focus();
    }, {
      heading: "Which range should be shown?",
      hint: "This function declares no bounds and answers anywhere. Enter the range to plot.",
    }),
  ));
  return () => leave();
}

function explore(place, subject, ranges, { others, requests, compact }) {
  const dim = subject.names.length;
  const state = {
    ranges,
    at: ranges.map(([low, high]) => (low + high) / 2),
    shown: dim === 1 ? [0, null] : [0, 1],
    of: subject.readings[0][0],
    layer: "value",
    other: null,
    mode: "overlay",
  };
  const about = freshId("about");
  const picture = plot({
    describedBy: about,
    onpoint(x, y) {
      move([[state.shown[0], x], [state.shown[1], y]]);
      askPoint();
    },
    onstep: step,
    onenter: () => askPoint(),
  });
  // Where queries are limited, only clicks and buttons send them.
  const frugal = subject.questions !== null;
  picture.node.hidden = frugal;
  const legend = h("ul", { class: "legend" });
  const words = h("p", { class: "small soft", id: `${about}-words` });
  const numbers = h("div", {});
  const origin = h("p", { class: "small soft" });
  const said = h("div", {});
  const here = readout(subject, (axis, value) => move([[axis, value]], { ask: !frugal }), () => askPoint());
  const choices = h("div", {});
  let current = null;
  let waiting = null;
  let asking = null;
  let frame = null;
  let took = Infinity;

  place.replaceChildren(
    h(
      "div",
      { class: compact ? "explorer explorer-compact" : "explorer" },
      h(
        "div",
        { class: "card" },
        said,
        picture.node,
        h(
          "div",
          { class: "under" },
          legend,
          words,
          h(
            "p",
            { class: "unseen", id: about },
            "Arrow keys move the point, with Shift ten times as far. The answer is read out. A table follows.",
          ),
          origin,
          exportRow(shownNow, requests),
          numbers,
        ),
      ),
      h(
        "div",
        { class: "panel" },
        h("div", { class: "card" }, here.node),
        h(
          "div",
          { class: "card panel" },
          choices,
          h(
            "details",
            {},
            h("summary", {}, "Ranges"),
            rangeForm(subject, ranges, (found) => {
              state.ranges = found;
              state.at = state.at.map((each, axis) =>
                Math.min(found[axis][1], Math.max(found[axis][0], each))
              );
              arrange();
              show();
            }, {}),
          ),
        ),
      ),
    ),
  );

  function arrange() {
    picture.marker = null;
    refill(
      choices,
      choicesOf(subject, state, others, {
        arranged() {
          arrange();
          show();
        },
        read: show,
        coloured: draw,
      }),
    );
    const shown = state.shown.filter((each) => each !== null);
    const hidden = subject.names.map((_, at) => at).filter((at) => !shown.includes(at));
    refill(
      here.others,
      sliders(subject, hidden, state, (axis, value) => {
        state.at[axis] = value;
        showSoon();
      }),
    );
    here.offer(shown, state.at);
  }

  function move(pairs, { ask = false } = {}) {
    for (const [axis, value] of pairs) if (axis !== null) state.at[axis] = Number(value.toPrecision(6));
    here.place(state.at);
    if (ask) askPoint();
    else mark(null);
  }

  function step(...steps) {
    const moves = state.shown.map((axis, at) => {
      if (axis === null || steps[at] === 0) return null;
      const [low, high] = state.ranges[axis];
      return [axis, Math.min(high, Math.max(low, state.at[axis] + (steps[at] * (high - low)) / 100))];
    });
    move(moves.filter(Boolean), { ask: !frugal });
  }

  function show() {
    if (frugal) refill(said, offer(subject, lattice(subject, state).points.length, fetchPicture));
    else fetchPicture();
  }
  // Answers that are computed here come with the next frame; of requests only the last of a row of moves is sent.
  const showSettled = settled(90, show);
  const showSoon = () => {
    if (took > QUICK_MILLISECONDS) return showSettled();
    frame ??= requestAnimationFrame(() => {
      frame = null;
      show();
    });
  };

  /** The answers of both functions, the other's null where there is none, and what is shown: one or the difference. */
  async function bothAt(points, options) {
    const [own, others] = await Promise.all([
      answersAt(subject, state.of, points, options),
      state.other && answersAt(state.other, state.of, points, options),
    ]);
    const shown = others && state.mode === "difference" ? difference(own, others) : own;
    return { own, others, shown };
  }

  async function fetchPicture() {
    waiting?.abort();
    waiting = new AbortController();
    picture.node.setAttribute("aria-busy", "true");
    try {
      const request = lattice(subject, state);
      const started = performance.now();
      const answers = await bothAt(request.points, {
        signal: waiting.signal,
        lattice: request.lattice,
        together: state.shown[1] !== null,
      });
      took = performance.now() - started;
      current = { request, answers };
      origin.textContent = subject.source.origin() ?? "";
      said.replaceChildren();
      picture.node.hidden = false;
      draw();
      if (!frugal) askPoint();
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (problem.status === undefined) throw problem;
      if (problem.status !== 401) {
        said.replaceChildren(problemBox(problem, { heading: "h3", again: fetchPicture }));
      }
    }
    picture.node.removeAttribute("aria-busy");
  }

  function draw() {
    if (current === null) return;
    const { spec, legend: items } = pictureOf(subject, state, current.request, current.answers);
    const text = summary(subject, state, current.request, current.answers.shown);
    picture.draw({ ...spec, label: text, marker: picture.marker });
    refill(legend, items);
    words.textContent = text;
    const open = numbers.querySelector("details")?.open ?? false;
    refill(numbers, asTable(subject, state, current.request, current.answers.shown));
    numbers.querySelector("details").open = open;
  }

  function shownNow() {
    if (current === null) return null;
    const title = state.other ? `${subject.title} and ${state.other.title}` : subject.title;
    const table = exported(subject, state, current.request, current.answers);
    return { svg: picture.node.querySelector("svg"), title, point: state.at, of: state.of, ...table };
  }

  /** Show the point; on a curve its answer gives the height, if it is known. */
  function mark(answers) {
    const [first, second] = state.shown;
    picture.marker = second === null
      ? { x: state.at[first], y: answers?.value[0], lower: answers?.lower[0], upper: answers?.upper[0] }
      : { x: state.at[first], y: state.at[second], across: true };
    picture.mark(picture.marker);
  }

  async function askPoint() {
    asking?.abort();
    asking = new AbortController();
    try {
      const answers = await bothAt([state.at], { signal: asking.signal });
      here.report(state, answers);
      mark(answers.shown);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (problem.status === undefined) throw problem;
      here.fail(problem);
    }
  }

  arrange();
  show();
  const stop = onTheme(() => draw());
  return () => {
    stop();
    picture.end();
    if (frame !== null) cancelAnimationFrame(frame);
    showSettled.cancel();
    waiting?.abort();
    asking?.abort();
  };
}

/** Shown before plotting a model whose queries are limited. */
function offer(subject, number, draw) {
  return h(
    "div",
    { class: "note stack", role: "note" },
    h(
      "p",
      {},
      `This model answers exactly, from a random path that is drawn query by query. It answers ${
        subject.questions.toLocaleString("en")
      } distinct points in all, whoever asks, and the same point again at any time.`,
    ),
    h(
      "div",
      { class: "row" },
      h("button", { type: "button", onclick: draw }, `Draw a plot with ${number} queries`),
    ),
  );
}
