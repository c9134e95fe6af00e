// A field for one declared setting: of a model, or of a kernel. The service describes them; nothing is listed here.
import { checkbox, field, hintOf, number, numberIn, select, text } from "../explorer/controls.js";
import { freshId, h } from "../explorer/dom.js";
import { bandwidthHint } from "./columns_form.js";

/**
 * One setting. `known` ones have a default and may be left alone; `leftToPublic` ones are decided by public rows where they
 * are left empty.
 */
export function settingField(setting, changed) {
  const name = setting.name.replace(/_/g, " ");
  const label = name.charAt(0).toUpperCase() + name.slice(1);
  // What counts as near is the owner's to say, so a bandwidth must always be entered.
  const own = setting.name === "bandwidth";
  // What the bandwidth is measured in stands beside it.
  const known = !own && setting.name !== "scale" && (setting.default !== null || setting.optional);
  const leftToPublic = setting.choices?.includes("public") ?? false;
  if (setting.choices?.length === 2 && setting.choices.every((each) => ["public", "private"].includes(each))) {
    return publicOrPrivate(setting, label, changed);
  }
  if (setting.type === "pair") {
    const [low, high] = [0, 1].map((side) =>
      number({ "aria-label": `${side ? "highest" : "lowest"} ${name}`, required: true, oninput: changed })
    );
    // A default range would clip most targets, so this one is always entered.
    return {
      name: setting.name,
      known: false,
      required: label,
      node: h(
        "fieldset",
        { class: "field" },
        h("legend", { class: "label" }, label),
        h("div", { class: "row row-tight" }, low, high),
        h("p", { class: "hint" }, setting.help),
      ),
      value: () => (numberIn(low) === null || numberIn(high) === null
        ? undefined
        : [numberIn(low), numberIn(high)]),
    };
  }
  const open = setting.optional && setting.default === null ? [["", "automatic"]] : [];
  const control = setting.type === "text" && setting.choices
    ? select([...open, ...setting.choices.map((each) => [each, each])], setting.default ?? undefined, { onchange: changed })
    : text({ placeholder: own || setting.default === null ? "" : String(setting.default), required: own, oninput: changed });
  const value = () => {
    const typed = control.value.trim();
    if (typed === "") return undefined;
    return setting.type === "text" || setting.choices?.includes(typed) ? typed : Number(typed);
  };
  return {
    name: setting.name,
    known,
    control,
    required: own ? label : undefined,
    leftToPublic,
    node: field(label, control, { hint: own ? bandwidthHint() : setting.help || null }),
    value,
    /** With public rows it may be left empty; its hint depends on the scale. */
    look: (given, scale) => {
      control.required = own && !(given && leftToPublic);
      if (own) hintOf(control, bandwidthHint(scale));
    },
  };
}

/** Whether something is public decides what a claim protects, so it is always shown. */
function publicOrPrivate(setting, label, changed) {
  const id = freshId("public");
  const box = checkbox(`${label} are public`, {
    checked: setting.default === "public",
    "aria-describedby": id,
    onchange: changed,
  });
  return {
    name: setting.name,
    known: false,
    node: h("div", { class: "field wide" }, box, h("p", { class: "hint", id }, setting.help)),
    value: () => (box.firstChild.checked ? "public" : "private"),
  };
}

