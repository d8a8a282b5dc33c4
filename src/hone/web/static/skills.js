// The shelf of skills: searched, listed, begun.

import { get, post } from "./api.js";
import { button, el, put, renew, way } from "./dom.js";
import { plural, time } from "./format.js";
import { on } from "./live.js";
import { action, complain } from "./notices.js";

const DRAFT = (name) => `---\nname: ${name}\ndescription: What this is for, and when to use it.\n---\n\n1. The first step.\n`;

export async function show(root, here, signal) {
  const chosen = { query: "", archived: false };
  const list = el("ul", { class: "rows" });
  const empty = el("p", { class: "empty" });
  const fresh = async () => {
    const asked = { ...chosen };
    const { skills } = await get("/api/skills", asked, signal);
    if (asked.query !== chosen.query || asked.archived !== chosen.archived) return; // somebody typed on
    renew(list, skills, (each) => each.name, row);
    put(empty, skills.length ? "" : nothing(chosen));
  };
  const again = () => fresh().catch(complain);
  put(root, el("h1", null, "Skills"),
    el("p", { class: "lead" }, "How to do a kind of task. Each is a folder that you can read, edit and archive."),
    search(chosen, again), list, empty, creation());
  await fresh();
  on(["changed", "reset"], again, signal);
}

function nothing(chosen) {
  if (chosen.query) return "No skill fits these words.";
  return chosen.archived ? "Nothing is archived." : "No skill yet. Reviews write some when a way of working emerges.";
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
    } } }), el("label", null, archived, "archived"));
}

function row(skill) {
  const usage = skill.usage;
  return el("li", null, el("a", { href: way("skills", skill.name) },
    el("span", { class: "title" }, skill.name), el("span", { class: "about" }, skill.description),
    el("span", { class: "meta" }, marks(skill), ` ${plural(usage.uses, "use")}`,
      usage.last_use ? [" · last ", time(usage.last_use)] : null)));
}

/** What a skill is, in small labels. */
export function marks(skill) {
  const all = [skill.origin, skill.pinned && "pinned", skill.archived && "archived", skill.project && "of a project"];
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
