// A new conversation: in an empty home what to try, what Hone would learn from it, and how to connect a model; later what was lately.

import { button, el, way } from "./dom.js";
import { called, lesson, time } from "./format.js";
import { reason } from "./notices.js";

const LATELY = 4;
const TRY = [
  ["Summarize this folder for a newcomer, in five short lines. I like short answers.",
    "How you like to be answered, with your own words as the evidence. The next conversation starts with it."],
  ["Find the command that runs the tests here, run it, and tell me what fails.",
    "The test command, for this folder only. Hone will not ask or search again."],
  ["Write release notes from the last ten commits: one line per change, the ticket in front.",
    "A skill with the steps, once the way of working is clear. Next time one sentence is enough."],
];

/** What an empty home shows. `write` puts a text into the message. */
export function start(status, write) {
  return el("div", { class: "start" },
    status.model ? null : connect(status.trouble),
    el("section", { "aria-label": "Three things to try" }, el("h2", null, "Three things to try"),
      el("ul", { class: "tries" }, TRY.map(([text, learns]) => el("li", { class: "panel" },
        el("p", null, `“${text}”`), el("p", { class: "meta" }, el("strong", null, "Hone would learn: "), learns),
        el("p", { class: "acts" }, named(button("Use this", () => write(text)), `Use this: ${text}`)))))),
    el("p", { class: "meta" }, "A lesson appears on the right as soon as it is learned. You can edit it, undo it, or approve it first."),
    status.model ? el("p", { class: "meta" }, "Model: ", el("code", null, status.model), ". To connect another one, run ",
      el("code", null, "hone setup"), " in a terminal.") : null);
}

/** What somebody who comes back may look for. */
export function lately(status, sessions, changes) {
  const held = changes.filter((each) => each.standing === "active" && each.contents.length && !each.fate.startsWith("undone") && each.deed !== "undo").slice(0, LATELY);
  const row = (href, title, at, mark = null) => el("li", null, el("a", { href }, el("span", { class: "title" }, mark, title), el("span", { class: "meta" }, time(at))));
  return el("div", { class: "start" }, status.model ? null : connect(status.trouble), el("div", { class: "lately" },
    el("section", null, el("h2", null, "Continue"), el("ul", { class: "rows" }, sessions.map((each) => row(way("chat", each.session), called(each), each.updated, each.parent ? el("span", { class: "soft", title: "A branch" }, "↳ ") : null)))),
    held.length ? el("section", null, el("h2", null, "Learned lately"),
      el("ul", { class: "rows" }, held.map((each) => row(way("learning", each.id), lesson(each), each.at)))) : null));
}

function named(made, name) {
  made.setAttribute("aria-label", name);
  return made;
}

function connect(trouble) {
  return el("section", { class: "panel connect", "aria-label": "Connect a model" }, el("h2", null, "Connect a model"),
    el("ol", null, el("li", null, "In a terminal, run ", el("code", null, "hone setup"), ". It finds keys and local servers and tries the one you choose."),
      el("li", null, "Or set a key, such as ", el("code", null, "ANTHROPIC_API_KEY"), " or ", el("code", null, "OPENAI_API_KEY"),
        ", and start ", el("code", null, "hone serve"), " again."),
      el("li", null, "Or start a local server such as Ollama. Hone finds it by itself.")),
    trouble ? reason(trouble).findLast(Boolean) : null);
}
