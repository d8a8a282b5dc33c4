// The curator: what a round would do, before it is done; the rounds so far; which skills are unused.

import { at, get, post } from "./api.js";
import { card, difference } from "./change.js";
import { el, put, renew, way } from "./dom.js";
import { plural, time } from "./format.js";
import { on } from "./live.js";
import { prose } from "./markdown.js";
import { back } from "./more.js";
import { action, complain, say } from "./notices.js";

const STEP = 20;
const MOST = 200;
const DEEDS = { merge: "Merge", age: "Archive", wake: "Restore", archive: "Archive" };

export async function show(root, here, signal) {
  const state = el("div", { class: "stack" });
  const plan = el("section", { class: "stack", "aria-live": "polite" });
  const rounds = el("div", { class: "cards" });
  const none = el("p", { class: "empty" });
  const ages = el("div");
  let limit = STEP;
  const older = action("Older rounds", async () => {
    limit = Math.min(10 * limit, MOST);
    await fresh();
  });
  const fresh = async () => {
    const data = await get("/api/curator", { limit }, signal);
    older.hidden = data.rounds.length < limit || limit >= MOST;
    put(state, standing(data, plan, again));
    renew(rounds, data.rounds, (each) => each.round, (each, old) => round(each, again, old));
    put(none, data.rounds.length ? "" : "No rounds yet.");
    put(ages, unused(data));
  };
  const again = () => fresh().catch(complain);
  put(root, el("div", null, back(), el("h1", null, "Curator")),
    el("p", { class: "lead" }, "Once a week, the curator archives learned skills that nobody uses and proposes to merge those that overlap. Merges wait for you."),
    state, plan, el("h2", null, "Rounds"), none, rounds, el("p", null, older), ages);
  await fresh();
  on(["changed", "reset"], again, signal);
}

function standing(data, plan, again) {
  const when = data.due ? `A round is due: ${data.due}.` : "No round is due.";
  return [el("p", null, data.paused ? "Paused: no round begins by itself. " : `${when} `,
    data.waiting.length ? el("a", { href: "#/learning" }, `${plural(data.waiting.length, "change")} from the last round waiting for you`) : null),
  el("p", { class: "acts" }, action("Show the plan", () => preview(plan, again), "main"),
    action(data.paused ? "Resume" : "Pause", async () => {
      await post("/api/curator/pause", { paused: !data.paused });
      again();
    })),
  el("p", { class: "meta" }, "The plan asks the model and changes nothing.")];
}

/** What a round would do now; then it can be done. */
async function preview(plan, again) {
  put(plan, el("p", { class: "empty" }, "Asking the model …"));
  try {
    draw(plan, await post("/api/curator/preview"), again);
  } catch (error) {
    put(plan);
    throw error;
  }
}

function draw(plan, told, again) {
  const why = [told.error, told.skipped, ...told.refused].filter(Boolean);
  const run = action("Apply a round now", async () => {
    const done = await post("/api/curator/rounds");
    say(`Round ${done.round}: ${plural(done.made.length, "change")}${done.made.some((each) => each.standing === "pending") ? ", waiting for you" : ""}.`);
    put(plan);
    again();
  }, "main");
  put(plan, el("h2", null, "Plan"), told.moves.length ? null : el("p", { class: "empty" }, "A round would change nothing now."),
    why.map((line) => el("p", { class: told.error === line ? "bad" : "meta" }, line)), told.moves.map(move),
    told.moves.length ? [el("p", { class: "acts" }, run),
      el("p", { class: "meta" }, "The round asks the model once more, so its plan may differ. You can undo each change under Learning.")] : null);
}

function move(each) {
  return el("article", { class: each.waits ? "change pending" : "change" }, el("header", null,
    el("h3", null, `${DEEDS[each.deed] || "Change"} ${each.skill}`),
    el("p", { class: "meta" }, each.waits ? "would wait for your approval" : "would take effect at once")), difference(each.rows));
}

function round(each, again, old) {
  const whole = el("details", { class: "more", open: Boolean(old?.querySelector("details")?.open) }, el("summary", null, "Report and changes"));
  whole.addEventListener("toggle", () => open(whole, each, again));
  if (whole.open) open(whole, each, again);
  return el("article", { class: "review" }, el("header", null, el("h3", null, `Round ${each.round}`),
    el("p", { class: "meta" }, time(each.at), ` · ${each.why} · ${plural(each.changes.length, "change")}`)),
  each.error ? el("p", { class: "bad" }, each.error) : null, whole);
}

async function open(whole, each, again) {
  if (!whole.open || whole.childElementCount > 1) return;
  const inner = el("div", { class: "cards" });
  whole.append(inner);
  try {
    const told = await get(at("curator", "rounds", each.round));
    put(inner, prose(told.report), told.made.map((made) => card(made, again)));
  } catch (error) {
    inner.remove();
    complain(error);
  }
}

function unused({ ages, aging }) {
  if (!ages.length) return null;
  return el("details", { class: "panel" }, el("summary", null, `How long ${plural(aging, "learned skill")} went unused`),
    el("table", null, el("thead", null, el("tr", null, ["skill", "unused", "state"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", null, ages.map((each) => el("tr", null, el("th", { scope: "row" }, el("a", { href: way("skills", each.skill) }, each.skill)),
        el("td", null, plural(each.unused, "day")), el("td", null, each.state))))),
    aging > ages.length ? el("p", { class: "meta" }, `The ${ages.length} longest unused are shown.`) : null);
}
