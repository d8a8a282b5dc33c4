// Permissions: what Hone may do without a question in a folder, what it may never do, and where each rule comes from.

import { get, post } from "./api.js";
import { el, put, renew } from "./dom.js";
import { back, command } from "./more.js";
import { action, complain, say } from "./notices.js";

export async function show(root, here, signal) {
  const chosen = { folder: here.query.get("folder") || "" };
  const state = el("div", { class: "stack" });
  const rules = el("ul", { class: "rows plainly" });
  const none = el("p", { class: "empty" });
  const fresh = async () => {
    const data = await get("/api/permissions", { folder: chosen.folder }, signal);
    put(state, standing(data));
    renew(rules, data.rules, (each) => `${each.kind} ${each.source} ${each.rule}`, (each) => row(each, chosen, again));
    put(none, data.rules.length ? "" : "No rules yet. “Always” under a question adds one.");
    return data;
  };
  const again = () => fresh().catch(complain);
  const first = await fresh();
  const folders = await known(first.folder, signal);
  put(root, el("div", null, back(), el("h1", null, "Permissions")),
    el("p", { class: "lead" }, "The mode says how much Hone does without asking. Rules make exceptions: an allow rule skips the question, a deny rule holds in every mode."),
    folders.length > 1 ? choice(folders, chosen, again) : null, state, el("h2", null, "Rules"), none, rules, addition(chosen, again));
}

async function known(own, signal) {
  const { sessions } = await get("/api/sessions", { limit: 200 }, signal);
  return [...new Set([own, ...sessions.map((each) => each.folder)])].filter(Boolean);
}

function choice(folders, chosen, again) {
  return el("form", { class: "filters" }, el("label", null, "Folder", el("select", { on: { change: (event) => {
    chosen.folder = event.target.value;
    again();
  } } }, folders.map((each) => el("option", { value: each, selected: each === (chosen.folder || folders[0]) }, each)))));
}

function standing(data) {
  return [el("p", { class: "meta plain" }, `Folder: ${data.folder}, ${data.trusted ? "trusted" : "not trusted"}. Network in the sandbox: ${data.network}.`),
    el("dl", { class: "modes" }, data.modes.map((each) => el("div", null,
      el("dt", null, each.mode, each.mode === data.mode ? el("span", { class: "mark done" }, "default") : null), el("dd", null, each.meaning))))];
}

function row(each, chosen, again) {
  const gone = each.own ? action("Remove", async () => {
    await post("/api/permissions/remove", { rule: each.rule, folder: chosen.folder, everywhere: each.source === "everywhere" });
    say("The rule is removed.");
    again();
  }, "quiet") : null;
  gone?.setAttribute("aria-label", `Remove ${each.rule}`);
  return el("li", null, el("div", null, el("span", { class: each.kind === "deny" ? "mark failed" : "mark done" }, each.kind), el("code", { class: "plain" }, each.rule),
    el("p", { class: "meta" }, each.own ? each.source : `from ${each.source}`,
      each.counts ? null : [" · has no effect until you run ", command("hone trust"), " in the folder"])), gone);
}

function addition(chosen, again) {
  const rule = el("input", { type: "text", "aria-label": "Rule", placeholder: "terminal: make test", required: true });
  const kind = el("select", { "aria-label": "Kind" }, el("option", { value: "allow" }, "allow"), el("option", { value: "deny" }, "deny"));
  const where = el("select", { "aria-label": "Where" }, el("option", { value: "" }, "in this folder"), el("option", { value: "all" }, "everywhere"));
  const add = async () => {
    await post("/api/permissions", { rule: rule.value.trim(), kind: kind.value, folder: chosen.folder, everywhere: Boolean(where.value) });
    rule.value = "";
    say("The rule is added.");
    again();
  };
  return el("form", { class: "panel", on: { submit: (event) => {
    event.preventDefault();
    add().catch(complain);
  } } }, el("h2", null, "Add a rule"), el("p", { class: "acts" }, kind, rule, where, el("button", { type: "submit", class: "main" }, "Add")),
  el("p", { class: "meta" }, "A tool, a colon, and a pattern: ", command("terminal: make test"), ", ", command("write_file: docs/**"), "."));
}
