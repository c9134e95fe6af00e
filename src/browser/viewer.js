// A place on a page to drop a .hush file into. The file is read here and goes nowhere.
import { element, explore } from "./explorer.js";
import { FileRefused, readHush } from "./released_function.js";

const LARGEST = 2 ** 26;

/** Fills an element with the place, and shows what is dropped or chosen below it. */
export function view(root) {
  const input = element("input", { type: "file", accept: ".hush", id: "hush-file" });
  const drop = element(
    "div",
    { class: "drop" },
    element("label", { for: "hush-file" }, "Drop a .hush file here, or choose one: "),
    input,
    element("p", {}, "It is read in this page. Nothing is uploaded."),
  );
  const status = element("p", { role: "status" });
  const shownHere = element("div");
  root.replaceChildren(drop, status, shownHere);

  async function open(file) {
    shownHere.replaceChildren();
    if (file.size > LARGEST) {
      status.textContent = `${file.name} has ${Math.round(file.size / 1e6)} MB; this page reads up to 64 MB.`;
      return;
    }
    status.textContent = `Reading ${file.name} …`;
    try {
      explore(shownHere, readHush(await file.arrayBuffer()));
      status.textContent = `${file.name}: its checksum holds.`;
    } catch (error) {
      if (!(error instanceof FileRefused)) throw error;
      status.textContent = "";
      shownHere.replaceChildren(element("p", { class: "refused", role: "alert" }, `${file.name}: ${error.message}`));
    }
  }

  input.addEventListener("change", () => input.files.length > 0 && open(input.files[0]));
  root.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  root.addEventListener("dragleave", () => drop.classList.remove("over"));
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length > 0) open(event.dataTransfer.files[0]);
  });
}

const place = document.getElementById("hushsum-viewer");
if (place !== null) view(place);
