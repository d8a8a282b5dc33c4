// A transcript in windows: around the message that is wanted, further ones when somebody asks for them.

import { at, get } from "./api.js";
import { button, el } from "./dom.js";
import { answers, itself, message } from "./message.js";
import { complain } from "./notices.js";

const WINDOW = 80;
const BEFORE = 20;

/** `own` is the last message that somebody said; what is asked after it, Hone asks itself. `made` hears each window. */
export function transcript(id, own, made, signal) {
  const log = el("div", { class: "thread stack" });
  const state = { stored: [], total: 0 };
  const ask = (query) => get(at("sessions", id), query, signal);
  const first = () => state.stored[0]?.number ?? 1;
  const last = () => state.stored.at(-1)?.number ?? 0;
  const elements = (some) => {
    const results = answers(state.stored);
    const built = some.map((each) => (each.role === "user" && each.number > own() ? itself(each) : message(each, results))).filter(Boolean);
    for (const each of built) made(each);
    return built;
  };
  const limits = () => {
    earlier.hidden = first() <= 1;
    later.hidden = last() >= state.total;
  };
  const back = async () => {
    const from = Math.max(1, first() - WINDOW);
    const { messages } = await ask({ from, limit: first() - from });
    state.stored = [...messages, ...state.stored];
    log.prepend(...elements(messages));
    limits();
  };
  const forth = async () => {
    const { messages, total } = await ask({ from: last() + 1, limit: WINDOW });
    state.total = total;
    state.stored = [...state.stored, ...messages];
    log.append(...elements(messages));
    limits();
  };
  const earlier = button("Earlier messages", () => back().catch(complain));
  const later = button("Later messages", () => forth().catch(complain));
  /** The conversation with its first window: around message `wanted`, or the beginning. */
  const begin = async (wanted) => {
    const from = Math.max(1, (wanted || 1) - BEFORE);
    const session = await ask({ from, limit: WINDOW });
    state.stored = session.messages;
    state.total = session.total;
    if (from > 1 && !session.title) session.opening = (await ask({ from: 1, limit: 3 })).messages;
    return session;
  };
  const draw = () => {
    log.replaceChildren(...elements(state.stored));
    limits();
  };
  return { root: el("div", { class: "stack" }, earlier, log, later), log, begin, draw, forth: () => (later.hidden ? forth() : null) };
}
