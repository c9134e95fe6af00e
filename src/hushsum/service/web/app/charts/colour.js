// Colours for numbers and classes. The ramp is viridis (van der Walt & Smith 2015): equal steps look equal, in print and to
// the colour-blind too. Classes have the colours of Okabe & Ito, which everybody can distinguish; a label always stands beside them.

const VIRIDIS = [
  "440154",
  "48186a",
  "472d7b",
  "424086",
  "3b528b",
  "33638d",
  "2c728e",
  "26828e",
  "21918c",
  "1fa088",
  "28ae80",
  "3fbc73",
  "5ec962",
  "84d44b",
  "addc30",
  "d8e219",
  "fde725",
].map(rgb);
const CLASSES = ["0072b2", "e69f00", "009e73", "cc79a7", "d55e00", "56b4e9", "999999"].map(rgb);

function rgb(text) {
  return [0, 2, 4].map((at) => parseInt(text.slice(at, at + 2), 16));
}

/** The ramp's colour at a fraction between 0 and 1. */
export function ramp(fraction) {
  const at = Math.min(1, Math.max(0, fraction)) * (VIRIDIS.length - 1);
  const below = Math.min(VIRIDIS.length - 2, Math.floor(at));
  return VIRIDIS[below].map((part, channel) => part + (VIRIDIS[below + 1][channel] - part) * (at - below));
}

const [BELOW, ABOVE] = ["2166ac", "b35806"].map(rgb);

/** From blue, below zero, over the ground in the middle to orange, above it. */
export function diverging(fraction, dark) {
  const from = Math.min(1, Math.max(-1, 2 * fraction - 1));
  return faded(from < 0 ? BELOW : ABOVE, dark, Math.abs(from));
}

export const classColour = (index) => CLASSES[index % CLASSES.length];

/** A colour, paler on the ground it stands on: what a region is filled with, so that lines on it stay visible. */
export const faded = (colour, dark, strength) =>
  colour.map((part) => part * strength + (dark ? 23 : 255) * (1 - strength));

export const css = (colour) => `rgb(${colour.map(Math.round).join(" ")})`;

/** A picture of colours, one pixel per cell, first row at the bottom. `colour(index)` may be null: then nothing is painted. */
export function painted(columns, rows, colour) {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const found = colour(row * columns + column);
      if (found === null) continue;
      const at = 4 * ((rows - 1 - row) * columns + column);
      image.data.set([...found.map(Math.round), 255], at);
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
