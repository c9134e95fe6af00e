// A curve with the band of its errors; several, where there are several classes.

import { s } from "../dom.js";

/** `lines` are {value, lower, upper, colour}, each with one number per x; null where it is not known. */
export function curves(xs, lines) {
  return ({ x, y }) =>
    lines.flatMap(({ value, lower, upper, colour, dashed }) => {
      const band = lower && upper ? s("path", { class: "band", d: bandPath(xs, lower, upper, x, y) }) : null;
      const line = s("path", { class: "curve", d: linePath(xs, value, x, y) });
      if (dashed) line.style.strokeDasharray = "7 4";
      if (colour) {
        line.style.stroke = colour;
        if (band) Object.assign(band.style, { fill: colour, fillOpacity: "0.16" });
      }
      return [band, line];
    });
}

const point = (at, value, x, y) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`;

function linePath(xs, values, x, y) {
  let pen = "M";
  let path = "";
  values.forEach((value, at) => {
    if (value === null) {
      pen = "M";
      return;
    }
    path += `${pen}${point(xs[at], value, x, y)}`;
    pen = "L";
  });
  return path;
}

function bandPath(xs, lower, upper, x, y) {
  const known = xs.map((_, at) => at).filter((at) => lower[at] !== null && upper[at] !== null);
  if (!known.length) return "";
  const there = known.map((at) => point(xs[at], upper[at], x, y));
  const back = known.reverse().map((at) => point(xs[at], lower[at], x, y));
  return `M${[...there, ...back].join("L")}Z`;
}

/** A bar along zero where the interval of a curve does not include it. */
export function apartFromZero(xs, { lower, upper }) {
  return ({ x, y }) => {
    const half = (x(xs[1]) - x(xs[0])) / 2;
    let path = "";
    let start = null;
    for (let at = 0; at <= xs.length; at += 1) {
      const apart = at < xs.length && lower[at] !== null && (lower[at] > 0 || upper[at] < 0);
      if (apart && start === null) start = at;
      if (!apart && start !== null) {
        path += `M${(x(xs[start]) - half).toFixed(1)},${y(0).toFixed(1)}H${(x(xs[at - 1]) + half).toFixed(1)}`;
        start = null;
      }
    }
    return s("path", { class: "apart", d: path });
  };
}
