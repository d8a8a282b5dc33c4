// What Hone knows in this conversation: the journal entries and skills in its prompt, as they change.

import { at, get, post } from "./api.js";
import { answers, detail, ground, undo } from "./change.js";
import { button, el, put, renew, way } from "./dom.js";
import { ACTORS, lesson, plural, time } from "./format.js";
import { on } from "./live.js";
import { action, complain, say } from "./notices.js";
import { shapers } from "./why.js";

const TITLES = { user: "About you", memory: "Memory", project: "This project" };
const KNOWN = { own: "learned here", told: "told since the start", next: "told with your next message", later: "in the next conversation" };
const SHAPED = "shaped the last answer";
const FIRST = 8;

/** The panel of a conversation. `told` hears each answer of the server, which also names model, window and cost. */
export function knows(talk, told) {
  const news = el("p", { class: "unseen", role: "status" });
  const waiting = el("section", { class: "part waits" });
  const parts = el("div", { class: "parts" });
  const skills = el("section", { class: "part" });
  const root = el("section", { class: "knows drawer", "aria-label": "What Hone knows", tabindex: "-1" },
    el("header", null, el("h2", null, "What Hone knows"), el("p", { class: "meta" }, "In this conversation, as it changes.")),
    news, waiting, parts, skills);
  const panel = { root, all: false };
  let seen = null;
  let asked = 0;
  let latest = null;
  const again = () => panel.fresh().catch(complain);
  const draw = async (number) => {
    const path = talk.id ? at("sessions", talk.id, "known") : "/api/known";
    const [data, pending, shaped] = await Promise.all([get(path, {}, talk.signal), get("/api/pending", {}, talk.signal), shapers(talk)]);
    if (number !== asked) return latest; // a later question is under way, and knows more
    for (const each of data.entries) each.shaped = shaped.entries.has(`${each.part} ${each.text}`);
    for (const each of data.skills) each.shaped = shaped.skills.has(each.name);
    told(data);
    if (root.querySelector("textarea")) return; // somebody has the pen
    const own = pending.changes.filter((each) => talk.id && [each.metadata.session_id, each.metadata.parent_session_id].includes(talk.id));
    propose(waiting, own, again);
    const fresh = seen ? data.entries.filter((each) => !seen.has(each.target + each.text)) : [];
    seen = new Set(data.entries.map((each) => each.target + each.text));
    if (fresh.length) put(news, `Hone knows something new: ${fresh.map((each) => each.text).join(" ")}`);
    journal(parts, data, fresh, again);
    shelf(skills, data.skills, panel, again);
  };
  panel.fresh = () => (latest = draw(++asked));
  on(["changed", "learned", "reset"], again, talk.signal);
  return panel;
}

/** A part of the panel: a heading, its items, and what is said if there are none. What stays the same keeps its focus. */
function part(section, title, items, key, make, none) {
  if (!section.querySelector("ul")) put(section, el("h3", null, title), el("ul"), el("p", { class: "meta" }));
  renew(section.querySelector("ul"), items, key, make);
  put(section.querySelector("ul + p"), items.length ? "" : none);
}

/** Lessons of this conversation that wait: the words, the evidence one click away, and the answer. */
function propose(section, changes, again) {
  section.hidden = !changes.length;
  part(section, "Waits for you", changes, (each) => each.id, (each, old) => {
    const fold = el("details", { open: unfolded(old) }, el("summary", null, el("span", { class: "plain" }, lesson(each))));
    detail(fold, each);
    return el("li", { class: "proposed" }, fold, el("p", { class: "acts" }, answers(each, again)));
  }, "");
}

function unfolded(old) {
  return Boolean(old?.querySelector("details")?.open);
}

function journal(parts, data, fresh, again) {
  const names = Object.keys(TITLES).filter((name) => name !== "project" || data.entries.some((each) => each.part === name));
  renew(parts, names, (name) => name, () => el("section", { class: "part" }));
  names.forEach((name, place) => {
    const own = data.entries.filter((each) => each.part === name);
    const gone = data.gone.filter((each) => each.part === name).map((each) => ({ ...each, gone: true }));
    part(parts.children[place], TITLES[name], [...own, ...gone], (each) => `${each.gone ? "gone " : ""}${each.text}`,
      (each, old) => (each.gone ? past(each) : entry(each, fresh.includes(each), unfolded(old), again)), "Nothing yet.");
  });
}

export function entry(each, fresh, open, again) {
  const state = KNOWN[each.known] ? el("span", { class: "mark" }, KNOWN[each.known]) : null;
  const doubt = each.change && each.confirmed === false ? el("span", { class: "mark doubt" }, "unconfirmed") : null;
  const shaped = each.shaped ? el("span", { class: "mark shaped" }, SHAPED) : null;
  const inner = el("div", { class: "inner" });
  const marks = [state, doubt, shaped].filter(Boolean);
  const fold = el("details", { open }, el("summary", null, el("span", { class: "plain" }, each.text), marks.length ? " " : null, marks), inner);
  const show = () => {
    if (fold.open && !inner.childElementCount) unfold(each, inner, again).catch(complain);
  };
  fold.addEventListener("toggle", show);
  return el("li", { class: fresh ? "fresh" : "" }, fold);
}

/** Draws the panel anew, with the focus where it was. */
function resume(inner, again) {
  const list = inner.closest("ul");
  const place = [...list.children].indexOf(inner.closest("li"));
  return () => again().then(() => {
    if (document.activeElement === document.body) list.children[place]?.querySelector("summary")?.focus();
  });
}

/** Where it comes from, and what can be done about it. */
async function unfold(each, inner, anew) {
  const again = resume(inner, anew);
  const grounds = el("div", { class: "grounds" });
  put(inner, each.change ? el("p", { class: "meta" }, ACTORS[each.actor] || each.actor, " · ", time(each.at), " · ",
    el("a", { href: way("learning", each.change) }, `change ${each.change}`)) : el("p", { class: "meta" }, "It stood in the file before Hone kept a history."),
  grounds, el("p", { class: "acts" }, button("Edit", () => edit(each, inner, anew)),
    each.change ? action("Undo", () => undo(each.change, again)) : null,
    each.change && each.confirmed === false ? action("Confirm", async () => {
      await post(at("changes", each.change, "confirm"));
      say("Confirmed.");
      again();
    }) : null,
    action(each.pinned ? "Unpin" : "Pin", () => change(each, { action: each.pinned ? "unpin" : "pin", match: each.text },
      each.pinned ? "Unpinned." : "Pinned. Only you can change it now.", again)),
    action("Remove", () => change(each, { action: "remove", match: each.text }, "Removed. You can undo it under Learning.", again))));
  if (!each.change) return;
  const whole = await get(at("changes", each.change));
  put(grounds, whole.evidence.length ? whole.evidence.map(ground) : el("p", { class: "meta" }, whole.reason || "No words are named as its evidence."));
}

async function change(each, edit, told, again) {
  const path = at("journal", each.part);
  const folder = each.part === "project" ? `?${new URLSearchParams({ folder: each.target.slice(8) })}` : "";
  await post(path + folder, { edits: [edit] });
  say(told);
  again();
}

function edit(each, inner, anew) {
  const again = resume(inner, anew);
  const field = el("textarea", { rows: "3", "aria-label": `Edit: ${each.text}` });
  field.value = each.text;
  const leave = () => {
    put(inner);
    unfold(each, inner, anew).catch(complain);
    inner.parentNode.firstChild.focus();
  };
  const save = async () => {
    const text = field.value.trim();
    if (!text) throw new Error("An entry needs words. Use Remove to take it away.");
    put(inner); // so that the panel may draw itself anew
    try {
      await change(each, { action: "replace", match: each.text, text }, "Saved.", again);
    } catch (error) {
      put(inner, field, acts);
      throw error;
    }
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      leave();
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save().catch(complain);
  });
  const acts = el("p", { class: "acts" }, action("Save", save, "main"), button("Cancel", leave));
  put(inner, field, acts);
  field.focus();
}

function past(each) {
  return el("li", { class: "gone" }, el("del", { class: "plain" }, each.text), " ",
    el("span", { class: "mark" }, "no longer holds; told with your next message"));
}

function shelf(section, skills, panel, again) {
  const shown = panel.all ? skills : skills.slice(0, FIRST);
  part(section, "Skills", shown, (each) => each.name, (each) => skill(each, again), "None yet.");
  section.querySelector(":scope > button")?.remove();
  if (skills.length <= shown.length) return;
  section.append(button(`Show all ${plural(skills.length, "skill")}`, () => {
    panel.all = true;
    shelf(section, skills, panel, again);
  }, "quiet"));
}

export function skill(each, again) {
  const pin = each.pinned === null ? null : action(each.pinned ? "Unpin" : "Pin", async () => {
    await post(at("skills", each.name, each.pinned ? "unpin" : "pin"));
    again();
  }, "quiet");
  pin?.setAttribute("aria-label", `${each.pinned ? "Unpin" : "Pin"} ${each.name}`);
  return el("li", { class: "skill" }, el("div", null, el("a", { href: way("skills", each.name) }, each.name),
    each.used ? el("span", { class: "mark" }, "read here") : null, each.pinned ? el("span", { class: "mark" }, "pinned") : null,
    each.shaped ? el("span", { class: "mark shaped" }, SHAPED) : null,
    each.description ? el("p", { class: "meta about" }, each.description) : null), pin);
}
