// A small picture of a function, fetched when its card is seen. It is for recognition only, so it is hidden from screen
// readers; models that answer a limited number of points are not asked for one.

import { classColour, painted, ramp } from "../charts/colour.js";
import { extent, spread } from "../charts/scale.js";
import { h, refill, s } from "../dom.js";
import { knownRanges } from "../explorer/ranges.js";
import { answersAt } from "../explorer/subject.js";

const ALONG = 49;
const ACROSS = 25;
const [WIDTH, HEIGHT] = [160, 72];

export function thumbnail(subject) {
  const place = h("div", { class: "thumb", "aria-hidden": "true" });
  const ranges = subject.kind === "number" || subject.kind === "classes" ? knownRanges(subject) : null;
  if (ranges === null || subject.questions !== null) {
    refill(place, h("span", { class: "thumb-none" }, subject.kind === "sets" ? "sets" : "no picture"));
    return place;
  }
  const watcher = new IntersectionObserver((entries) => {
    if (!entries.some((each) => each.isIntersecting)) return;
    watcher.disconnect();
    draw(place, subject, ranges).catch(() => refill(place, h("span", { class: "thumb-none" }, "no picture")));
  }, { rootMargin: "300px" });
  watcher.observe(place);
  return place;
}

async function draw(place, subject, ranges) {
  const middle = ranges.map(([low, high]) => (low + high) / 2);
  const of = subject.readings[0][0];
  if (ranges.length === 1) {
    const xs = spread(ranges[0], ALONG);
    const answers = await answersAt(subject, of, xs.map((x) => [x]), { glance: true });
    refill(place, subject.classes ? strip(subject, answers) : line(answers.value));
    return;
  }
  const [xs, ys] = [spread(ranges[0], ACROSS), spread(ranges[1], ACROSS)];
  const points = ys.flatMap((y) => xs.map((x) => [x, y, ...middle.slice(2)]));
  const answers = await answersAt(subject, of, points, { glance: true });
  const [low, high] = extent(answers.value);
  refill(
    place,
    painted(ACROSS, ACROSS, (index) =>
      subject.classes
        ? classColour(Math.max(0, subject.classes.indexOf(answers.label[index])))
        : answers.value[index] === null
        ? null
        : ramp((answers.value[index] - low) / (high - low))),
  );
}

function line(values) {
  const [low, high] = extent([...values, 0]);
  const step = WIDTH / (values.length - 1);
  const y = (value) => (HEIGHT - 4 - ((HEIGHT - 8) * (value - low)) / (high - low)).toFixed(1);
  const path = values.map((value, at) => `${at ? "L" : "M"}${(at * step).toFixed(1)},${y(value ?? 0)}`).join("");
  return s(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", focusable: "false" },
    s("path", { class: "thumb-area", d: `${path}L${WIDTH},${HEIGHT}L0,${HEIGHT}Z` }),
    s("path", { class: "thumb-line", d: path }),
  );
}

const strip = (subject, { label }) =>
  painted(label.length, 1, (index) => classColour(Math.max(0, subject.classes.indexOf(label[index]))));
