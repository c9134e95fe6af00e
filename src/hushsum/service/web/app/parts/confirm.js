// A question before something that cannot be undone.

import { freshId, h } from "../dom.js";

/** Whether the person agrees. The dialog is modal: focus stays in it, Escape says no. */
export function confirm(title, text, action) {
  return new Promise((resolve) => {
    const id = freshId("ask");
    const dialog = h(
      "dialog",
      { class: "card ask", "aria-labelledby": id },
      h("h2", { id }, title),
      h("p", {}, text),
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", onclick: () => dialog.close("yes") }, action),
        h(
          "button",
          { type: "button", class: "quiet", autofocus: true, onclick: () => dialog.close("") },
          "Cancel",
        ),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
