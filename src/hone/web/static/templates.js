// Templates: calls that worked in one conversation, kept as examples for the beginning of others.

import { get } from "./api.js";
import { el, put, way } from "./dom.js";
import { plural, time } from "./format.js";
import { back, command, faults } from "./more.js";

export async function show(root, here, signal) {
  const { templates, broken } = await get("/api/templates", {}, signal);
  put(root, el("div", null, back(), el("h1", null, "Templates")),
    el("p", { class: "lead" }, "A template keeps tool calls that worked. A conversation that begins with one has already seen how it is done."),
    faults(broken), el("ul", { class: "rows" }, templates.map(row)),
    templates.length ? null : el("p", { class: "empty" }, "No templates yet. Open a conversation under ",
      el("a", { href: "#/sessions" }, "Sessions"), " and choose “Make a template”."),
    templates.length ? el("p", { class: "meta" }, "Begin a conversation with one in a terminal: ", command(`hone --template ${templates[0].name}`)) : null);
}

function row(each) {
  return el("li", null, el("a", { href: way("templates", each.name) }, el("span", { class: "title" }, each.name),
    el("span", { class: "about" }, each.description),
    el("span", { class: "meta" }, labels(each), ` ${plural(each.examples, "example")} · ${times(each.uses)}`, effect(each))));
}

/** What kind of work it is, and its tags. */
export function labels(each) {
  return [...new Set([each.type, ...each.tags])].map((tag) => el("span", { class: "mark" }, tag));
}

export function times(uses) {
  return uses ? `used ${uses === 1 ? "once" : `${uses} times`}` : "not used yet";
}

function effect(each) {
  if (each.effect === null) return null;
  const points = Math.round(each.effect * 100);
  return ` · measured: ${points < 0 ? "−" : "+"}${Math.abs(points)} points of success`;
}

export function made(each) {
  return ["made ", time(each.created), " from ", el("a", { href: way("sessions", each.session) }, "a conversation")];
}
