// A turn while it happens: words as they come, calls as they run, the end.

import { copier } from "./copying.js";
import { button, el, put } from "./dom.js";
import { money, plural, share, short } from "./format.js";
import { growing } from "./markdown.js";
import { folded, frame } from "./message.js";
import { call } from "./tool.js";

const STOPS = { interrupted: "Stopped by you.", budget: "This turn used all the model calls it may make.", stuck: "This turn went in circles.", failed: "This turn failed." };

/** `moved` is called when something was added, so that the view can follow. */
export function turn(moved) {
  const body = el("div", { class: "body" });
  const root = frame("assistant", []);
  root.querySelector(".body").replaceWith(body);
  const calls = new Map();
  let streamed = [];
  let block = null;
  let said = [];

  const add = (element) => {
    body.append(element);
    root.hidden = false;
    moved();
    return element;
  };
  const stream = (kind, text) => {
    if (!block || block.kind !== kind) {
      block = { kind, ...(kind === "text" ? growing(moved) : thought(moved)) };
      add(block.root);
      streamed.push(block.root);
      if (kind === "text") said.push("");
    }
    if (kind === "text") said[said.length - 1] += text;
    block.add(text);
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
      said = [];
      add(el("p", { class: "meta" }, `Trying again: ${data.reason}`));
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
    ended: (data) => {
      const text = said.join("\n\n").trim();
      if (text) root.querySelector("header").append(copier(() => text, "Copy this answer"));
      for (const each of calls.values()) each.leave();
      add(end(data));
    },
    /** What can be done with the answer: ask for another one, ask what shaped it, or branch from it. */
    offer: (again, branch, why) => root.querySelector("header").append(...[
      again ? button("Retry", again, "quiet direct") : null, button("Why", () => why(root), "quiet direct"),
      button("Branch", branch, "quiet direct")].filter(Boolean)),
  };
}

// As often as the screen is drawn, however many pieces come.
function thought(moved) {
  const root = el("div", { class: "thinking" }, folded("Thinking", ""));
  const block = root.querySelector("pre");
  let text = "";
  let due = false;
  const add = (more) => {
    text += more;
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      put(block, text);
      moved();
    });
  };
  return { root, add };
}

function end(data) {
  const usage = data.usage;
  const cached = usage && usage.input ? usage.cached / usage.input : null;
  return el("footer", null, trouble(data), usage && data.calls ? el("p", { class: "meta" },
    `${plural(data.calls, "model call")} · ${short(usage.input + usage.output)} tokens · ${share(cached)} cached · `
    + `cost ${money(usage.cost)}`) : null);
}

function trouble(data) {
  if (data.stop === "answered") return null;
  if (data.stop === "interrupted") return el("p", { class: "stopped" }, STOPS.interrupted);
  return el("p", { class: "bad" }, el("strong", null, STOPS[data.stop] || "This turn ended early."), " ", data.error || "");
}
