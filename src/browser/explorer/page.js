// Starts a page: of the released function that it holds, or of files that are dropped into it.
import { FileRefused, readHush } from "../released_function.js";
import { field, problemBox } from "./controls.js";
import { h } from "./dom.js";
import { showFile } from "./local.js";

const LARGEST = 2 ** 26;
const main = document.getElementById("main");

function show(place, bytes, options) {
  try {
    showFile(place, readHush(bytes), options);
    performance.mark("explored");
    return true;
  } catch (error) {
    if (!(error instanceof FileRefused)) throw error;
    place.replaceChildren(problemBox({ kind: "file-refused", message: error.message }));
    return false;
  }
}

/** A place to drop files into. They are read here and go nowhere. */
function drops(root) {
  const input = h("input", { type: "file", accept: ".hush", onchange: () => open(input.files[0]) });
  const status = h("p", { role: "status" });
  const place = h("div", {});
  const hint = "It is read in this page. Nothing is uploaded.";
  const drop = h("div", { class: "card stack drop" }, field("Drop a .hush file here, or choose one", input, { hint }), status);
  const head = h("header", { class: "head" }, h("h1", {}, document.title));
  root.replaceChildren(head, drop, place);

  async function open(file) {
    if (!file) return;
    place.replaceChildren();
    if (file.size > LARGEST) {
      status.textContent = `${file.name} has ${Math.round(file.size / 1e6)} MB; this page reads up to 64 MB.`;
      return;
    }
    status.textContent = `Reading ${file.name} …`;
    const shown = show(place, await file.arrayBuffer(), { title: file.name });
    status.textContent = shown ? `${file.name}: its checksum holds.` : "";
    // A page has one heading: its own, or that of what is shown.
    if (shown) head.remove();
    else root.prepend(head);
  }

  for (const [name, over] of [["dragover", true], ["dragleave", false], ["drop", false]])
    root.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", over);
      if (name === "drop") open(event.dataTransfer.files[0]);
    }); // prettier-ignore
}

function start() {
  const held = document.getElementById("bytes")?.textContent.trim();
  if (!held) return drops(main);
  const bytes = Uint8Array.from(atob(held), (each) => each.charCodeAt(0));
  return show(main, bytes, JSON.parse(document.getElementById("options").textContent));
}

// The claim, which is in the page itself, is painted first. Pages that are not seen have no frames.
if (document.hidden) start();
else requestAnimationFrame(() => setTimeout(start));
