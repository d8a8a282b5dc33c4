// The timeline of learning: what waits for its owner, then everything that changed, by day.

import { at, get } from "./api.js";
import { card } from "./change.js";
import { el, put, renew } from "./dom.js";
import { ACTORS, day } from "./format.js";
import { on } from "./live.js";
import { action, complain } from "./notices.js";

const STEP = 50;
const TARGETS = [["", "everything"], ["memory", "memory"], ["user", "about you"], ["project:", "projects"],
  ["skill:", "skills"]];

export async function show(root, here, signal) {
  if (here.id) return one(root, here.id, signal);
  const chosen = { actor: "", target: here.query.get("target") || "", session: here.query.get("session") || "" };
  let limit = STEP;
  const waiting = el("section", { class: "stack", "aria-label": "Waiting for you" });
  const days = el("div", { class: "stack" });
  const older = action("Older changes", async () => {
    limit += STEP;
    await fresh();
  });
  const fresh = async () => {
    const [pending, timeline] = await Promise.all([
      get("/api/pending", {}, signal), get("/api/changes", { ...chosen, limit: Math.min(limit, 200) }, signal)]);
    const update = () => fresh().catch(complain);
    const open = chosen.session || chosen.target ? [] : pending.changes;
    put(waiting, heading(open), list(waiting, open, update));
    const shown = new Set(open.map((each) => each.id));
    grouped(days, timeline.changes.filter((each) => !shown.has(each.id)), update);
    older.hidden = timeline.changes.length < limit || limit >= 200;
  };
  put(root, el("h1", null, "Learning"),
    el("p", { class: "lead" }, "Everything that changed in the journal and the skills. Each change can be undone."),
    filters(chosen, () => fresh().catch(complain)), waiting, days, el("p", null, older));
  await fresh();
  on(["changed", "learned", "reset"], () => fresh().catch(complain), signal);
}

function heading(pending) {
  return pending.length ? el("h2", null, "Waiting for you") : null;
}

function list(holder, changes, answered) {
  const found = holder.querySelector(".cards") || el("div", { class: "cards" });
  renew(found, changes, (each) => each.id, (each, old) => card(each, answered, old));
  return found;
}

function grouped(days, changes, answered) {
  const groups = new Map();
  for (const change of changes) {
    const name = day(change.at);
    groups.set(name, [...(groups.get(name) || []), change]);
  }
  const held = new Map([...days.querySelectorAll("section")].map((each) => [each.dataset.day, each]));
  put(days, [...groups].map(([name, own]) => {
    const section = held.get(name) || el("section", { class: "stack", "data-day": name }, el("h2", null, name));
    const cards = list(section, own, answered);
    if (!cards.parentNode) section.append(cards);
    return section;
  }), changes.length ? null : nothing());
}

function nothing() {
  return el("p", { class: "empty" }, "Nothing has changed yet. Talk to Hone; what it learns appears here.");
}

function filters(chosen, renewed) {
  const pick = (name, label, options) => el("label", null, label,
    el("select", { on: { change: (event) => {
      chosen[name] = event.target.value;
      renewed();
    } } }, options.map(([value, text]) => el("option", { value, selected: value === chosen[name] }, text))));
  const targets = TARGETS.some(([value]) => value === chosen.target) ? TARGETS
    : [...TARGETS, [chosen.target, chosen.target]];
  return el("form", { class: "filters", on: { submit: (event) => event.preventDefault() } },
    pick("actor", "author", [["", "All authors"], ...Object.entries(ACTORS)]), pick("target", "in", targets),
    chosen.session ? el("a", { href: "#/learning" }, "of one conversation: show all") : null);
}

async function one(root, id, signal) {
  const fresh = async () => {
    const change = await get(at("changes", id), {}, signal);
    const shown = card(change, () => fresh().catch(complain));
    shown.querySelector("details")?.setAttribute("open", "");
    put(root, el("p", { class: "back" }, el("a", { href: "#/learning" }, "Learning")),
      el("h1", null, `Change ${change.id}`), shown);
  };
  await fresh();
  on(["changed"], () => fresh().catch(complain), signal);
}
