// More: the views that are needed now and then, each with what it is for.

import { el, put, way } from "./dom.js";

export const VIEWS = [
  ["reviews", "Reviews", "The queue, and what Hone kept from each conversation."],
  ["figures", "Usage", "Tokens and cost of conversations and of learning."],
  ["payback", "Payback", "What each lesson cost and what it saved."],
  ["curator", "Curator", "Archives unused skills and proposes merges. You see the plan first."],
  ["permissions", "Permissions", "Rules for what Hone may do without asking."],
  ["templates", "Templates", "Tool calls that worked, kept as examples for new conversations."],
  ["experiments", "Experiments", "Whether a lesson helps, measured with it and without it."],
  ["backends", "Memory backends", "Where Hone stores copies of what it knows, and how the choices compare."],
  ["team", "Team", "What your colleagues share, and what waits for a second person."],
  ["access", "Access", "Signed-in browsers, and a one-time link for another one."],
];

export async function show(root) {
  put(root, el("h1", null, "More"), el("ul", { class: "rows" }, VIEWS.map(([page, title, about]) =>
    el("li", null, el("a", { href: way(page) }, el("span", { class: "title" }, title), el("span", { class: "about" }, about))))));
}

/** The way back from a view. */
export function back(page = "more", title = "More") {
  return el("p", { class: "back" }, el("a", { href: way(page) }, title));
}

/** Files that cannot be read, each with the reason. */
export function faults(lines) {
  return lines.map((line) => el("p", { class: "bad" }, line));
}

export function command(text) {
  return el("code", { class: "command" }, text);
}
