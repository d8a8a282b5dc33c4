// Everything that can be done, by name (Ctrl-K), and the keys (?). A view adds what it can do while it is shown.

import { get, post } from "./api.js";
import { button, el, way } from "./dom.js";
import { called } from "./format.js";
import { complain } from "./notices.js";
import { pick } from "./picker.js";

const PAGES = [["chat", "New conversation", ""], ["learning", "Learning", "what changed, what waits"], ["journal", "Journal", "what Hone knows"],
  ["skills", "Skills", "how Hone does things"], ["sessions", "Sessions", "all conversations and their branches"],
  ["reviews", "Reviews", "what Hone looks back over"], ["figures", "Usage", "tokens and cost"], ["payback", "Payback", "what each lesson cost and saved"],
  ["curator", "Curator", "unused and overlapping skills"], ["permissions", "Permissions", "what Hone may do without asking"],
  ["templates", "Templates", "examples for new conversations"], ["experiments", "Experiments", "whether a lesson helps"],
  ["backends", "Memory backends", "copies of what Hone knows"], ["team", "Team", "what colleagues share"], ["access", "Access", "signed-in browsers"]];
const KEYS = [["Ctrl K", "Everything that can be done, by name"], ["/", "A command or a skill; elsewhere: search"], ["?", "This list"],
  ["Enter", "Send; during an answer, queue it"], ["Shift Enter", "A new line"], ["Esc", "Stop the answer; close what is open"],
  ["y s a n r", "Answer a question: once, in this conversation, always, no, no with a reason"],
  ["j k", "Learning: the next lesson, the one before"], ["a x u e", "Learning: approve, reject, undo, show the evidence"],
  ["Alt N", "A new conversation"]];
const sources = new Set();

/** Adds what `list` gives, as long as `signal` holds. */
export function offer(list, signal) {
  sources.add(list);
  signal.addEventListener("abort", () => sources.delete(list));
}

/** What the shown view offers, each with the word after the slash. */
export function commands() {
  return [...sources].flatMap((list) => list());
}

export function palette() {
  const go = (hash) => () => {
    location.hash = hash;
  };
  const pages = PAGES.map(([page, name, about]) => ({ name, about, run: go(`#/${page}`), keys: page === "chat" ? "Alt N" : "" }));
  const rest = [{ name: "Keys", about: "all of them", keys: "?", run: help }, { name: "Sign out", about: "this browser", run: () => leave().catch(complain) }];
  return pick("What do you want to do?", [...commands(), ...pages, ...rest], further);
}

async function further() {
  const [{ sessions }, { skills }] = await Promise.all([get("/api/sessions", { limit: 100 }), get("/api/skills", { limit: 200 })]);
  return [
    ...sessions.map((each) => ({ name: called(each), about: "conversation", run: () => {
      location.hash = way("chat", each.session);
    } })),
    ...skills.map((each) => ({ name: each.name, about: `skill: ${each.description}`, run: () => {
      location.hash = way("skills", each.name);
    } })),
  ];
}

async function leave() {
  await post("/api/logout");
  location.reload();
}

export function help() {
  const dialog = el("dialog", { class: "picker help", "aria-labelledby": "help-title" },
    el("h2", { id: "help-title" }, "Keys"), el("dl", null, KEYS.map(([keys, text]) => el("div", null,
      el("dt", null, keys.split(" ").map((key) => [el("kbd", null, key), " "])), el("dd", null, text)))),
    el("p", { class: "acts" }, button("Close", () => dialog.close(), "main")));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
}

/** Keys that hold everywhere. `slash` is what / does outside a field. */
export function listen(slash) {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) palette();
      return;
    }
    if (event.altKey && event.code === "KeyN") {
      event.preventDefault();
      location.hash = "#/chat";
      return;
    }
    const typing = event.target.matches?.("input, textarea, select, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "?" || event.key === "/") {
      event.preventDefault();
      if (event.key === "?") help();
      else slash();
    }
  });
}
