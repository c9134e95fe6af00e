// What is shown, to take away: a picture, a table, or the request that made it.

import { announce, h } from "../dom.js";
import { copyButton, csv, fileName, save } from "../parts/copying.js";
import { isDark } from "../theme.js";

const DRAWN = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
  "image-rendering",
];
const PNG_SCALE = 2;
const TOP = 30;

/** Buttons. `current()` is what is shown: {svg, title, columns, rows, point, of}, or null before anything is. */
export function exportRow(current, requests) {
  const said = h("div", {});
  const button = (name, action) =>
    h("button", {
      type: "button",
      class: "plain",
      onclick: () => {
        const shown = current();
        if (shown === null) announce("Nothing is drawn yet.");
        else action(shown);
      },
    }, name);
  return h(
    "div",
    { class: "exports" },
    h(
      "div",
      { class: "row", role: "group", "aria-label": "Export" },
      h("span", { class: "label", "aria-hidden": "true" }, "Export"),
      button("PNG", async (shown) => save(await png(shown), `${fileName(shown.title)}.png`, "image/png")),
      button("SVG", (shown) => save(svgText(shown).text, `${fileName(shown.title)}.svg`, "image/svg+xml")),
      button("CSV", (shown) => save(csv(shown.columns, shown.rows), `${fileName(shown.title)}.csv`, "text/csv")),
      Object.entries(requests).map(([name, text]) =>
        copyButton(`Copy as ${name}`, `The request as ${name}`, () => text(current()), said)
      ),
    ),
    said,
  );
}

/** The picture as a document of its own: styles written out, a ground, and its title. */
export function svgText({ svg, title }) {
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const copied = svg.cloneNode(true);
  const [from, to] = [svg, copied].map((each) => [...each.querySelectorAll("*")]);
  from.forEach((node, at) => {
    const style = getComputedStyle(node);
    for (const name of DRAWN) {
      const value = style.getPropertyValue(name);
      if (value) to[at].style.setProperty(name, value);
    }
    for (const name of ["class", "tabindex", "aria-hidden"]) to[at].removeAttribute(name);
  });
  const root = getComputedStyle(document.documentElement);
  const element = (name, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };
  const colour = (name) => colourOf(root.getPropertyValue(name));
  for (const name of ["role", "tabindex", "aria-describedby", "class"]) copied.removeAttribute(name);
  copied.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copied.setAttribute("viewBox", `0 ${-TOP} ${width} ${height + TOP}`);
  copied.setAttribute("width", width);
  copied.setAttribute("height", height + TOP);
  copied.prepend(
    element("rect", { x: 0, y: -TOP, width, height: height + TOP, fill: colour("--card") }),
    element("text", {
      x: 12,
      y: -10,
      fill: colour("--ink"),
      "font-family": "sans-serif",
      "font-size": 14,
      "font-weight": 600,
    }, title),
  );
  return { text: new XMLSerializer().serializeToString(copied), width, height: height + TOP };
}

/** light-dark(…) names two colours; a document of its own has only one of them. */
function colourOf(value) {
  const pair = /light-dark\(\s*([^,]+),\s*([^)]+)\)/.exec(value);
  return pair ? pair[isDark() ? 2 : 1].trim() : value.trim();
}

async function png(shown) {
  const { text, width, height } = svgText(shown);
  const image = new Image();
  const bytes = new TextEncoder().encode(text);
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  image.src = `data:image/svg+xml;base64,${btoa(binary)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = PNG_SCALE * width;
  canvas.height = PNG_SCALE * height;
  const context = canvas.getContext("2d");
  context.scale(PNG_SCALE, PNG_SCALE);
  context.drawImage(image, 0, 0, width, height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
