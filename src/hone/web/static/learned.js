// What was learned from a conversation, below its last answer.

import { at, get } from "./api.js";
import { card } from "./change.js";
import { el, renew } from "./dom.js";
import { complain } from "./notices.js";

/** The line, and beneath it each change with its difference and a way back. */
export async function learned(talk, data) {
  const cards = el("div", { class: "cards" });
  const fresh = async () => {
    const changes = await Promise.all(data.changes.map((id) => get(at("changes", id), {}, talk.signal)));
    renew(cards, changes, (each) => each.id, (each, old) => card(each, () => fresh().catch(complain), old));
  };
  await fresh();
  const lines = (data.line || "").split("\n").map((line) => line.replace(/ (· (undo \d+|log)|\(pending\))$/, ""));
  const lead = lines.map((line) => el("p", { class: "line" }, line));
  return data.changes.length ? el("section", { class: "learned" }, el("h2", { class: "unseen" }, "Learned"), lead, cards) : null;
}
