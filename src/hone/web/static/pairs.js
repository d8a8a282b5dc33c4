// Entries that contradict or repeat each other, side by side. One of the two can go.

import { at, get, post } from "./api.js";
import { el, put, way } from "./dom.js";
import { ACTORS, named, plural, time } from "./format.js";
import { action, say } from "./notices.js";

const RELATIONS = { contradicts: "These two contradict each other.", resembles: "These two say much the same." };
const FIRST = 10;

/** A section that is there only if there are pairs. */
export function pairs(signal) {
  const root = el("section", { class: "stack", "aria-label": "Contradictions and near-duplicates" });
  const fresh = async () => {
    const { pairs: found, total } = await get("/api/pairs", {}, signal);
    root.hidden = !found.length;
    put(root, el("h2", null, "Contradictions and near-duplicates"), found.slice(0, FIRST).map((each) => card(each, fresh)),
      total > FIRST ? el("p", { class: "meta" }, `${plural(total - FIRST, "more pair")} after these.`) : null);
  };
  return { root, fresh };
}

function card(each, fresh) {
  return el("article", { class: "panel" }, el("p", { class: "meta" }, RELATIONS[each.relation] || each.relation),
    el("div", { class: "pair" }, side(each.one, each.other, fresh), side(each.other, each.one, fresh)));
}

function side(own, other, fresh) {
  const keep = action("Keep this one", async () => {
    await post(at("journal", other.part), { edits: [{ action: "remove", match: other.text }] });
    say("The other entry is removed. You can undo it below.");
    await fresh();
  });
  keep.setAttribute("aria-label", `Keep this one: ${own.text}`);
  return el("div", null, el("p", { class: "plain" }, own.text), el("p", { class: "meta" }, named(own.part), own.change ? [` · ${ACTORS[own.actor] || own.actor} · `,
    time(own.at), " · ", el("a", { href: way("learning", own.change) }, `change ${own.change}`)] : null), el("p", { class: "acts" }, keep));
}
