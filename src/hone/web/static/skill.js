// One skill: its files, what it was used for, its history.

import { at, get, post, write } from "./api.js";
import { card } from "./change.js";
import { button, el, put, renew } from "./dom.js";
import { count, time } from "./format.js";
import { on } from "./live.js";
import { measured } from "./measured.js";
import { action, complain, say } from "./notices.js";
import { marks, row } from "./skills.js";

const ALIKE = 5;

export async function show(root, here, signal) {
  const head = el("div", { class: "head" });
  const files = el("div", { class: "stack" });
  const history = el("div", { class: "cards" });
  const fresh = async () => {
    const skill = await get(at("skills", here.id), {}, signal);
    put(head, el("p", { class: "back" }, el("a", { href: "#/skills" }, "Skills")), el("h1", null, skill.name),
      el("p", { class: "marks" }, marks(skill)), acts(skill, again), usage(skill.usage), measured(skill.measured),
      skill.source ? el("p", { class: "meta" }, `from ${skill.source}`) : null);
    renew(files, skill.files, (each) => each.path, (each, old) => file(skill, each, again, old));
    renew(history, skill.history, (each) => each.id, (each, old) => card(each, again, old));
  };
  const again = () => fresh().catch(complain);
  const { skills: near } = await get(at("skills", here.id, "alike"), {}, signal);
  put(root, head, el("h2", null, "Files"), files, near.length ? [el("h2", null, "Similar skills"), el("ul", { class: "rows" }, near.slice(0, ALIKE).map(row))] : null,
    el("h2", null, "History"), history);
  await fresh();
  on(["changed", "reset"], () => {
    if (!files.querySelector("textarea")) again();
  }, signal);
}

function acts(skill, again) {
  const mark = (text, name) => action(text, async () => {
    await post(at("skills", skill.name, name));
    again();
  });
  return el("p", { class: "acts" }, skill.pinned ? mark("Unpin", "unpin") : mark("Pin", "pin"),
    skill.archived ? mark("Restore", "restore") : mark("Archive", "archive"));
}

function usage(tally) {
  const facts = [["used", tally.uses], ["read", tally.views], ["patched", tally.patches + tally.background_patches],
    ["went well", tally.succeeded], ["corrected", tally.corrected]];
  return el("dl", { class: "facts" }, facts.map(([name, number]) => el("div", null, el("dt", null, name),
    el("dd", null, count(number)))),
    el("div", null, el("dt", null, "last used"), el("dd", null, tally.last_use ? time(tally.last_use) : "never")));
}

function file(skill, each, again, old) {
  const body = el("div", { class: "stack" });
  const first = each.path === "SKILL.md";
  const made = el("details", { class: "panel", open: old ? old.open : first },
    el("summary", null, el("code", null, each.path), el("span", { class: "meta" }, ` ${count(each.bytes)} bytes`)), body);
  const read = () => put(body,
    each.text === null ? el("p", { class: "empty" }, "This file is not text.") : el("pre", { class: "plain", tabindex: "0" }, each.text),
    each.text === null ? null : el("p", { class: "acts" }, button("Edit", edit)));
  const edit = () => put(body, editor(skill, each, read, again));
  read();
  return made;
}

function editor(skill, each, read, again) {
  const field = el("textarea", { rows: "18", "aria-label": each.path, spellcheck: "false" });
  field.value = each.text;
  const path = `${at("skills", skill.name, "files")}/${each.path.split("/").map(encodeURIComponent).join("/")}`;
  return [field, el("p", { class: "acts" }, action("Save", async () => {
    await write(path, { text: field.value, seen: each.seen });
    say(`${each.path} is saved.`);
    read();
    again();
  }, "main"), button("Cancel", read))];
}
