// The journal: each part with its entries, where they came from, and a pen.

import { at, get, post, write } from "./api.js";
import { button, el, put, way } from "./dom.js";
import { ACTORS, count, time } from "./format.js";
import { on } from "./live.js";
import { measured } from "./measured.js";
import { action, complain, say } from "./notices.js";

const NAMES = { memory: "Memory", user: "About you", project: "This project" };
const LEADS = { memory: "Facts about your environment and your work.", user: "Who you are and how you like to work.",
  project: "What applies in this folder only." };

export async function show(root, here, signal) {
  let folder = "";
  const parts = el("div", { class: "stack wide" });
  const choice = el("p");
  const editing = () => parts.querySelector("textarea, form :focus");
  const fresh = async (gently = false) => {
    const journal = await get("/api/journal", { folder }, signal);
    if (gently && editing()) return; // somebody has taken the pen meanwhile
    put(choice, folders(journal.folders, folder, (chosen) => {
      folder = chosen;
      fresh().catch(complain);
    }));
    put(parts, journal.parts.map((part) => section(part, folder, () => fresh().catch(complain))));
  };
  put(root, el("h1", null, "Journal"),
    el("p", { class: "lead" }, "What Hone knows at the start of every conversation. You can change every word."),
    choice, parts);
  await fresh();
  on(["changed", "reset"], () => {
    if (!editing()) fresh(true).catch(complain);
  }, signal);
}

function folders(every, chosen, choose) {
  if (every.length < 2) return null;
  return el("label", { class: "filters" }, "project", el("select", { on: { change: (event) => choose(event.target.value) } },
    every.map((each) => el("option", { value: each, selected: each === chosen }, each))));
}

function section(part, folder, fresh) {
  const made = el("section", { class: "panel" });
  const read = () => put(made, head(part, edit),
    part.prose.trim() ? el("pre", { class: "plain" }, part.prose.trim()) : null,
    part.entries.length ? el("ul", { class: "entries" }, part.entries.map((each) => entry(each, part, folder, fresh)))
      : el("p", { class: "empty" }, "Nothing yet."),
    adding(part, folder, fresh));
  const edit = () => put(made, head(part), editor(part, folder, read, fresh));
  read();
  return made;
}

function head(part, edit = null) {
  return el("header", null, el("h2", null, NAMES[part.part] || part.part),
    el("p", { class: "meta" }, LEADS[part.part] || ""),
    el("p", { class: "room" },
      el("meter", { min: 0, max: part.limit, value: part.characters, "aria-label": "Space used" }),
      el("span", { class: "meta" }, `${count(part.characters)} of ${count(part.limit)} characters`)),
    el("p", { class: "acts" }, edit ? button("Edit", edit) : null,
      el("a", { href: `#/learning?${new URLSearchParams({ target: part.target })}` }, "History")));
}

function entry(each, part, folder, fresh) {
  const origin = each.change ? el("p", { class: "meta" }, ACTORS[each.actor] || each.actor, " · ", time(each.at), " · ",
    el("a", { href: way("learning", each.change) }, `change ${each.change}`), each.confirmed ? "" : " · unconfirmed") : null;
  const act = (name, told) => {
    const made = action(name, async () => {
      await post(address(part, folder), { edits: [{ action: name.toLowerCase(), match: each.text }] });
      say(told);
      fresh();
    }, "quiet");
    made.setAttribute("aria-label", `${name}: ${each.text}`);
    return made;
  };
  const pin = each.pinned ? act("Unpin", "Unpinned.") : act("Pin", "Pinned. Only you can change it now.");
  return el("li", null, el("div", null, el("p", { class: "plain" }, each.text), origin, measured(each.measured)),
    pin, act("Remove", "Removed. You can undo it under Learning."));
}

function address(part, folder) {
  const path = at("journal", part.part);
  return folder ? `${path}?${new URLSearchParams({ folder })}` : path;
}

function adding(part, folder, fresh) {
  const field = el("input", { type: "text", "aria-label": `Add to ${part.part}`, placeholder: "Add an entry" });
  return el("form", { class: "line", on: { submit: (event) => {
    event.preventDefault();
    if (!field.value.trim()) return;
    post(address(part, folder), { edits: [{ action: "add", text: field.value.trim() }] }).then(fresh, complain);
  } } }, field, el("button", { type: "submit" }, "Add"));
}

function editor(part, folder, read, fresh) {
  const field = el("textarea", { rows: "12", "aria-label": `All of ${part.part}`, spellcheck: "false" });
  field.value = part.text;
  return el("div", null, field, el("p", { class: "acts" },
    action("Save", async () => {
      await write(address(part, folder), { text: field.value, seen: part.seen });
      say("Saved.");
      fresh();
    }, "main"), button("Cancel", read)));
}
