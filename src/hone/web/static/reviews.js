// Reviews: the queue as it moves, what each took, what it changed, what went wrong.

import { at, get, post } from "./api.js";
import { card } from "./change.js";
import { el, put, renew, way } from "./dom.js";
import { money, plural, share, short, time } from "./format.js";
import { on } from "./live.js";
import { messages } from "./message.js";
import { back } from "./more.js";
import { action, complain } from "./notices.js";

const STATES = { cancelled: "canceled" };
const STEP = 100;
const MOST = 500;
const OPEN = new Set(["queued", "at work"]);

export async function show(root, here, signal) {
  const queue = el("div", { class: "cards" });
  const past = el("div", { class: "cards" });
  const paying = el("div");
  const none = el("p", { class: "empty" });
  let limit = STEP;
  const older = action("Older reviews", async () => {
    limit = Math.min(limit + STEP, MOST);
    await fresh();
  });
  const fresh = async () => {
    const { reviews, slower } = await get("/api/reviews", { limit }, signal);
    older.hidden = reviews.length < limit || limit >= MOST;
    const make = (each, old) => review(each, again, old);
    const [open, ended] = [reviews.filter((each) => OPEN.has(each.state)), reviews.filter((each) => !OPEN.has(each.state))];
    renew(queue, open, (each) => each.id, make);
    renew(past, ended, (each) => each.id, make);
    put(paying, slower.map((sentence) => el("p", { class: "meta" }, sentence)));
    put(none, open.length ? "" : "The queue is empty.");
  };
  const again = () => fresh().catch(complain);
  put(root, el("div", null, back(), el("h1", null, "Reviews")),
    el("p", { class: "lead" }, "After a conversation, Hone looks back over it in the background and keeps what will help next time."),
    paying, el("h2", null, "Queue"), none, queue, el("h2", null, "Done"), past, el("p", null, older));
  await fresh();
  on(["reviews", "learned", "reset"], again, signal);
}

function review(each, again, old) {
  const whole = el("details", { class: "more", open: Boolean(old && old.querySelector("details")?.open) },
    el("summary", null, "What was said and changed"));
  whole.addEventListener("toggle", () => open(whole, each, again));
  if (whole.open) open(whole, each, again);
  return el("article", { class: "review" },
    el("header", null, el("h3", null, `Review ${each.id}: ${each.topics.join(" and ")}`),
      el("p", { class: "meta" }, el("span", { class: `mark ${each.state.replace(" ", "-")}` }, STATES[each.state] || each.state), " ",
        time(each.created), ` · ${each.why} · `, el("a", { href: way("sessions", each.session) }, "its conversation"))),
    each.error ? el("p", { class: each.state === "cancelled" ? "meta" : "bad" }, each.error) : null,
    each.calls ? facts(each) : null,
    each.review ? whole : null,
    el("p", { class: "acts" }, acts(each, again)));
}

function facts(each) {
  const cost = each.cost === null ? "unknown" : money(each.cost);
  const pairs = [["from the cache", share(each.first_request_cached)], ["model calls", String(each.calls)],
    ["tokens", short(each.input + each.output)], ["cost", cost], ["changes", String(each.changes.length)],
    ["waiting", String(each.waiting)]];
  return el("dl", { class: "facts" }, pairs.map(([name, text]) => el("div", null, el("dt", null, name), el("dd", null, text))));
}

function acts(each, again) {
  const answer = (text, name) => action(text, async () => {
    await post(at("reviews", each.id, name));
    again();
  });
  if (OPEN.has(each.state)) return answer("Cancel", "cancel");
  return each.state === "done" ? null : answer("Try again", "retry");
}

async function open(whole, each, again) {
  if (!whole.open || whole.childElementCount > 1) return;
  try {
    const told = await get(at("reviews", each.id));
    if (whole.childElementCount > 1) return;
    whole.append(el("div", { class: "cards" }, told.made.map((made) => card(made, again))),
      el("div", { class: "thread stack" }, told.made.length ? null : el("p", { class: "empty" },
        `It changed nothing. ${plural(told.said.length, "message")}:`), messages(told.said, 0)));
  } catch (error) {
    complain(error);
  }
}
