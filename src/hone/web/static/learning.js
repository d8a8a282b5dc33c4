// The timeline of learning: what waits for its owner, then each lesson through its life, by day.

import { at, get } from "./api.js";
import { card } from "./change.js";
import { button, el, put, renew, way } from "./dom.js";
import { ACTORS, STEPS, day, plural, time } from "./format.js";
import { current, lives } from "./lives.js";
import { on } from "./live.js";
import { complain } from "./notices.js";
import { pairs } from "./pairs.js";

const STEP = 50;
const MOST = 200;
const PACE = 700;
const TARGETS = [["", "everything"], ["memory", "memory"], ["user", "about you"], ["project:", "projects"], ["skill:", "skills"]];
const PRESS = { a: "Approve", x: "Reject", u: "Undo" };

export async function show(root, here, signal) {
  if (here.id) return one(root, here.id, signal);
  const chosen = { actor: "", target: here.query.get("target") || "", session: here.query.get("session") || "" };
  const state = { limit: STEP, upto: Infinity, changes: [] };
  const waiting = el("section", { class: "stack", "aria-label": "Waiting for you" });
  const beside = pairs(signal);
  const days = el("div", { class: "stack" });
  const older = button("Older changes", () => {
    state.limit += STEP;
    again();
  });
  const fresh = async () => {
    const [pending, timeline] = await Promise.all([
      get("/api/pending", {}, signal), get("/api/changes", { ...chosen, limit: Math.min(state.limit, MOST) }, signal), beside.fresh()]);
    play.hidden = timeline.changes.length < 2;
    const open = chosen.session || chosen.target ? [] : pending.changes;
    const place = focused(waiting);
    put(waiting, open.length ? heading(open) : null, list(waiting, open, (each, old) => pair(card(each, again, old), each)));
    state.changes = timeline.changes;
    draw();
    older.hidden = timeline.changes.length < state.limit || state.limit >= MOST;
    if (place >= 0) (waiting.querySelectorAll(".change")[Math.min(place, open.length - 1)] || days.querySelector(".change"))?.focus();
  };
  const draw = () => {
    const settled = state.changes.filter((each) => each.id <= state.upto && (each.standing !== "pending" || each.settled));
    const none = Object.values(chosen).some(Boolean) ? "No change matches." : "Nothing has changed yet. Talk to Hone; what it learns appears here.";
    grouped(days, lives(settled), again, none);
  };
  const again = () => fresh().catch(complain);
  const play = player(state, draw, fresh, signal);
  put(root, el("h1", null, "Learning"),
    el("p", { class: "lead" }, "What Hone learned, and what became of it. You can undo each change, and the undo, too."),
    filters(chosen, again), waiting, beside.root, play, days, el("p", null, older));
  document.addEventListener("keydown", (event) => press(event, root), { signal });
  await fresh();
  on(["changed", "learned", "reset"], again, signal);
}

function heading(pending) {
  return [el("h2", null, "Waiting for you"), el("p", { class: "meta hint" }, `${plural(pending.length, "lesson")}. Keys: `,
    [["j", "next"], ["k", "previous"], ["a", "approve"], ["x", "reject"], ["e", "evidence"]].map(([key, text]) => [el("kbd", null, key), ` ${text}  `]))];
}

function list(holder, changes, make) {
  const found = holder.querySelector(".cards") || el("div", { class: "cards" });
  renew(found, changes, (each) => each.id, (each, old) => reachable(make(each, old)));
  return found;
}

function reachable(made) {
  made.tabIndex = -1;
  return made;
}

/** An entry that the new one resembles or contradicts stands beside it. */
function pair(made, change) {
  for (const each of change.near || []) {
    made.insertBefore(el("div", { class: "pair" },
      el("div", null, el("p", { class: "meta" }, "Known now"), el("p", { class: "plain" }, each.text)),
      el("div", null, el("p", { class: "meta" }, each.relation === "contradicts" ? "New, and it contradicts that" : "New, and much like that"),
        el("p", { class: "plain" }, each.new))), made.querySelector(".marks"));
  }
  return made;
}

function grouped(days, lessons, answered, none) {
  const groups = new Map();
  for (const lesson of lessons) {
    const name = day(lesson.steps.at(-1).at);
    groups.set(name, [...(groups.get(name) || []), { ...current(lesson), steps: lesson.steps }]);
  }
  const held = new Map([...days.querySelectorAll("section")].map((each) => [each.dataset.day, each]));
  put(days, [...groups].map(([name, own]) => {
    const section = held.get(name) || el("section", { class: "stack", "data-day": name }, el("h2", null, name));
    const cards = list(section, own, (each, old) => life(card(each, answered, old), each.steps));
    if (!cards.parentNode) section.append(cards);
    return section;
  }), lessons.length ? null : el("p", { class: "empty" }, none));
}

/** The steps of a lesson, if there were several. */
function life(made, steps) {
  if (steps.length < 2) return made;
  made.querySelector("header").after(el("ol", { class: "life", "aria-label": "Its life" }, steps.map((each) => el("li", null,
    el("a", { href: way("learning", each.id) }, STEPS[each.deed] || each.deed), ` by ${(ACTORS[each.actor] || each.actor).toLowerCase()} · `, time(each.at)))));
  return made;
}

/** Shows the changes again in the order in which they came. */
function player(state, draw, fresh, signal) {
  let timer = 0;
  const told = el("span", { class: "meta", role: "status" });
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    state.upto = Infinity;
    put(told);
    put(play, "Play from the beginning");
    draw();
  };
  const play = button("Play from the beginning", async () => {
    if (timer) return stop();
    state.limit = MOST;
    await fresh().catch(complain);
    const ids = state.changes.map((each) => each.id).reverse();
    let place = 0;
    put(play, "Stop");
    const step = () => {
      if (place >= ids.length) return stop();
      state.upto = ids[place];
      place += 1;
      put(told, `${place} of ${ids.length}`);
      return draw();
    };
    timer = setInterval(step, PACE);
    return step();
  }, "quiet");
  signal.addEventListener("abort", () => clearInterval(timer));
  return el("p", { class: "acts flush" }, play, told);
}

function focused(section) {
  return [...section.querySelectorAll(".change")].findIndex((each) => each.contains(document.activeElement));
}

/** j and k lead from card to card; a letter presses the button of the card that has the focus. */
function press(event, root) {
  if (event.target.matches("input, textarea, select, dialog *") || event.ctrlKey || event.metaKey || event.altKey) return;
  const cards = [...root.querySelectorAll(".change")];
  const place = cards.findIndex((each) => each.contains(document.activeElement));
  if (event.key === "j" || event.key === "k") cards[Math.max(0, place + (event.key === "j" ? 1 : -1))]?.focus();
  else if (event.key === "e") cards[place]?.querySelector("summary")?.click();
  else if (PRESS[event.key]) [...(cards[place]?.querySelectorAll(".acts button") || [])].find((each) => each.textContent === PRESS[event.key])?.click();
  else return;
  event.preventDefault();
}

function filters(chosen, renewed) {
  const pick = (name, label, options) => el("label", null, label,
    el("select", { on: { change: (event) => {
      chosen[name] = event.target.value;
      renewed();
    } } }, options.map(([value, text]) => el("option", { value, selected: value === chosen[name] }, text))));
  const targets = TARGETS.some(([value]) => value === chosen.target) ? TARGETS : [...TARGETS, [chosen.target, chosen.target]];
  return el("form", { class: "filters", on: { submit: (event) => event.preventDefault() } },
    pick("actor", "by", [["", "anyone"], ...Object.entries(ACTORS)]), pick("target", "in", targets),
    chosen.session ? el("a", { href: "#/learning" }, "from one conversation: show all") : null);
}

async function one(root, id, signal) {
  const fresh = async () => {
    const change = await get(at("changes", id), {}, signal);
    const shown = card(change, () => fresh().catch(complain));
    shown.querySelector("details")?.setAttribute("open", "");
    put(root, el("p", { class: "back" }, el("a", { href: "#/learning" }, "Learning")), el("h1", null, `Change ${change.id}`), shown);
  };
  await fresh();
  on(["changed"], () => fresh().catch(complain), signal);
}
