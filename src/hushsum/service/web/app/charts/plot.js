// The frame of a picture: axes with their names, a place for what is drawn, a point that is moved by click or by arrow keys.

import { freshId, h, refill, s } from "../dom.js";
import { linear, ticks, tickTexts } from "./scale.js";

const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/** An empty plot. `onpoint(x, y)` is called with numbers on the axes, `onstep(x, y)` with steps to take, `onenter` by Enter. */
export function plot({ describedBy, onpoint, onstep, onenter }) {
  const clip = freshId("clip");
  const hatch = freshId("hatch");
  const svg = s("svg", { role: "application", tabindex: "0", "aria-describedby": describedBy });
  const node = h("div", { class: "plot" }, svg);
  let spec = null;
  let scales = null;

  function redraw() {
    if (spec === null) return;
    const { width, height } = node.getBoundingClientRect();
    if (width < 50) return;
    const widest = Math.max(...tickTexts(ticks(spec.y.range, height / 55)).map((each) => each.length));
    const left = 30 + 6.6 * widest;
    const room = { left, right: width - 12, top: 10, bottom: height - 46 };
    const box = spec.alike ? fitted(room, spec.x.range, spec.y.range) : room;
    const x = linear(spec.x.range, [box.left, box.right]);
    const y = linear(spec.y.range, [box.bottom, box.top]);
    const yTicks = ticks(spec.y.range, (box.bottom - box.top + 56) / 55);
    const yTexts = tickTexts(yTicks);
    const xTicks = ticks(spec.x.range, (box.right - box.left) / 75);
    scales = { x, y, box };
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-label", spec.label);
    refill(
      svg,
      s(
        "defs",
        {},
        s(
          "clipPath",
          { id: clip },
          s("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top }),
        ),
        s(
          "pattern",
          { id: hatch, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
          s("line", { class: spec.pale ? "hatch-line hatch-ink" : "hatch-line", x1: 0, x2: 0, y1: 0, y2: 6 }),
        ),
      ),
      !spec.filled && grid(xTicks, yTicks, x, y, box),
      s("g", { "clip-path": `url(#${clip})` }, spec.draw({ x, y, box, hatch: `url(#${hatch})` })),
      s("rect", {
        class: "axis",
        x: box.left,
        y: box.top,
        width: box.right - box.left,
        height: box.bottom - box.top,
      }),
      tickTexts(xTicks).map((text, at) =>
        s("text", { x: x(xTicks[at]), y: box.bottom + 17, "text-anchor": "middle" }, text)
      ),
      yTexts.map((text, at) =>
        s("text", { x: box.left - 7, y: y(yTicks[at]) + 4, "text-anchor": "end" }, text)
      ),
      spec.filled && [
        xTicks.map((each) =>
          s("line", { class: "axis", x1: x(each), x2: x(each), y1: box.bottom, y2: box.bottom + 4 })
        ),
        yTicks.map((each) =>
          s("line", { class: "axis", x1: box.left - 4, x2: box.left, y1: y(each), y2: y(each) })
        ),
      ],
      s(
        "text",
        { class: "axis-name", x: (box.left + box.right) / 2, y: box.bottom + 40, "text-anchor": "middle" },
        spec.x.name,
      ),
      s("text", {
        class: "axis-name",
        transform: `translate(${box.left - left + 13} ${(box.top + box.bottom) / 2}) rotate(-90)`,
        "text-anchor": "middle",
      }, spec.y.name),
      marker(spec.marker, x, y, box),
    );
  }

  svg.addEventListener("click", (event) => {
    if (scales === null) return;
    const at = svg.getBoundingClientRect();
    const clamp = (value, [low, high]) => Math.min(high, Math.max(low, value));
    onpoint(
      clamp(scales.x.inverse(event.clientX - at.left), scales.x.domain),
      clamp(scales.y.inverse(event.clientY - at.top), scales.y.domain),
    );
  });
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Enter") onenter();
    const step = KEYS[event.key];
    if (!step) return;
    event.preventDefault();
    onstep(...step.map((each) => each * (event.shiftKey ? 10 : 1)));
  });
  const watcher = new ResizeObserver(redraw);
  watcher.observe(node);
  return {
    node,
    draw(next) {
      spec = next;
      redraw();
    },
    redraw,
    mark(next) {
      if (spec) {
        spec.marker = next;
        redraw();
      }
    },
    end: () => watcher.disconnect(),
  };
}

/** The largest box within a room on which a step is as long along x as along y, in the middle of it. */
export function fitted(room, [fromX, toX], [fromY, toY]) {
  const [width, height] = [room.right - room.left, room.bottom - room.top];
  const scale = Math.min(width / (toX - fromX), height / (toY - fromY));
  const [spareX, spareY] = [width - scale * (toX - fromX), height - scale * (toY - fromY)];
  return {
    left: room.left + spareX / 2,
    right: room.right - spareX / 2,
    top: room.top,
    bottom: room.bottom - spareY,
  };
}

function grid(xTicks, yTicks, x, y, box) {
  return s(
    "g",
    {},
    xTicks.map((each) => s("line", { class: "grid", x1: x(each), x2: x(each), y1: box.top, y2: box.bottom })),
    yTicks.map((each) => s("line", { class: "grid", x1: box.left, x2: box.right, y1: y(each), y2: y(each) })),
  );
}

/** The queried point: cross hairs, and its error as a whisker where there is an axis for it. */
function marker(at, x, y, box) {
  if (!at || at.x < x.domain[0] || at.x > x.domain[1]) return null;
  const [px, py] = [x(at.x), at.y === null || at.y === undefined ? null : y(at.y)];
  const line = (name, x1, x2, y1, y2) => s("line", { class: name, x1, x2, y1, y2 });
  return s(
    "g",
    { "aria-hidden": "true" },
    line("cross-under", px, px, box.top, box.bottom),
    line("cross", px, px, box.top, box.bottom),
    py !== null && at.across &&
      [line("cross-under", box.left, box.right, py, py), line("cross", box.left, box.right, py, py)],
    at.lower !== undefined && at.lower !== null &&
      line("whisker", px, px, y(Math.max(at.lower, y.domain[0])), y(Math.min(at.upper, y.domain[1]))),
    py !== null && s("circle", { class: "here", cx: px, cy: py, r: 5 }),
  );
}
