// Times, amounts and names as people read them.

import { el } from "./dom.js";

const CLOCK = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const YEAR = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric" });
const FULL = new Intl.DateTimeFormat("en", { dateStyle: "full", timeStyle: "medium", hourCycle: "h23" });
const COUNT = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const ACTORS = { owner: "You", agent: "Hone", review: "A review", curator: "The curator", client: "Another agent" };
const HEADLINE = 80;
const DEEDS = {
  add: "added to", replace: "changed", remove: "removed from", batch: "changed", edit: "edited",
  create: "created", patch: "patched", rewrite: "rewrote", writefile: "wrote a file of",
  removefile: "removed a file of", archive: "archived", restore: "restored", pin: "pinned", unpin: "unpinned",
  undo: "undid a change of", approve: "approved a change of", reject: "rejected a change of", confirm: "confirmed a change of",
  merge: "merged skills into", age: "put away", wake: "brought back", install: "installed", uninstall: "uninstalled", repair: "repaired",
};
/** What a step in the life of a lesson is called. */
export const STEPS = {
  add: "added", replace: "replaced", remove: "removed", become: "rewritten", batch: "changed", edit: "edited by hand", create: "created", patch: "improved",
  rewrite: "rewritten", writefile: "a file written", removefile: "a file removed", archive: "archived", restore: "restored", pin: "pinned", unpin: "unpinned",
  undo: "undone", approve: "approved", reject: "rejected", confirm: "confirmed", merge: "merged", age: "put away, unused", wake: "back in use",
};
const PARTS = { memory: "Memory", user: "About you", project: "This project" };
const ORIGINS = { question: "question about an answer", user: "conversation", review: "review", curator: "curator", delegate: "helper", compact: "summary" };

export function day(text) {
  const at = new Date(text);
  const days = (midnight(new Date()) - midnight(at)) / 86400000;
  if (days < 0.5 && days > -0.5) return "Today";
  if (days > 0.5 && days < 1.5) return "Yesterday";
  return (at.getFullYear() === new Date().getFullYear() ? DAY : YEAR).format(at);
}

function midnight(at) {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate());
}

/** The time of day, after the day unless that is today. */
export function time(text) {
  const at = new Date(text);
  const name = day(text);
  const words = name === "Today" ? CLOCK.format(at) : `${name}, ${CLOCK.format(at)}`;
  return el("time", { datetime: text, title: FULL.format(at) }, words);
}

export function clock(text) {
  return el("time", { datetime: text, title: FULL.format(new Date(text)) }, CLOCK.format(new Date(text)));
}

export function count(number) {
  return COUNT.format(number);
}

export function short(number) {
  return number < 10000 ? COUNT.format(number) : SHORT.format(number);
}

/** A price that nobody knows is unknown, not nothing. */
export function money(cost) {
  if (cost === null || cost === undefined) return "unknown";
  if (cost === 0) return "$0";
  return `$${cost < 0.01 ? cost.toPrecision(2) : cost.toFixed(2)}`;
}

export function share(part) {
  return part === null || part === undefined ? "–" : `${Math.round(part * 100)}%`;
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

export function named(target) {
  if (target.startsWith("skill:")) return `skill ${target.slice(6)}`;
  if (target.startsWith("project:")) return `the project ${target.slice(8).split("/").pop()}`;
  return PARTS[target] || target;
}

/** Who made a change; another agent is called by the name that the owner gave it. */
export function actor(change) {
  const named = change.actor === "client" && change.metadata?.platform;
  return named || ACTORS[change.actor] || change.actor;
}

export function deed(change) {
  return `${actor(change)} ${DEEDS[change.deed] || change.deed} ${named(change.target)}`;
}

export function origin(name) {
  return ORIGINS[name] || name;
}

/** The title of a conversation that was read, or how it began. */
export function headline(session) {
  const first = (session.opening || session.messages).find((each) => each.role === "user" && !each.template);
  const text = first?.parts.find((part) => part.kind === "text")?.text || "Conversation";
  const line = text.replace(/\s+/g, " ").trim();
  return session.title || (line.length > HEADLINE ? `${line.slice(0, HEADLINE)}…` : line);
}

/** The words of a lesson: of a journal entry what it says, of a skill what was done. */
export function lesson(change) {
  if (change.target.startsWith("skill:") && STEPS[change.deed]) return `Skill ${change.target.slice(6)}: ${STEPS[change.deed]}`;
  const came = change.rows.filter((row) => row.sign === "+").map((row) => row.text.slice(1).replace(/^- /, ""));
  return came.length ? came.join(" ") : change.text;
}

export function called(session) {
  return session.title || begun(session.opening) || session.session;
}

/** How a conversation began. The server gives the first words only. */
export function begun(opening) {
  return opening.length < HEADLINE ? opening : `${opening.trimEnd()}…`;
}
