// One template: its examples, the conversations that began with it, and what experiments found.

import { at, get, remove } from "./api.js";
import { button, el, put, way } from "./dom.js";
import { count } from "./format.js";
import { measured } from "./measured.js";
import { back } from "./more.js";
import { complain, say } from "./notices.js";
import { pick } from "./picker.js";
import { labels, made, times } from "./templates.js";

export async function show(root, here, signal) {
  const template = await get(at("templates", here.id), {}, signal);
  put(root, el("div", { class: "stack" }, el("div", null, back("templates", "Templates"), el("h1", null, template.name)),
    template.description ? el("p", { class: "plain" }, template.description) : null,
    el("p", { class: "marks" }, labels(template)), el("p", { class: "meta" }, made(template), ` · ${times(template.uses)}`),
    measured(template.measured), el("p", { class: "acts" }, button("Delete", () => ask(template.name)))),
  el("h2", null, "Examples"), el("div", { class: "stack" }, template.shown.map(example)),
  template.used_by.length ? [el("h2", null, "Conversations that began with it"),
    el("ul", { class: "rows" }, template.used_by.map((id) => el("li", null, el("a", { href: way("sessions", id) }, id))))] : null);
}

function example(each) {
  const kept = each.result.length;
  return el("details", { class: "panel" }, el("summary", null, el("code", null, each.tool), ` ${count(each.size)} characters, ${each.result_trust}`),
    el("pre", { class: "plain", tabindex: "0" }, each.arguments),
    kept ? el("pre", { class: "plain", tabindex: "0" }, each.result) : el("p", { class: "meta" }, "The result is not kept."));
}

function ask(name) {
  pick(`Delete ${name}?`, [
    { name: "Keep it", run: () => {} },
    { name: "Delete it", about: "conversations that began with it keep their examples", run: () => gone(name).catch(complain) },
  ]);
}

async function gone(name) {
  await remove(at("templates", name));
  say(`The template ${name} is deleted.`);
  location.hash = "#/templates";
}
