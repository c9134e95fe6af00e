// A small picture of a function, fetched when its card is seen. It is for recognition only, so it is hidden from screen
// readers; models that answer a limited number of points are not asked for one.
import { h, refill } from "../explorer/dom.js";
import { classColour, extent, painted, ramp, smallCurve } from "../explorer/drawing.js";
import { knownRanges, startState } from "../explorer/explorer.js";
import { answersAt, lattice } from "../explorer/subjects.js";

const ALONG = 49;
const ACROSS = 25;

export function thumbnail(subject) {
  const place = h("div", { class: "thumb", "aria-hidden": "true" });
  const none = (words) => refill(place, h("span", { class: "thumb-none" }, words));
  const ranges = subject.kind === "number" || subject.kind === "classes" ? knownRanges(subject) : null;
  if (ranges === null || subject.questions !== null) {
    none(subject.kind === "sets" ? "sets" : "no picture");
    return place;
  }
  const watcher = new IntersectionObserver((entries) => {
    if (!entries.some((each) => each.isIntersecting)) return;
    watcher.disconnect();
    draw(place, subject, startState(subject, ranges)).catch(() => none("no picture"));
  }, { rootMargin: "300px" }); // prettier-ignore
  watcher.observe(place);
  return place;
}

async function draw(place, subject, state) {
  const curve = state.shown[1] === null;
  const { xs, ys, points } = lattice(subject, state, curve ? ALONG : ACROSS);
  const { value, label } = await answersAt(subject, state.of, points, { glance: true });
  const [low, high] = extent(value);
  const ofClass = (at) => classColour(Math.max(0, subject.classes.indexOf(label[at])));
  const ofNumber = (at) => (value[at] === null ? null : ramp((value[at] - low) / (high - low)));
  refill(place, curve && !subject.classes ? smallCurve(value) : painted(xs.length, ys.length, subject.classes ? ofClass : ofNumber));
}
