// Messages of a conversation: words as words, calls of tools folded with their results.

import { el, put } from "./dom.js";
import { clock } from "./format.js";
import { markup } from "./markup.js";

const ROLES = { user: "You", assistant: "Hone", tool: "Tools", system: "System", itself: "Hone, to itself" };
const LONG = 20000;

/**
 * All messages; each call stands where it was made, with its result in it. What is asked after message
 * `own` was asked by Hone, of itself: a review's question is nobody's words.
 */
export function messages(every, own = Infinity) {
  const results = new Map();
  for (const each of every) for (const part of each.parts) if (part.kind === "result") results.set(part.call, part);
  return every.map((each) => (each.role === "user" && each.number > own ? itself(each) : message(each, results)))
    .filter(Boolean);
}

function itself(each) {
  const text = each.parts.map((part) => part.text || "").join("\n");
  return frame("itself", [folded("What it was asked", text)], each);
}

function message(each, results) {
  const parts = each.parts.map((part) => shown(part, each.role, results)).filter(Boolean);
  if (!parts.length) return null;
  return frame(each.role, parts, each);
}

/** A message with who said it. `facts` are there once it is stored. */
export function frame(role, parts, facts = null) {
  const example = facts && facts.template ? " example" : "";
  return el("article", { class: `said ${role}${example}`, "data-number": facts && facts.number },
    el("header", null, el("strong", null, ROLES[role] || role), facts ? meta(facts) : null),
    el("div", { class: "body" }, parts));
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
      return el("p", { class: "meta" }, `(an image, ${part.media_type})`);
    case "call":
      return call(part, results.get(part.id));
    default:
      return null;
  }
}

export function words(text, role) {
  if (text.length > LONG) return el("pre", { class: "plain" }, text);
  return role === "assistant" ? markup(text) : el("p", { class: "plain" }, text);
}

export function folded(name, text) {
  return el("details", { class: "fold" }, el("summary", null, name), el("pre", { class: "plain", tabindex: "0" }, text));
}

/** A call of a tool, folded; `result` is null while it runs. */
export function call(part, result = null) {
  const state = el("span", { class: "state" });
  const answer = el("pre", { class: "plain", tabindex: "0" });
  const made = el("details", { class: "fold tool" },
    el("summary", null, el("code", null, part.name), el("span", { class: "gist" }, gist(part.arguments)), state),
    el("pre", { class: "plain", tabindex: "0" }, pretty(part.arguments)), answer);
  made.finish = (ended) => {
    made.classList.toggle("failed", ended.failed);
    put(state, ended.failed ? "failed" : "done", !(ended.seconds >= 0.1) ? "" : ` · ${ended.seconds.toFixed(1)} s`);
    put(answer, ended.text);
  };
  if (result) made.finish(result);
  else put(state, "…");
  return made;
}

function gist(text) {
  try {
    const values = Object.values(JSON.parse(text)).filter((value) => typeof value === "string");
    return (values[0] || "").slice(0, 120);
  } catch {
    return text.slice(0, 120);
  }
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
