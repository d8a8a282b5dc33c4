// A turn while it happens: words as they come, calls as they run, questions, the end.

import { at, post } from "./api.js";
import { el, put } from "./dom.js";
import { money, plural, share, short } from "./format.js";
import { call, folded, frame, words } from "./message.js";
import { action, complain } from "./notices.js";

const ANSWERS = { once: "Yes, this once", session: "Yes, in this conversation",
  "any-host": "Yes, and any host in this conversation", always: "Always", no: "No" };
const STOPS = { interrupted: "Interrupted.", budget: "The budget of this turn is spent.", stuck: "This turn went in circles.", failed: "This turn failed." };

/** `moved` is called when something was added, so that the view can follow. */
export function turn(session, moved) {
  const body = el("div", { class: "body" });
  const root = frame("assistant", []);
  root.querySelector(".body").replaceWith(body);
  const calls = new Map();
  const questions = new Map();
  let streamed = [];
  let block = null;

  const add = (element) => {
    body.append(element);
    root.hidden = false;
    moved();
    return element;
  };
  const stream = (kind, text) => {
    if (!block || block.kind !== kind) {
      block = { kind, text: "", element: add(el("div", { class: kind })) };
      streamed.push(block.element);
    }
    block.text += text;
    paint(block, moved);
  };
  root.hidden = true;

  return {
    root,
    text: (data) => stream("text", data.text),
    thinking: (data) => stream("thinking", data.text),
    restart: (data) => {
      for (const each of streamed) each.remove();
      streamed = [];
      block = null;
      add(el("p", { class: "meta" }, `Once more: ${data.reason}`));
    },
    call: (data) => {
      streamed = [];
      block = null;
      calls.set(data.id, add(call(data)));
    },
    result: (data) => {
      calls.get(data.id)?.finish(data);
      moved();
    },
    notice: (data) => add(el("p", { class: "meta" }, data.text)),
    question: (data) => questions.set(data.id, add(question(session, data))),
    answer: (data) => questions.get(data.id)?.remove(),
    ended: (data) => add(end(data)),
  };
}

// As often as the screen is drawn, however many pieces come.
function paint(block, moved) {
  if (block.due) return;
  block.due = true;
  requestAnimationFrame(() => {
    block.due = false;
    if (block.kind === "text") put(block.element, words(block.text, "assistant"));
    else if (block.element.firstChild) put(block.element.querySelector("pre"), block.text);
    else put(block.element, folded("Thinking", block.text));
    moved();
  });
}

function question(session, data) {
  const answer = (word, reason = "") => post(at("sessions", session, "answers"), { question: data.id, answer: word, reason });
  const rules = data.pattern ? data.pattern.split("\n") : [];
  return el("section", { class: "question", role: "group", "aria-label": "A question to you" },
    el("p", null, el("strong", null, data.text)),
    data.detail ? el("pre", { class: "plain", tabindex: "0" }, data.detail) : null,
    rules.length ? el("p", { class: "meta" }, "“Always” adds: ", rules.map((rule, at) => [at ? ", " : "", el("code", null, rule)])) : null,
    el("p", { class: "acts" }, data.choices.map((word) =>
      action(ANSWERS[word], () => answer(word), word === "no" ? "main" : ""))),
    because((reason) => answer("no", reason)));
}

/** A no with a sentence that the model is told. */
function because(send) {
  const field = el("input", { type: "text", "aria-label": "No, because", placeholder: "No, because …", maxlength: 2000 });
  return el("form", { class: "line", on: { submit: (event) => {
    event.preventDefault();
    if (field.value.trim()) send(field.value.trim()).catch(complain);
  } } }, field, el("button", { type: "submit" }, "Say no"));
}

function end(data) {
  const usage = data.usage;
  const trouble = data.stop === "answered" ? null : el("p", { class: "bad" }, STOPS[data.stop], " ", data.error || "");
  const cached = usage && usage.input ? usage.cached / usage.input : null;
  return el("footer", null, trouble, usage ? el("p", { class: "meta" },
    `${plural(data.calls, "model call")} · ${short(usage.input + usage.output)} tokens · ${share(cached)} cached · `
    + `cost ${money(usage.cost)}`) : null);
}
