// A list to choose from, over the page: type to narrow it, arrows to move, Enter to choose, Esc to leave.

import { el, put } from "./dom.js";

const SHOWN = 40;
let serial = 0;

/**
 * Shows `items`, each with a `name` and perhaps an `about`, a `group` and `keys`; `run` is what a choice does.
 * `more`, if given, brings further items for the words that were typed.
 */
export function pick(title, items, more = null) {
  const back = document.activeElement;
  serial += 1;
  const id = `picker-${serial}`;
  const list = el("ul", { role: "listbox", id, "aria-label": title });
  const field = el("input", { type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": id, "aria-autocomplete": "list",
    "aria-label": title, placeholder: title, autocomplete: "off", spellcheck: "false" });
  const none = el("p", { class: "empty", role: "status" });
  const dialog = el("dialog", { class: "picker", "aria-label": title }, field, list, none,
    el("p", { class: "meta keys" }, el("kbd", null, "↑"), " ", el("kbd", null, "↓"), " move · ", el("kbd", null, "Enter"), " choose · ",
      el("kbd", null, "Esc"), " leave"));
  let every = items;
  let shown = [];
  let at = 0;
  const draw = () => {
    shown = narrowed(every, field.value).slice(0, SHOWN);
    at = Math.min(at, Math.max(0, shown.length - 1));
    put(list, shown.map((each, place) => row(each, place, place === at, id, () => choose(each))));
    put(none, shown.length ? "" : "Nothing matches.");
    list.hidden = !shown.length;
    select();
  };
  const select = () => {
    [...list.children].forEach((each, place) => each.setAttribute("aria-selected", String(place === at)));
    if (shown.length) field.setAttribute("aria-activedescendant", `${id}-${at}`);
    else field.removeAttribute("aria-activedescendant");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };
  const choose = (each) => {
    dialog.close();
    each.run();
  };
  field.addEventListener("input", () => {
    at = 0;
    draw();
  });
  field.addEventListener("keydown", (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move && shown.length) {
      event.preventDefault();
      at = (at + move + shown.length) % shown.length;
      select();
    }
    if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      if (shown[at]) choose(shown[at]);
    }
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (back?.isConnected && document.activeElement === document.body) back.focus({ preventScroll: true });
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  addEventListener("hashchange", () => dialog.close(), { once: true });
  document.body.append(dialog);
  draw();
  dialog.showModal();
  field.focus();
  more?.().then((found) => {
    every = [...every, ...found];
    if (dialog.open) draw();
  }, () => {});
  return dialog;
}

/** Items that have all words; those whose name begins with them come first. */
export function narrowed(items, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return items.filter((each) => !each.hidden);
  const fits = items.filter((each) => {
    const told = `${each.name} ${each.about || ""} ${each.group || ""}`.toLowerCase();
    return words.every((word) => told.includes(word));
  });
  const first = (each) => (each.name.toLowerCase().startsWith(words[0]) ? 0 : 1);
  return fits.map((each, place) => [first(each), place, each]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((each) => each[2]);
}

function row(each, place, selected, id, choose) {
  return el("li", { role: "option", id: `${id}-${place}`, "aria-selected": String(selected), on: { click: choose } },
    el("span", { class: "name" }, each.name), each.about ? el("span", { class: "about" }, each.about) : null,
    each.keys ? el("kbd", null, each.keys) : null);
}
