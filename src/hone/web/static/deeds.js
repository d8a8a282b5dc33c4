// What the chat can do by name: in the palette (Ctrl-K) and after a slash.

import { branch, edit, resend, rewind } from "./again.js";
import { at, post } from "./api.js";
import { copy } from "./copying.js";
import { el } from "./dom.js";
import { open } from "./drawers.js";
import { MODES } from "./mode.js";
import { complain, say } from "./notices.js";
import { why } from "./why.js";

export function deeds(talk) {
  const last = talk.history.stored.findLast((each) => each.role === "user" && !each.template);
  const answer = () => [...talk.thread.querySelectorAll(".said.assistant .copy[aria-label^='Copy']")].at(-1);
  const modes = MODES.map((mode) => ({ name: `Mode: ${mode}`, about: "how much Hone does without asking", hidden: true, run: () => talk.mode.choose(mode).catch(complain) }));
  const general = [
    { slash: "new", name: "New conversation", about: "begin another conversation", hidden: true, run: () => { location.hash = "#/chat"; } },
    { slash: "model", name: "Change the model", about: "choose a model for this conversation", run: () => talk.facts.choose().catch(complain) },
    { slash: "known", name: "What Hone knows", about: "journal and skills in this conversation", run: () => open(talk.knows.root) },
    ...modes,
  ];
  if (!talk.id) return general;
  return [
    ...(talk.busy ? [{ name: "Stop the answer", keys: "Esc", run: () => post(at("sessions", talk.id, "interrupt")).catch(complain) }] : []),
    ...(last && !talk.busy ? [
      { slash: "retry", name: "Retry", about: "ask for another answer to your last message", run: () => resend(talk, last.number).catch(complain) },
      { slash: "edit", name: "Edit the last message", about: "change your last message and send it again", run: () => change(talk, last) },
      { slash: "rewind", name: "Rewind", about: "take back files or conversation to before your last message", run: () => rewind(talk, last.number).catch(complain) },
    ] : []),
    { slash: "why", name: "Why", about: "what Hone knows that shaped the last answer", run: () => explain(talk).catch(complain) },
    { slash: "branch", name: "Branch", about: "a new conversation that shares this one", run: () => branch(talk).catch(complain) },
    { slash: "copy", name: "Copy the last answer", about: "to the clipboard", run: () => (answer() ? answer().click() : copy("")) },
    { slash: "review", name: "Look back now", about: "let Hone look for lessons now", run: () => review(talk).catch(complain) },
    ...general,
  ];
}

async function explain(talk) {
  const last = [...talk.thread.querySelectorAll(".said.assistant")].filter((each) => !each.hidden).at(-1);
  if (last) await why(talk, last, 0);
}

function change(talk, last) {
  const element = talk.thread.querySelector(`.said.user[data-number="${last.number}"]`);
  const text = last.parts.filter((part) => part.kind === "text").map((part) => part.text).join("\n\n");
  if (element) edit(talk, element, last, text);
}

async function review(talk) {
  await post(at("sessions", talk.id, "review"), {});
  say("A review is queued.", el("a", { href: "#/reviews" }, "See the queue"));
}
