// Starts a page that holds one released function.
import { element, explore } from "./explorer.js";
import { FileRefused, readHush } from "./released_function.js";

const root = document.getElementById("function");

function decoded(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

function start() {
  try {
    const bytes = decoded(document.getElementById("bytes").textContent.trim());
    const options = JSON.parse(document.getElementById("options").textContent);
    const found = readHush(bytes);
    globalThis.hushsumExplorer = explore(root, found, options);
    performance.mark("explored");
  } catch (error) {
    if (!(error instanceof FileRefused)) throw error;
    root.replaceChildren(element("p", { class: "refused", role: "alert" }, error.message));
  }
}

// The claim, which is in the page itself, is painted first. Pages that are not seen have no frames.
if (document.hidden) start();
else requestAnimationFrame(() => setTimeout(start));
