// The chat: a conversation as it goes on, and what is learned from it.

import { at, get, post } from "./api.js";
import { card } from "./change.js";
import { el, put, renew, way } from "./dom.js";
import { called, headline, time } from "./format.js";
import { follow } from "./live.js";
import { frame, messages, words } from "./message.js";
import { plan, selector } from "./mode.js";
import { action, complain } from "./notices.js";
import { pictures } from "./pictures.js";
import { turn } from "./turn.js";

const MOST = 200;
const RECENT = 6;
const NEAR = 160;
const SKILL = /^\/([a-z0-9-]+)(?:\s+([\s\S]*))?$/;

export async function show(root, here, signal) {
  const talk = { id: here.id, stored: [], turn: null, busy: false, signal };
  talk.mode = selector(talk);
  talk.head = el("div", { class: "head" });
  talk.log = el("div", { class: "log stack" });
  talk.said = el("div", { class: "stack" });
  talk.now = el("div", { class: "stack" });
  talk.learned = el("div", { class: "stack", "aria-live": "polite" });
  talk.thread = el("div", { class: "thread", role: "log", "aria-label": "Conversation" },
    talk.log, talk.said, talk.now, talk.learned);
  put(root, talk.head, talk.thread, composer(talk));
  if (talk.id) await enter(talk);
  else await welcome(talk);
  // Where fingers type, a focus would bring up a keyboard that nobody asked for.
  if (matchMedia("(hover: hover)").matches) root.querySelector("textarea").focus({ preventScroll: true });
}

async function welcome(talk) {
  const [{ sessions }, { trouble }] = await Promise.all([
    get("/api/sessions", { limit: RECENT }, talk.signal), get("/api/status", {}, talk.signal), talk.mode.load()]);
  put(talk.head, el("h1", null, "What shall we do?"),
    el("p", { class: "lead" }, "Hone works with you, and afterwards looks back for what is worth keeping."));
  put(talk.log, trouble ? el("p", { class: "panel plain" }, trouble) : null, sessions.length ? el("section", { class: "recent" }, el("h2", null, "Recent"),
    el("ul", { class: "rows" }, sessions.map((each) => el("li", null,
      el("a", { href: way("chat", each.session) }, el("span", { class: "title" }, called(each)),
        el("span", { class: "meta" }, time(each.updated))))))) : null);
}

async function enter(talk) {
  await Promise.all([load(talk), talk.mode.load()]);
  follow(at("sessions", talk.id, "events"), "", heard(talk), talk.signal);
}

/** What is stored, up to a message; what comes after it is shown while it happens. */
async function load(talk, upto = Infinity) {
  if (talk.stored.length < upto || upto === Infinity) {
    const session = await get(at("sessions", talk.id), {}, talk.signal);
    talk.stored = session.messages;
    title(talk, session);
    if (upto === Infinity) busy(talk, session.busy);
  }
  const part = talk.stored.filter((each) => each.number <= upto);
  put(talk.log, part.length > MOST ? el("p", { class: "meta" },
    el("a", { href: way("sessions", talk.id) }, `The first ${part.length - MOST} messages are in the transcript.`)) : null,
    messages(part).slice(-MOST));
  put(talk.said);
  down(talk, true);
}

function title(talk, session) {
  put(talk.head, el("h1", { class: "small" }, headline(session)),
    el("p", { class: "meta" }, el("a", { href: way("sessions", talk.id) }, "Transcript and tree"), " · ",
      el("a", { href: "#/chat" }, "New conversation")));
}

function heard(talk) {
  const pass = (kind) => (data) => {
    if (!talk.turn) begin(talk);
    talk.turn[kind](data);
  };
  const live = ["text", "thinking", "restart", "call", "result", "notice", "question", "answer"];
  return {
    ...Object.fromEntries(live.map((kind) => [kind, pass(kind)])),
    heard: (data) => {
      busy(talk, true);
      begin(talk);
      load(talk, data.messages).catch(complain);
    },
    ended: (data) => {
      pass("ended")(data);
      busy(talk, false);
      if (data.stop === "answered" && talk.mode.value === "plan") offer(talk);
    },
    mode: (data) => talk.mode.show(data),
    learned: (data) => learn(talk, data).catch(complain),
    reset: () => {
      begin(talk);
      load(talk).catch(complain);
    },
  };
}

function begin(talk) {
  talk.turn = turn(talk.id, () => down(talk));
  put(talk.now, talk.turn.root);
  put(talk.learned);
}

function offer(talk) {
  talk.now.append(plan(talk, (text) => send(talk, { text })));
  down(talk);
}

/** The line, and beneath it each change with its difference and a way back. */
async function learn(talk, data) {
  const cards = el("div", { class: "cards" });
  const fresh = async () => {
    const changes = await Promise.all(data.changes.map((id) => get(at("changes", id), {}, talk.signal)));
    renew(cards, changes, (each) => each.id, (each, old) => card(each, () => fresh().catch(complain), old));
  };
  await fresh();
  const lines = (data.line || "").split("\n").map((line) => line.replace(/ (· (undo \d+|log)|\(pending\))$/, ""));
  const told = lines.map((line) => el("p", { class: "line" }, line));
  if (data.changes.length) talk.learned.append(el("section", { class: "learned" }, told, cards));
  down(talk);
}

function busy(talk, state) {
  talk.busy = state;
  talk.thread.setAttribute("aria-busy", String(state));
  talk.send.hidden = state;
  talk.stop.hidden = !state;
}

function composer(talk) {
  const text = el("textarea", { rows: "1", "aria-label": "Message", placeholder: "Write to Hone",
    on: { keydown: (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    } } });
  talk.pictures = pictures(text);
  talk.send = el("button", { type: "submit", class: "main" }, "Send");
  talk.stop = action("Stop", () => post(at("sessions", talk.id, "interrupt")));
  talk.stop.hidden = true;
  const form = el("form", { class: "composer", on: { submit: (event) => {
    event.preventDefault();
    if (!talk.busy && text.value.trim()) say(talk, text).catch(complain);
  } } }, text, talk.pictures.root, talk.mode.root, talk.send, talk.stop);
  return form;
}

async function say(talk, field) {
  const [draft, images] = [field.value, talk.pictures.take()];
  field.value = "";
  if (await send(talk, { ...spoken(draft), images }, draft)) return;
  field.value = draft;
  talk.pictures.hold(images);
}

/** Whether it was taken. `shown` is what stands there meanwhile. */
async function send(talk, body, shown = body.text) {
  busy(talk, true);
  put(talk.said, frame("user", [words(shown, "user")]));
  if (!talk.id) put(talk.log);
  down(talk, true);
  try {
    if (talk.id) await post(at("sessions", talk.id, "messages"), body);
    else await open(talk, await post("/api/sessions", { ...body, mode: talk.mode.wanted }));
    return true;
  } catch (error) {
    put(talk.said, el("p", { class: "bad plain", role: "alert" }, error.message));
    busy(talk, false);
    return false;
  }
}

async function open(talk, begun) {
  talk.id = begun.session;
  history.replaceState(null, "", way("chat", talk.id));
  await enter(talk);
}

/** A message that begins with /name goes with that skill. */
function spoken(text) {
  const found = SKILL.exec(text.trim());
  return found ? { text: found[2] || `Use the skill ${found[1]}.`, skills: [found[1]] } : { text };
}

function down(talk, force = false) {
  const rest = document.documentElement.scrollHeight - innerHeight - scrollY;
  if (force || rest < NEAR + talk.thread.lastChild.offsetHeight) scrollTo({ top: document.documentElement.scrollHeight });
}
