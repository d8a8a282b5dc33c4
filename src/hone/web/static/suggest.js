// After a slash at the beginning of a message: commands and skills that fit, above the field.

import { get } from "./api.js";
import { el, put } from "./dom.js";
import { commands } from "./palette.js";

const WORD = /^\/([a-z0-9-]*)$/;
const SHOWN = 8;

/** `root` is the list; `key` takes a key and says whether it was meant for the list. */
export function suggestions(field) {
  const root = el("ul", { class: "suggest", role: "listbox", id: "suggest", "aria-label": "Commands and skills", hidden: true });
  let skills = null;
  let shown = [];
  let at = 0;
  const load = async () => {
    skills = [];
    skills = (await get("/api/skills", { limit: 500 })).skills;
    look();
  };
  const look = () => {
    const word = WORD.exec(field.value)?.[1];
    if (word !== undefined && !skills) load().catch(() => {});
    shown = word === undefined ? [] : fitting(word, skills || []);
    at = Math.min(at, Math.max(0, shown.length - 1));
    draw();
  };
  const draw = () => {
    root.hidden = !shown.length;
    put(root, shown.map((each, place) => el("li", { role: "option", id: `suggest-${place}`, "aria-selected": String(place === at),
      on: { mousedown: (event) => event.preventDefault(), click: () => choose(each) } },
    el("code", null, `/${each.slash}`), el("span", { class: "about" }, each.name))));
    if (shown.length) field.setAttribute("aria-activedescendant", `suggest-${at}`);
    else field.removeAttribute("aria-activedescendant");
  };
  const choose = (each) => {
    field.value = each.run ? "" : `/${each.slash} `;
    field.focus();
    look();
    each.run?.();
  };
  const key = (event) => {
    if (!shown.length) return false;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) at = (at + move + shown.length) % shown.length;
    else if (event.key === "Enter" || event.key === "Tab") {
      choose(shown[at]);
      return true;
    } else if (event.key === "Escape") shown = [];
    else return false;
    draw();
    return true;
  };
  field.addEventListener("input", look);
  field.addEventListener("blur", () => {
    shown = [];
    draw();
  });
  return { root, key, look };
}

function fitting(word, skills) {
  const own = commands().filter((each) => each.slash).map((each) => ({ ...each, name: each.about || each.name }));
  const rest = skills.filter((each) => !own.some((command) => command.slash === each.name))
    .map((each) => ({ slash: each.name, name: each.description }));
  return [...own, ...rest].filter((each) => each.slash.startsWith(word)).slice(0, SHOWN);
}
