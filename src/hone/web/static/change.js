// One change of what is known: who did what, why, the difference, and how to take it back.

import { at, get, post } from "./api.js";
import { button, el, put, way } from "./dom.js";
import { deed, plural, time } from "./format.js";
import { action, complain, say } from "./notices.js";

const SIGNS = { head: "head", "@": "place", "+": "came", "-": "went", " ": "same", end: "end" };

const GIST = 3;

/** A card. `answered` is called when something was done about it; `old` is the card it takes the place of. */
export function card(change, answered, old = null) {
  const more = el("details", { class: "more", open: Boolean(old && old.querySelector("details")?.open) },
    el("summary", null, "What changed ", el("span", { class: "lines" }, change.lines)));
  detail(more, change);
  return el("article", { class: waits(change) ? "change pending" : "change", "aria-label": `Change ${change.id}` },
    el("header", null,
      el("h3", null, deed(change)),
      el("p", { class: "meta" }, el("a", { href: way("learning", change.id) }, `#${change.id}`), " · ",
        time(change.at), from(change))),
    gist(change),
    change.reason ? el("p", { class: "meta" }, change.reason) : null,
    el("p", { class: "marks" }, marks(change)),
    change.others.length ? el("p", { class: "meta" }, `Together with ${plural(change.others.length, "other change")}.`) : null,
    change.contents.length ? more : null,
    el("p", { class: "acts" }, answers(change, answered)));
}

/** A fold that shows the difference and the evidence once it is open. */
export function detail(fold, change) {
  fold.addEventListener("toggle", () => open(fold, change));
  if (fold.open) open(fold, change);
}

// A short change is told without a difference.
function gist(change) {
  const lines = change.rows.filter((row) => row.sign === "+" || row.sign === "-");
  if (!lines.length || lines.length > GIST) return null;
  return el("div", { class: "gist" }, lines.map((row) => el(row.sign === "+" ? "ins" : "del", null,
    row.text.slice(1).replace(/^- /, ""))));
}

// A review's own session has a parent: the conversation that it looked back over.
function from(change) {
  const session = change.metadata.parent_session_id || change.metadata.session_id;
  const here = location.hash.includes(encodeURIComponent(session));
  return session ? [" · from ", el("a", { href: way("sessions", session) }, here ? "this conversation" : "a conversation")] : null;
}

function marks(change) {
  const cause = waits(change) && change.cause ? [change.cause] : [];
  return [...change.marks, ...cause].map((mark) => el("span", { class: "mark" }, mark));
}

/** The buttons with which a change is answered or taken back. */
export function answers(change, answered) {
  if (waits(change)) {
    const approve = () => settle(change, "approve", { seen: change.seen }, answered);
    return [action("Approve", approve, "main"), action("Reject", () => settle(change, "reject", {}, answered))];
  }
  return stands(change) ? action("Undo", () => undo(change.id, answered)) : null;
}

function waits(change) {
  return change.standing === "pending" && !change.settled;
}

function stands(change) {
  const undone = change.fate.startsWith("undone") && !change.fate.endsWith("back again");
  return change.standing === "active" && change.contents.length > 0 && !undone;
}

async function settle(change, answer, body, answered) {
  const made = await post(at("changes", change.id, answer), body);
  say(`Change ${change.id} is ${answer === "approve" ? "approved" : "rejected"}.`);
  answered(made);
}

/** Takes a change back; the answer is a change, too. */
export async function undo(id, answered) {
  const made = await post(at("changes", id, "undo"));
  say(`Change ${id} is undone by change ${made.id}.`);
  answered(made);
}

async function open(more, change) {
  if (!more.open || more.childElementCount > 1) return;
  const grounds = el("div", { class: "grounds" });
  more.append(difference(change.rows), ...change.others.map(other), grounds);
  try {
    const whole = await get(at("changes", change.id));
    put(grounds, whole.evidence.length ? el("h4", null, "Evidence") : null, whole.evidence.map(ground));
  } catch (error) {
    complain(error);
  }
}

// What is answered together is shown together.
function other(change) {
  return el("div", null, el("h4", null, deed(change)), difference(change.rows));
}

export function ground(evidence) {
  return el("blockquote", null, el("p", null, evidence.words),
    el("footer", null, el("a", { href: `${way("sessions", evidence.session)}?at=${evidence.message}` },
      `message ${evidence.message}`), ` · ${evidence.trust}`));
}

/** Long ones are shown in part, with the rest behind a button. */
export function difference(rows, most = 200) {
  const lines = (part) => part.map((row) => el("span", { class: SIGNS[row.sign] || "same" }, `${row.text}\n`));
  const block = el("pre", { class: "diff", tabindex: "0", "aria-label": "Difference" }, lines(rows.slice(0, most)));
  if (rows.length <= most) return block;
  const rest = button(`Show ${plural(rows.length - most, "more line")}`, () => {
    block.append(...lines(rows.slice(most)));
    rest.remove();
  });
  return el("div", null, block, rest);
}
