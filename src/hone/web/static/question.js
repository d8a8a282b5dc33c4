// Questions before something dangerous: above the message, always in view, answered with a key or a click.

import { at, post } from "./api.js";
import { el, put } from "./dom.js";
import { action, complain } from "./notices.js";
import { about } from "./tool.js";

const ANSWERS = { once: ["y", "Yes, this once"], session: ["s", "Yes, in this conversation"],
  "any-host": ["h", "Yes, and any host in this conversation"], always: ["a", "Always"], no: ["n", "No"] };
// A key that was meant for the message is no consent: a fresh question waits this long before it takes one.
const CALM = 500;

/** The questions of one conversation. The first one is shown; the others wait behind it. */
export function questions(talk) {
  const root = el("div", { class: "asking", "aria-live": "assertive" });
  let open = [];
  let shown = null;
  let back = null;
  const draw = () => {
    const first = open[0] || null;
    if (first === shown) {
      count();
      return;
    }
    shown = first;
    if (!first) {
      put(root);
      if (back?.isConnected) back.focus({ preventScroll: true });
      back = null;
      return;
    }
    if (!root.contains(document.activeElement)) back = document.activeElement;
    put(root, card(talk, first));
    count();
    if (!writing()) root.querySelector(".question").focus({ preventScroll: true });
  };
  const count = () => {
    const more = root.querySelector(".behind");
    if (more) put(more, open.length > 1 ? `${open.length - 1} more waiting` : "");
  };
  // Somebody who is in the middle of a sentence keeps the pen; Esc or a click leads to the question.
  const writing = () => document.activeElement?.matches("textarea, input") && document.activeElement.value;
  return {
    root,
    ask: (data) => {
      open = [...open.filter((each) => each.id !== data.id), { ...data, since: performance.now() }];
      draw();
    },
    answered: (data) => {
      open = open.filter((each) => each.id !== data.id);
      draw();
    },
    clear: () => {
      open = [];
      draw();
    },
    focus: () => root.querySelector(".question")?.focus(),
    get waits() {
      return open.length > 0;
    },
  };
}

function card(talk, data) {
  const answer = (word, reason = "") => post(at("sessions", talk.id, "answers"), { question: data.id, answer: word, reason });
  const rules = data.pattern ? data.pattern.split("\n") : [];
  const reason = instead((text) => answer("no", text));
  const press = (event) => {
    if (event.target.matches("input, textarea, pre") && event.key !== "Escape") return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const word = event.key === "Escape" ? "no" : data.choices.find((each) => ANSWERS[each][0] === event.key.toLowerCase());
    if (event.key.toLowerCase() === "r") {
      event.preventDefault();
      reason.querySelector("input").focus();
    }
    if (!word || event.repeat || performance.now() - data.since < CALM) return;
    event.preventDefault();
    event.stopPropagation();
    answer(word).catch(complain);
  };
  const made = el("section", { class: "question", role: "group", tabindex: "-1", "aria-label": "A question to you", on: { keydown: press } },
    el("p", null, el("strong", null, data.text), el("span", { class: "behind meta" })),
    data.detail ? about(data.detail) : null,
    rules.length && data.choices.includes("always") ? el("p", { class: "meta" }, "“Always” adds the rule ",
      rules.map((rule, place) => [place ? ", " : "", el("code", null, rule)])) : null,
    el("p", { class: "acts" }, data.choices.map((word) => choice(word, () => answer(word)))), reason);
  setTimeout(() => made.setAttribute("data-takes-keys", ""), CALM);
  return made;
}

function choice(word, act) {
  const [key, text] = ANSWERS[word];
  const made = action(text, act, word === "no" ? "main" : "");
  made.append(" ", el("kbd", { "aria-hidden": "true" }, key));
  made.setAttribute("aria-keyshortcuts", word === "no" ? "n Escape" : key);
  return made;
}

/** A no with what to do instead, which the model is told. */
function instead(send) {
  const field = el("input", { type: "text", "aria-label": "No, instead", placeholder: "No, instead …", maxlength: 2000 });
  return el("form", { class: "line", on: { submit: (event) => {
    event.preventDefault();
    if (field.value.trim()) send(field.value.trim()).catch(complain);
  } } }, field, el("button", { type: "submit" }, "Say no"));
}
