// The chat: a conversation as it happens, what is known in it, and what is learned from it.

import { branch, resend } from "./again.js";
import { at, get, post } from "./api.js";
import { composer } from "./composer.js";
import { deeds } from "./deeds.js";
import { el, put, way } from "./dom.js";
import { opener } from "./drawers.js";
import { facts } from "./facts.js";
import { headline } from "./format.js";
import { asked, history } from "./history.js";
import { knows } from "./knows.js";
import { learned } from "./learned.js";
import { follow, on } from "./live.js";
import { frame, words } from "./message.js";
import { plan, selector } from "./mode.js";
import { complain, reason } from "./notices.js";
import { offer } from "./palette.js";
import { questions } from "./question.js";
import { down, stayAtEnd } from "./scrolling.js";
import { lately, start } from "./start.js";
import { turn } from "./turn.js";
import { why } from "./why.js";

const LATELY = 4;
const TRIES = 20;
const PAUSE = 150;

export async function show(root, here, signal) {
  const talk = { id: here.id, turn: null, busy: false, signal };
  talk.mode = selector(talk);
  talk.facts = facts(talk);
  talk.knows = knows(talk, talk.facts.show);
  talk.asking = questions(talk);
  talk.composer = composer(talk, (body, shown) => send(talk, body, shown));
  talk.history = history(talk, (session, all) => told(talk, session, all));
  talk.asked = (number) => asked(talk.history, number);
  draw(talk, root);
  offer(() => deeds(talk), signal);
  await Promise.all([talk.id ? enter(talk) : welcome(talk), talk.knows.fresh()]);
  on(["session"], (data) => {
    if (data.session !== talk.id || data.state !== "ended") return;
    talk.over = true;
    talk.knows.fresh().catch(complain);
    proceed(talk);
  }, signal);
  // Where fingers type, a focus would bring up a keyboard that nobody asked for.
  if (matchMedia("(hover: hover)").matches && !talk.asking.waits) talk.composer.field.focus({ preventScroll: true });
}

function draw(talk, root) {
  talk.title = el("h1", { class: "small" });
  talk.links = el("p", { class: "meta" });
  talk.head = el("div", { class: "head" }, opener("☰", "Conversations", () => document.getElementById("talks")),
    el("div", { class: "titles" }, talk.title, talk.links), opener("Known", "What Hone knows", () => talk.knows.root));
  talk.said = el("div", { class: "stack" });
  talk.now = el("div", { class: "stack" });
  talk.learned = el("div", { class: "stack", "aria-live": "polite" });
  talk.thread = el("div", { class: "thread", role: "log", tabindex: "0", "aria-label": "Conversation" },
    talk.history.root, talk.said, talk.now, talk.learned);
  talk.thread.addEventListener("scroll", talk.history.scrolled, { passive: true });
  stayAtEnd(talk);
  talk.offers = el("div", { class: "offers" });
  put(root, el("div", { class: "middle" }, talk.head, talk.thread,
    el("div", { class: "dock" }, talk.offers, talk.asking.root, talk.composer.root, talk.facts.root)), talk.knows.root);
}

async function welcome(talk) {
  const [{ sessions }, { changes }, status] = await Promise.all([get("/api/sessions", { limit: LATELY }, talk.signal),
    get("/api/changes", { limit: 4 * LATELY }, talk.signal), get("/api/status", {}, talk.signal), talk.mode.load()]);
  talk.title.classList.remove("small");
  talk.facts.named(status.model);
  put(talk.title, "What shall we do?");
  put(talk.links, "Hone works with you, then looks back over the conversation and keeps what helps next time.");
  put(talk.said, sessions.length ? lately(status, sessions, changes) : start(status, talk.composer.write));
}

async function enter(talk) {
  await Promise.all([talk.history.load(), talk.mode.load()]);
  follow(at("sessions", talk.id, "events"), "", heard(talk), talk.signal);
}

/** The title, and with all of it anew the state. */
function told(talk, session, all) {
  talk.title.classList.add("small");
  put(talk.title, headline(session));
  put(talk.links, el("a", { href: way("sessions", talk.id) }, "Transcript, tree and lessons"));
  put(talk.said);
  if (all) {
    busy(talk, session.busy);
    down(talk, true);
  } else down(talk);
}

function heard(talk) {
  const pass = (kind) => (data) => {
    if (!talk.turn) begin(talk);
    talk.turn[kind](data);
  };
  const live = ["text", "thinking", "restart", "call", "result", "notice"];
  return {
    ...Object.fromEntries(live.map((kind) => [kind, pass(kind)])),
    question: (data) => talk.asking.ask(data),
    answer: (data) => talk.asking.answered(data),
    heard: (data) => {
      busy(talk, true);
      talk.answered = talk.over = false;
      talk.spoken = data.messages;
      begin(talk);
      talk.history.until(data.messages).catch(complain);
    },
    ended: (data) => {
      pass("ended")(data);
      talk.knows.fresh().catch(complain); // the news of all sessions may have come before this one had a name
      talk.turn.offer(talk.spoken ? () => resend(talk, talk.spoken).catch(complain) : null, () => branch(talk).catch(complain),
        (element) => why(talk, element, 0).catch(complain));
      talk.asking.clear();
      busy(talk, false);
      talk.answered = data.stop === "answered";
      if (talk.answered && talk.mode.value === "plan") ask(talk);
      proceed(talk);
    },
    mode: (data) => talk.mode.show(data),
    model: (data) => talk.facts.named(data.model),
    learned: (data) => learn(talk, data).catch(complain),
    reset: () => {
      begin(talk);
      talk.history.load().catch(complain);
    },
  };
}

/** What waits in line goes once the answer is there and its turn is over. */
function proceed(talk) {
  if (!talk.answered || !talk.over) return;
  talk.answered = talk.over = false;
  talk.composer.next();
}

function begin(talk) {
  talk.turn = turn(() => down(talk));
  put(talk.now, talk.turn.root);
  for (const each of [talk.learned, talk.offers]) put(each);
}

function ask(talk) {
  put(talk.offers, plan(talk, (text) => send(talk, { text })));
  down(talk);
}

async function learn(talk, data) {
  const made = await learned(talk, data);
  if (made) talk.learned.append(made);
  down(talk);
}

function busy(talk, state) {
  talk.busy = state;
  talk.thread.setAttribute("aria-busy", String(state));
  talk.composer.busy(state);
}

/** Whether it was taken. `shown` is what stands there meanwhile. */
async function send(talk, body, shown = body.text) {
  busy(talk, true);
  put(talk.offers);
  put(talk.said, frame("user", [words(shown, "user")]));
  down(talk, true);
  try {
    if (talk.id) await patiently(() => post(at("sessions", talk.id, "messages"), body));
    else await open(talk, await post("/api/sessions", { ...body, mode: talk.mode.wanted, model: talk.facts.wanted }));
    return true;
  } catch (error) {
    put(talk.said, el("div", { class: "bad", role: "alert" }, reason(error.message)));
    busy(talk, false);
    return false;
  }
}

// A turn that has just ended may still be putting its things away.
async function patiently(act) {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await act();
    } catch (error) {
      if (error.kind !== "conflict" || !left) throw error;
      await new Promise((done) => setTimeout(done, PAUSE));
    }
  }
}

async function open(talk, begun) {
  talk.id = begun.session;
  window.history.replaceState(null, "", way("chat", talk.id));
  dispatchEvent(new Event("placed")); // what stands beside the page marks where it is
  await enter(talk);
}
