// The mode of a conversation: how much is done without a question, and what becomes of a plan.

import { at, get, post } from "./api.js";
import { el, put } from "./dom.js";
import { action, complain, say } from "./notices.js";

export const MODES = ["ask", "auto", "plan", "full"];

/** A choice of mode beside the message. Of a new conversation, `wanted` is what goes with its first message. */
export function selector(talk) {
  const select = el("select", { "aria-label": "Mode", on: { change: () => choose().catch(complain) } });
  const mode = { root: select, value: "", wanted: null, goAhead: "" };
  const choose = async () => {
    if (!talk.id) mode.wanted = select.value;
    mode.show(talk.id ? await post(at("sessions", talk.id, "mode"), { mode: select.value }) : { mode: select.value });
    if (mode.value === "full") say("Mode full: Hone works without asking.");
  };
  mode.choose = async (name) => {
    select.value = name;
    await choose();
  };
  mode.load = async () => mode.show(await get(talk.id ? at("sessions", talk.id, "mode") : "/api/modes", {}, talk.signal));
  mode.show = (data) => {
    if (data.modes) put(select, data.modes.map((each) => el("option", { value: each.mode, title: each.meaning }, each.mode)));
    mode.goAhead = data.go_ahead || mode.goAhead;
    mode.value = select.value = data.mode;
    select.title = select.selectedOptions[0]?.title || "";
  };
  return mode;
}

/** What is asked at the end of a plan. `carry` sends the owner's words. */
export function plan(talk, carry) {
  const go = (mode) => async () => {
    talk.mode.show(await post(at("sessions", talk.id, "mode"), { mode }));
    box.remove();
    await carry(talk.mode.goAhead);
  };
  const box = el("section", { class: "question", role: "group", "aria-label": "The plan" },
    el("p", null, el("strong", null, "Carry out this plan?")),
    el("p", { class: "acts" }, action("Work in auto mode", go("auto")), action("Ask before each change", go("ask")),
      action("Keep planning", () => box.remove(), "main")));
  return box;
}
