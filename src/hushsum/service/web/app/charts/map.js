// A heat map, regions of classes, and the lines between them. Cells run along x first, from the lowest y.

import { s } from "../dom.js";

/** A picture that fills the plot; its outer cells are centred on the edges, so half of each is cut off. */
export function filled(canvas, columns, rows, { smooth = true } = {}) {
  return ({ box }) => {
    const [cell, line] = [(box.right - box.left) / (columns - 1), (box.bottom - box.top) / (rows - 1)];
    const picture = s("image", {
      href: canvas.toDataURL(),
      x: box.left - cell / 2,
      y: box.top - line / 2,
      width: box.right - box.left + cell,
      height: box.bottom - box.top + line,
      preserveAspectRatio: "none",
    });
    picture.style.imageRendering = smooth ? "auto" : "pixelated";
    return picture;
  };
}

/** Hatching over the cells for which `inside(index)` holds. */
export function hatched(xs, ys, inside) {
  return ({ x, y, hatch }) => {
    const [dx, dy] = [(x(xs[1]) - x(xs[0])) / 2, (y(ys[0]) - y(ys[1])) / 2];
    let path = "";
    ys.forEach((row, j) => {
      let start = null;
      for (let i = 0; i <= xs.length; i += 1) {
        const on = i < xs.length && inside(j * xs.length + i);
        if (on && start === null) start = i;
        if (!on && start !== null) {
          path += `M${(x(xs[start]) - dx).toFixed(1)},${(y(row) - dy).toFixed(1)}H${
            (x(xs[i - 1]) + dx).toFixed(1)
          }v${(2 * dy).toFixed(1)}H${(x(xs[start]) - dx).toFixed(1)}Z`;
          start = null;
        }
      }
    });
    return s("path", { d: path, fill: hatch });
  };
}

/** Where a field is zero, by marching squares; `field` has one number per cell. */
export function zeroLine(xs, ys, field) {
  return ({ x, y }) => {
    const columns = xs.length;
    let path = "";
    const at = (i, j) => field[j * columns + i];
    const between = (a, b, from, to) => from + ((to - from) * a) / (a - b);
    for (let j = 0; j + 1 < ys.length; j += 1) {
      for (let i = 0; i + 1 < columns; i += 1) {
        const [sw, se, ne, nw] = [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)];
        const ends = [];
        if (sw > 0 !== se > 0) ends.push([between(sw, se, xs[i], xs[i + 1]), ys[j]]);
        if (se > 0 !== ne > 0) ends.push([xs[i + 1], between(se, ne, ys[j], ys[j + 1])]);
        if (nw > 0 !== ne > 0) ends.push([between(nw, ne, xs[i], xs[i + 1]), ys[j + 1]]);
        if (sw > 0 !== nw > 0) ends.push([xs[i], between(sw, nw, ys[j], ys[j + 1])]);
        for (let k = 0; k + 1 < ends.length; k += 2) {
          path += ends.slice(k, k + 2).map(([a, b], end) =>
            `${end ? "L" : "M"}${x(a).toFixed(1)},${y(b).toFixed(1)}`
          ).join("");
        }
      }
    }
    return [s("path", { class: "boundary-under", d: path }), s("path", { class: "boundary", d: path })];
  };
}
