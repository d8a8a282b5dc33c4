// The shelf of skills: searched, listed, begun.

import { get, post } from "./api.js";
import { button, el, put, renew, way } from "./dom.js";
import { plural, time } from "./format.js";
import { on } from "./live.js";
import { action, complain } from "./notices.js";

const DRAFT = (name) => `---\nname: ${name}\ndescription: What this is for, and when to use it.\n---\n\n1. The first step.\n`;

const ORIGINS = { agent: "learned", user: "yours" };
const PAGE = 100;
const MOST = 500;

export async function show(root, here, signal) {
  const chosen = { query: "", archived: false };
  let shown = PAGE;
  const list = el("ul", { class: "rows" });
  const more = button("Show more", () => {
    shown = Math.min(shown + PAGE, MOST);
    again();
  });
  const empty = el("p", { class: "empty" });
  const fresh = async () => {
    const asked = { ...chosen };
    const { skills, total } = await get("/api/skills", { ...asked, limit: shown }, signal);
    if (asked.query !== chosen.query || asked.archived !== chosen.archived) return; // somebody typed on
    renew(list, skills, (each) => each.name, row);
    put(empty, skills.length ? "" : nothing(chosen));
    more.hidden = skills.length >= total || shown >= MOST;
  };
  const again = () => fresh().catch(complain);
  put(root, el("h1", null, "Skills"),
    el("p", { class: "lead" }, "Each skill says how to do one kind of task. You can read, edit and archive it."),
    search(chosen, again), list, empty, el("p", { class: "acts" }, more), creation());
  await fresh();
  on(["changed", "reset"], again, signal);
}

function nothing(chosen) {
  if (chosen.query) return "No skill matches.";
  return chosen.archived ? "Nothing is archived." : "No skills yet. Hone writes one when it sees how you like a task done.";
}

function search(chosen, again) {
  const archived = el("input", { type: "checkbox", on: { change: (event) => {
    chosen.archived = event.target.checked;
    again();
  } } });
  return el("form", { class: "filters", role: "search", on: { submit: (event) => event.preventDefault() } },
    el("input", { type: "search", placeholder: "Search skills", "aria-label": "Search skills", on: { input: (event) => {
      chosen.query = event.target.value.trim();
      again();
    } } }), el("label", null, archived, "show archived"));
}

/** A skill as a line of a list. */
export function row(skill) {
  const usage = skill.usage;
  return el("li", null, el("a", { href: way("skills", skill.name) },
    el("span", { class: "title" }, skill.name), el("span", { class: "about" }, skill.description),
    el("span", { class: "meta" }, marks(skill), ` ${plural(usage.uses, "use")}`,
      usage.last_use ? [" · last ", time(usage.last_use)] : null)));
}

/** What a skill is, in small labels. */
export function marks(skill) {
  const all = [ORIGINS[skill.origin] || skill.origin, skill.pinned && "pinned", skill.archived && "archived", skill.project && "this project only"];
  return all.filter(Boolean).map((each) => el("span", { class: "mark" }, each));
}

function creation() {
  const name = el("input", { type: "text", "aria-label": "Name", placeholder: "release-notes", pattern: "[a-z0-9\\-]{1,64}" });
  const text = el("textarea", { rows: "10", "aria-label": "SKILL.md", spellcheck: "false" });
  const made = el("details", { class: "panel" }, el("summary", null, "Write a skill"),
    el("p", null, name), text, el("p", { class: "acts" }, action("Create", async () => {
      await post("/api/skills", { name: name.value.trim(), text: text.value });
      location.hash = way("skills", name.value.trim());
    }, "main"), button("Start from a draft", () => {
      text.value = DRAFT(name.value.trim() || "release-notes");
    })));
  return made;
}
