// What is wrong with what is shown now: names of controls, ids, landmarks, the order of headings, the contrast of text
// (WCAG 2.2, level AA). A list of sentences, empty if nothing is.
(() => {
  const faults = [];

  const seen = (node) => {
    const box = node.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && node.checkVisibility({ visibilityProperty: true });
  };
  const name = (node) =>
    (node.getAttribute("aria-label") || node.labels?.[0]?.innerText || node.innerText || node.title || "")
      .trim();

  for (const node of document.querySelectorAll("a, button, input, select, summary, [role=application], [role=img]")) {
    if (seen(node) && !name(node)) faults.push(`no name: ${node.outerHTML.slice(0, 90)}`);
  }

  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of new Set(ids.filter((each, at) => ids.indexOf(each) !== at))) {
    faults.push(`twice the id ${id}`);
  }
  for (const node of document.querySelectorAll("[aria-describedby], [aria-labelledby]")) {
    const named = ["aria-describedby", "aria-labelledby"].map((each) => node.getAttribute(each) ?? "").join(" ");
    for (const id of named.split(/\s+/).filter(Boolean)) {
      if (!document.getElementById(id)) faults.push(`nothing has the id ${id}`);
    }
  }

  for (const tag of ["main", "header", "h1"]) {
    if (document.querySelectorAll(tag).length !== 1) faults.push(`not one ${tag}`);
  }
  let level = 0;
  for (const node of [...document.querySelectorAll("h1, h2, h3, h4")].filter(seen)) {
    const now = Number(node.tagName[1]);
    if (now > level + 1) faults.push(`a heading jumps: ${node.innerText}`);
    level = now;
  }

  const part = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([red, green, blue]) => 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  const colour = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const ground = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const found = colour(getComputedStyle(each).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const node = walker.currentNode.parentElement;
    if (!text || !seen(node) || node.closest("noscript, script, .unseen, :disabled, option, svg")) continue;
    const style = getComputedStyle(node);
    const [ink, under] = [light(colour(style.color)), light(ground(node))];
    const contrast = (Math.max(ink, under) + 0.05) / (Math.min(ink, under) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (contrast < (large ? 3 : 4.5)) faults.push(`contrast ${contrast.toFixed(2)}: ${text.slice(0, 40)}`);
  }
  return faults;
});
