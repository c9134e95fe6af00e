// Elements, made in one way: text is always text, never markup; and what a tab remembers.
const SVG = "http://www.w3.org/2000/svg";

/** An element: attributes by name, `on…` listeners, then children (nodes, texts, lists; null and false are left out). */
export function h(tag, attributes = {}, ...children) {
  return dress(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes = {}, ...children) {
  return dress(document.createElementNS(SVG, tag), attributes, children);
}

function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...given(children));
  return node;
}

const given = (children) => children.flat(4).filter((each) => each !== null && each !== undefined && each !== false);

/** Put other children in the place of those that are there. */
export function refill(node, ...children) {
  node.replaceChildren(...given(children));
}

let number = 0;
/** An id that no other element has. */
export const freshId = (prefix) => `${prefix}-${++number}`;

/** Announce a change to screen readers. */
export function announce(text) {
  const place = document.getElementById("announcer");
  // The same text twice is no change, and would not be read.
  place.textContent = place.textContent === text ? `${text}\u00a0` : text;
}

/** A debounced function. */
export function settled(milliseconds, action) {
  let timer = 0;
  const later = (...parts) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...parts), milliseconds);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

const kept = new Map();

/** What was kept under a name while this tab is open, or null. */
export function remembered(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? "null");
  } catch {
    // A page of a shared function has no storage; it remembers for as long as it is open.
    return kept.get(name) ?? null;
  }
}

export function remember(name, value) {
  kept.set(name, value);
  try {
    sessionStorage.setItem(name, JSON.stringify(value));
  } catch {
    // Then until the page is left.
  }
}
