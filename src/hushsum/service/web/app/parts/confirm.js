// A question before something that cannot be undone.
import { attempt, button } from "../explorer/controls.js";
import { freshId, h } from "../explorer/dom.js";

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
        button(action, () => dialog.close("yes")),
        button("Cancel", () => dialog.close(""), { look: "quiet", autofocus: true }),
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

/** A button for what cannot be undone: it asks whether to `agree`, then acts. Problems are shown in the place `said`. */
export function dangerButton(name, { of = null, title, text, agree, said, act }) {
  const onclick = async () => (await confirm(title, text, agree)) && attempt(act, said);
  return button(name, onclick, { look: "plain danger", of });
}
