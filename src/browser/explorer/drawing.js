// Everything that is drawn: colours, scales, axes, curves with bands, maps, regions, and a small picture for lists.
import { freshId, h, refill, s } from "./dom.js";

// --- colours --------------------------------------------------------------------------------------------------------

// Viridis (van der Walt & Smith 2015): equal steps look equal, in print and to the colour-blind too. Classes have the
// colours of Okabe & Ito, which everybody can distinguish; a label always stands beside them.
const VIRIDIS = [
  "440154", "48186a", "472d7b", "424086", "3b528b", "33638d", "2c728e", "26828e", "21918c", "1fa088", "28ae80", "3fbc73", "5ec962",
  "84d44b", "addc30", "d8e219", "fde725",
].map(rgb); // prettier-ignore
const CLASSES = ["0072b2", "e69f00", "009e73", "cc79a7", "d55e00", "56b4e9", "999999"].map(rgb);
const [BELOW, ABOVE] = ["2166ac", "b35806"].map(rgb);

function rgb(text) {
  return [0, 2, 4].map((at) => parseInt(text.slice(at, at + 2), 16));
}

/** The ramp's colour at a fraction between 0 and 1. */
export function ramp(fraction) {
  const at = Math.min(1, Math.max(0, fraction)) * (VIRIDIS.length - 1);
  const below = Math.min(VIRIDIS.length - 2, Math.floor(at));
  return VIRIDIS[below].map((part, channel) => part + (VIRIDIS[below + 1][channel] - part) * (at - below));
}

/** From blue, below zero, over the ground in the middle to orange, above it. */
export function diverging(fraction, dark) {
  const from = Math.min(1, Math.max(-1, 2 * fraction - 1));
  return faded(from < 0 ? BELOW : ABOVE, dark, Math.abs(from));
}

export const classColour = (index) => CLASSES[index % CLASSES.length];

/** A colour, paler on the ground it stands on: what a region is filled with, so that lines on it stay visible. */
export const faded = (colour, dark, strength) => colour.map((part) => part * strength + (dark ? 23 : 255) * (1 - strength));

export const css = (colour) => `rgb(${colour.map(Math.round).join(" ")})`;

/** A picture of colours, one pixel per cell, first row at the bottom. `colour(index)` may be null: then nothing is painted. */
export function painted(columns, rows, colour) {
  const canvas = h("canvas", { width: columns, height: rows });
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let row = 0; row < rows; row += 1)
    for (let column = 0; column < columns; column += 1) {
      const found = colour(row * columns + column);
      if (found !== null) image.data.set([...found.map(Math.round), 255], 4 * ((rows - 1 - row) * columns + column));
    }
  context.putImageData(image, 0, 0);
  return canvas;
}

// --- scales ---------------------------------------------------------------------------------------------------------

/** A map from an interval to an interval, and back. */
function linear([low, high], [from, to]) {
  const size = high - low || 1;
  const scale = (value) => from + ((value - low) / size) * (to - from);
  scale.inverse = (pixel) => low + ((pixel - from) / (to - from)) * size;
  scale.domain = [low, high];
  return scale;
}

/** At most about `count` ticks at 1, 2 or 5 times a power of ten inside the interval. */
export function ticks([low, high], count) {
  const size = high - low;
  if (!(size > 0) || !Number.isFinite(size)) return [low];
  const rough = size / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999999);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** The words at ticks: just enough places to distinguish neighbours. */
export function tickTexts(at) {
  const largest = Math.max(...at.map(Math.abs));
  const step = at.length > 1 ? Math.abs(at[1] - at[0]) : largest || 1;
  const minus = (text) => text.replace("-", "−");
  if (largest >= 1e6 || (largest > 0 && largest < 1e-3)) {
    const places = Math.max(0, Math.floor(Math.log10(largest)) - Math.floor(Math.log10(step)));
    return at.map((each) => (each === 0 ? "0" : minus(each.toExponential(places)).replace("e+", "e")));
  }
  const places = Math.min(8, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const digits = { minimumFractionDigits: places, maximumFractionDigits: places, useGrouping: largest >= 1e4 };
  return at.map((each) => minus(each.toLocaleString("en", digits)));
}

/** The smallest interval with these numbers in it; never empty. */
export function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const each of values) {
    if (each === null || !Number.isFinite(each)) continue;
    if (each < low) low = each;
    if (each > high) high = each;
  }
  if (low > high) return [0, 1];
  return low === high ? [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2] : [low, high];
}

/** The same with some air; an end at zero stays there. */
export function roomy(values) {
  const [low, high] = extent(values);
  const air = (high - low) * 0.05;
  return [low === 0 ? 0 : low - air, high === 0 ? 0 : high + air];
}

/** `number` numbers from low to high, both included. */
export const spread = ([low, high], number) =>
  Array.from({ length: number }, (_, at) => low + ((high - low) * at) / (number - 1));

/** The largest box within a room in which a unit upwards is `ratio` times as long as one across, in the middle of it. */
export function fitted(room, [fromX, toX], [fromY, toY], ratio = 1) {
  const [width, height] = [room.right - room.left, room.bottom - room.top];
  const [wide, tall] = [toX - fromX, ratio * (toY - fromY)];
  const scale = Math.min(width / wide, height / tall);
  const spare = (width - scale * wide) / 2;
  return { left: room.left + spare, right: room.right - spare, top: room.top, bottom: room.top + scale * tall };
}

// --- the frame of a picture -----------------------------------------------------------------------------------------

const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/**
 * An empty plot with axes, their names, and a point that is moved by click or arrow keys, and by dragging where `drags`. `onpoint(x, y)` is called with
 * numbers on the axes, `onstep(x, y)` with steps to take, `onenter` by Enter.
 */
export function plot({ describedBy, drags = false, onpoint, onstep, onenter }) {
  const [clip, hatch] = [freshId("clip"), freshId("hatch")];
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
    const box = spec.alike ? fitted(room, spec.x.range, spec.y.range, spec.alike) : room;
    const size = { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top };
    const x = linear(spec.x.range, [box.left, box.right]);
    const y = linear(spec.y.range, [box.bottom, box.top]);
    const [xTicks, yTicks] = [ticks(spec.x.range, size.width / 75), ticks(spec.y.range, (size.height + 56) / 55)];
    const [xTexts, yTexts] = [tickTexts(xTicks), tickTexts(yTicks)];
    const line = (name, x1, x2, y1, y2) => s("line", { class: name, x1, x2, y1, y2 });
    const middle = `translate(${box.left - left + 13} ${(box.top + box.bottom) / 2}) rotate(-90)`;
    scales = { x, y, box };
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-label", spec.label);
    refill(
      svg,
      s(
        "defs",
        {},
        s("clipPath", { id: clip }, s("rect", size)),
        s(
          "pattern",
          { id: hatch, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
          line(spec.pale ? "hatch-line hatch-ink" : "hatch-line", 0, 0, 0, 6),
        ),
      ),
      !spec.filled && xTicks.map((each) => line("grid", x(each), x(each), box.top, box.bottom)),
      !spec.filled && yTicks.map((each) => line("grid", box.left, box.right, y(each), y(each))),
      s("g", { "clip-path": `url(#${clip})` }, spec.draw({ x, y, box, hatch: `url(#${hatch})` })),
      s("rect", { class: "axis", ...size }),
      xTexts.map((text, at) => s("text", { x: x(xTicks[at]), y: box.bottom + 17, "text-anchor": "middle" }, text)),
      yTexts.map((text, at) => s("text", { x: box.left - 7, y: y(yTicks[at]) + 4, "text-anchor": "end" }, text)),
      spec.filled && xTicks.map((each) => line("axis", x(each), x(each), box.bottom, box.bottom + 4)),
      spec.filled && yTicks.map((each) => line("axis", box.left - 4, box.left, y(each), y(each))),
      s("text", { class: "axis-name", x: (box.left + box.right) / 2, y: box.bottom + 40, "text-anchor": "middle" }, spec.x.name),
      s("text", { class: "axis-name", transform: middle, "text-anchor": "middle" }, spec.y.name),
      marker(spec.marker, x, y, box, line),
    );
  }

  function pick(event) {
    if (scales === null) return;
    const at = svg.getBoundingClientRect();
    const clamp = (value, [low, high]) => Math.min(high, Math.max(low, value));
    onpoint(
      clamp(scales.x.inverse(event.clientX - at.left), scales.x.domain),
      clamp(scales.y.inverse(event.clientY - at.top), scales.y.domain),
    );
  }
  svg.addEventListener("click", pick);
  if (drags) svg.addEventListener("pointermove", (event) => event.buttons && pick(event));
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
    mark(next) {
      if (spec === null) return;
      spec.marker = next;
      redraw();
    },
    end: () => watcher.disconnect(),
  };
}

/** The queried point: cross hairs, and its error as a whisker where there is an axis for it. */
function marker(at, x, y, box, line) {
  if (!at || at.x < x.domain[0] || at.x > x.domain[1]) return null;
  const [px, py] = [x(at.x), at.y === null || at.y === undefined ? null : y(at.y)];
  const within = (value) => y(Math.min(Math.max(value, y.domain[0]), y.domain[1]));
  return s(
    "g",
    { "aria-hidden": "true" },
    ["cross-under", "cross"].map((name) => line(name, px, px, box.top, box.bottom)),
    py !== null && at.across && ["cross-under", "cross"].map((name) => line(name, box.left, box.right, py, py)),
    at.lower !== undefined && at.lower !== null && line("whisker", px, px, within(at.lower), within(at.upper)),
    py !== null && s("circle", { class: "here", cx: px, cy: py, r: 5 }),
  );
}

// --- curves ---------------------------------------------------------------------------------------------------------

/** `lines` are {value, lower, upper, colour, dashed}, each with one number per x; null where it is not known. */
export function curves(xs, lines) {
  return ({ x, y }) =>
    lines.flatMap(({ value, lower, upper, colour, dashed }) => {
      const band = lower && upper ? s("path", { class: "band", d: bandPath(xs, lower, upper, x, y) }) : null;
      const line = s("path", { class: "curve", d: linePath(xs, value, x, y) });
      if (dashed) line.style.strokeDasharray = "7 4";
      if (colour) line.style.stroke = colour;
      if (colour && band) Object.assign(band.style, { fill: colour, fillOpacity: "0.16" });
      return [band, line];
    });
}

const point = (at, value, x, y) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`;

/** A line that is broken where values are not known. */
const linePath = (xs, values, x, y) =>
  values
    .map((value, at) => (value === null ? "" : `${at > 0 && values[at - 1] !== null ? "L" : "M"}${point(xs[at], value, x, y)}`))
    .join("");

function bandPath(xs, lower, upper, x, y) {
  const known = xs.map((_, at) => at).filter((at) => lower[at] !== null && upper[at] !== null);
  if (!known.length) return "";
  const there = known.map((at) => point(xs[at], upper[at], x, y));
  const back = known.reverse().map((at) => point(xs[at], lower[at], x, y));
  return `M${[...there, ...back].join("L")}Z`;
}

/** The first and the last index of each stretch on which something holds. */
function stretches(length, holds) {
  const found = [];
  for (let at = 0; at < length; at += 1) {
    if (!holds(at)) continue;
    if (at > 0 && found.length && found[found.length - 1][1] === at - 1) found[found.length - 1][1] = at;
    else found.push([at, at]);
  }
  return found;
}

/** A bar along zero where the interval of a curve does not include it. */
export function apartFromZero(xs, { lower, upper }) {
  return ({ x, y }) => {
    const half = (x(xs[1]) - x(xs[0])) / 2;
    const apart = stretches(xs.length, (at) => lower[at] !== null && (lower[at] > 0 || upper[at] < 0));
    const bar = ([from, to]) => `M${(x(xs[from]) - half).toFixed(1)},${y(0).toFixed(1)}H${(x(xs[to]) + half).toFixed(1)}`;
    return s("path", { class: "apart", d: apart.map(bar).join("") });
  };
}

// --- maps: cells run along x first, from the lowest y ---------------------------------------------------------------

/** A picture that fills the plot; its outer cells are centred on the edges, so half of each is cut off. */
export function filled(canvas, columns, rows) {
  return ({ box }) => {
    const [cell, line] = [(box.right - box.left) / (columns - 1), (box.bottom - box.top) / (rows - 1)];
    return s("image", {
      href: canvas.toDataURL(),
      x: box.left - cell / 2,
      y: box.top - line / 2,
      width: box.right - box.left + cell,
      height: box.bottom - box.top + line,
      preserveAspectRatio: "none",
    });
  };
}

/** Hatching over the cells for which `inside(index)` holds. */
export function hatched(xs, ys, inside) {
  return ({ x, y, hatch }) => {
    const [dx, dy] = [(x(xs[1]) - x(xs[0])) / 2, (y(ys[0]) - y(ys[1])) / 2];
    const rows = ys.map((row, j) =>
      stretches(xs.length, (i) => inside(j * xs.length + i)).map(([from, to]) => {
        const [left, right] = [x(xs[from]) - dx, x(xs[to]) + dx].map((each) => each.toFixed(1));
        return `M${left},${(y(row) - dy).toFixed(1)}H${right}v${(2 * dy).toFixed(1)}H${left}Z`;
      }),
    );
    return s("path", { d: rows.flat().join(""), fill: hatch });
  };
}

/** Where a field is zero, by marching squares; `field` has one number per cell. */
export function zeroLine(xs, ys, field) {
  return ({ x, y }) => {
    const at = (i, j) => field[j * xs.length + i];
    const between = (a, b, from, to) => from + ((to - from) * a) / (a - b);
    let path = "";
    for (let j = 0; j + 1 < ys.length; j += 1)
      for (let i = 0; i + 1 < xs.length; i += 1) {
        const [sw, se, ne, nw] = [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)];
        const ends = [];
        if (sw > 0 !== se > 0) ends.push([between(sw, se, xs[i], xs[i + 1]), ys[j]]);
        if (se > 0 !== ne > 0) ends.push([xs[i + 1], between(se, ne, ys[j], ys[j + 1])]);
        if (nw > 0 !== ne > 0) ends.push([between(nw, ne, xs[i], xs[i + 1]), ys[j + 1]]);
        if (sw > 0 !== nw > 0) ends.push([xs[i], between(sw, nw, ys[j], ys[j + 1])]);
        path += ends.map(([a, b], end) => `${end % 2 ? "L" : "M"}${point(a, b, x, y)}`).join("");
      }
    return [s("path", { class: "boundary-under", d: path }), s("path", { class: "boundary", d: path })];
  };
}

// --- small pictures -------------------------------------------------------------------------------------------------

const [WIDTH, HEIGHT] = [160, 72];

/** A curve without axes. */
export function smallCurve(values) {
  const [low, high] = extent([...values, 0]);
  const step = WIDTH / (values.length - 1);
  const y = (value) => HEIGHT - 4 - ((HEIGHT - 8) * (value - low)) / (high - low);
  const path = linePath(values.map((_, at) => at), values.map((value) => value ?? 0), (at) => at * step, y);
  return s(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", focusable: "false" },
    s("path", { class: "thumb-area", d: `${path}L${WIDTH},${HEIGHT}L0,${HEIGHT}Z` }),
    s("path", { class: "thumb-line", d: path }),
  );
}
