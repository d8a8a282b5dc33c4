// Messages of a conversation: words as words, calls of tools folded with their results.

import { copier } from "./copying.js";
import { el } from "./dom.js";
import { clock } from "./format.js";
import { prose } from "./markdown.js";
import { picture } from "./pictures.js";
import { call } from "./tool.js";

const ROLES = { user: "You", assistant: "Hone", tool: "Tools", system: "System", itself: "Hone, to itself" };
const LONG = 20000;
const UNANSWERED = /^\(no answer: ([\s\S]*)\)$/;
const CUT = /^([\s\S]*)\n\n\(cut short: ([\s\S]*)\)$/;

/**
 * All messages; each call stands where it was made, with its result in it. What is asked after message
 * `own` was asked by Hone, of itself: a review's question is nobody's words.
 */
export function messages(every, own = Infinity) {
  const results = answers(every);
  return every.map((each) => (each.role === "user" && each.number > own ? itself(each) : message(each, results)))
    .filter(Boolean);
}

/** The results among messages, by the call they answer. */
export function answers(every) {
  const results = new Map();
  for (const each of every) for (const part of each.parts) if (part.kind === "result") results.set(part.call, part);
  return results;
}

/** What Hone asked itself: nobody's words. */
export function itself(each) {
  const text = each.parts.map((part) => part.text || "").join("\n");
  return frame("itself", [folded("What it was asked", text)], each);
}

/** One message, or nothing if nobody is to see any of it. */
export function message(each, results) {
  const parts = [...each.parts].sort((a, b) => beside(a) - beside(b)).map((part) => shown(part, each.role, results)).filter(Boolean);
  if (!parts.length) return null;
  return frame(each.role, parts, each);
}

// What Hone put beside the user's words comes after them.
function beside(part) {
  return ["note", "reminder"].includes(part.kind) ? 1 : 0;
}

/** A message with who said it. `facts` are there once it is stored. */
export function frame(role, parts, facts = null) {
  const example = facts && facts.template ? " example" : "";
  const text = facts ? spoken(facts) : "";
  return el("article", { class: `said ${role}${example}`, "data-number": facts && facts.number },
    el("header", null, el("strong", null, ROLES[role] || role), facts ? meta(facts) : null,
      text ? copier(() => text, `Copy number ${facts.number}`) : null),
    el("div", { class: "body" }, parts));
}

/** The words of a message, as they were written. */
function spoken(facts) {
  return facts.parts.filter((part) => part.kind === "text").map((part) => part.text).join("\n\n").trim();
}

function meta(facts) {
  const trust = facts.trust === "foreign" ? " · foreign" : "";
  const example = facts.template ? ` · example from the template ${facts.template}` : "";
  return el("span", { class: "meta" }, `${facts.number} · `, clock(facts.at), trust, example);
}

function shown(part, role, results) {
  switch (part.kind) {
    case "text":
      return part.text.trim() ? words(part.text, role) : null;
    case "thinking":
      return part.text ? folded("Thinking", part.text) : null;
    case "note":
      return part.text ? folded("Hone told the model", part.text) : null;
    case "image":
      return picture(part);
    case "attachment":
      return folded(`Attached: ${part.name} (${part.label})`, part.text);
    case "reminder":
      return part.text ? folded(`From memory (${part.label})`, part.text) : null;
    case "call":
      return call(part, results.get(part.id));
    default:
      return null;
  }
}

/** An answer that never came, or was cut off, stays what it is: an error, with what was said until then. */
export function words(text, role) {
  if (role !== "assistant") return text.length > LONG ? el("pre", { class: "plain" }, text) : el("p", { class: "plain" }, text);
  const none = UNANSWERED.exec(text);
  if (none) return trouble(none[1], "No answer");
  const part = CUT.exec(text);
  return part ? [prose(part[1]), trouble(part[2], "Cut short")] : prose(text);
}

function trouble(reason, what) {
  if (reason === "interrupted") return el("p", { class: "stopped" }, "Stopped by you.");
  return el("p", { class: "bad" }, el("strong", null, `${what}: `), reason);
}

export function folded(name, text) {
  return el("details", { class: "fold" }, el("summary", null, name), el("pre", { class: "plain", tabindex: "0" }, text));
}
