// The stored messages of a conversation, in windows: the last ones first, earlier ones when somebody looks for them.

import { equip } from "./again.js";
import { at, get } from "./api.js";
import { button, el, put } from "./dom.js";
import { answers, message } from "./message.js";

const WINDOW = 16;
const TOP = 1200;

/** `shown` hears what is known of the conversation, and whether this is all of it anew. */
export function history(talk, shown) {
  const log = el("div", { class: "log stack" });
  const earlier = button("Earlier messages", () => back().catch(() => {}), "quiet earlier");
  earlier.hidden = true;
  const own = { root: el("div", { class: "stack" }, earlier, log), stored: [], last: 0 };
  const ask = (query) => get(at("sessions", talk.id), query, talk.signal);
  let busy = null;

  /** Makes elements; they are ready when their Markdown is read. */
  const make = async (every) => {
    const results = answers(own.stored);
    const made = every.map((each) => {
      const element = message(each, results);
      if (element && ends(each, own.stored)) equip(talk, element, each, begins(each, own.stored));
      return element;
    }).filter(Boolean);
    await Promise.all(made.flatMap((each) => [...each.querySelectorAll(".prose")].map((prose) => prose.ready)));
    return made;
  };
  const first = () => own.stored[0]?.number ?? 1;

  /** The last messages, or those up to one: what comes after it is shown while it happens. */
  own.load = async (upto = Infinity) => {
    const whole = upto === Infinity;
    const session = await ask(whole ? { limit: WINDOW } : { from: Math.max(1, upto - WINDOW + 1), limit: WINDOW });
    own.stored = session.messages.filter((each) => each.number <= upto);
    own.last = own.stored.at(-1)?.number || 0;
    own.opening = first() > 1 && !session.title ? (await ask({ from: 1, limit: 3 })).messages : session.messages;
    put(log, block(await make(own.stored)));
    earlier.hidden = first() <= 1;
    own.told = session;
    shown({ ...session, messages: own.opening }, whole);
  };

  /** Takes away what comes after a message: it is about to be shown as it happened. */
  const cut = (upto) => {
    own.stored = own.stored.filter((each) => each.number <= upto);
    own.last = upto;
    for (const each of [...log.querySelectorAll(".said")]) if (Number(each.dataset.number) > upto) each.remove();
  };

  /** What came up to message `upto`. Where notes have taken the place of older messages, it is read anew. */
  own.until = async (upto) => {
    const shorter = own.stored.length && upto < own.last && upto >= first();
    if (shorter) cut(upto);
    await busy;
    busy = (async () => {
      if (shorter) {
        const { messages: [same] } = await ask({ from: upto, limit: 1 });
        return same?.hash === own.stored.at(-1)?.hash ? shown({ ...(own.told || {}), messages: own.opening }, false) : own.load(upto);
      }
      if (!own.stored.length || upto < own.last || upto - own.last > WINDOW) return own.load(upto);
      if (upto === own.last) return null;
      const session = await ask({ from: own.last + 1, limit: upto - own.last });
      own.stored = [...own.stored, ...session.messages];
      own.last = upto;
      log.append(...block(await make(session.messages)));
      return shown({ ...session, messages: own.opening }, false);
    })();
    return busy;
  };

  const back = async () => {
    if (earlier.disabled || first() <= 1) return;
    earlier.disabled = true;
    try {
      const from = Math.max(1, first() - WINDOW);
      const session = await ask({ from, limit: first() - from });
      own.stored = [...session.messages, ...own.stored];
      const made = await make(session.messages);
      const rest = talk.thread.scrollHeight - talk.thread.scrollTop;
      log.prepend(...block(made));
      talk.thread.scrollTop = talk.thread.scrollHeight - rest;
      earlier.hidden = first() <= 1;
    } finally {
      earlier.disabled = false;
    }
  };
  own.scrolled = () => {
    if (!earlier.hidden && talk.thread.scrollTop < TOP) back().catch(() => {});
  };
  return own;
}

/** A window as one element: what is out of view costs no layout, however long the conversation is. */
function block(made) {
  return made.length ? [el("div", { class: "block stack" }, made)] : [];
}

/** Whether a message of the user's began a turn: one that was sent while the agent worked did not. */
function begins(each, stored) {
  if (each.role !== "user" || each.template) return false;
  const before = stored[stored.indexOf(each) - 1];
  return !before || before.role === "assistant";
}

/** Whether a message is the user's, or the last answer of a turn. */
function ends(each, stored) {
  if (each.role === "user") return !each.template;
  const next = stored[stored.indexOf(each) + 1];
  return each.role === "assistant" && (!next || next.role === "user");
}

/** The number of the message that an answer answers; 0 if it is not known. */
export function asked(own, number) {
  return own.stored.findLast((each) => each.number < number && begins(each, own.stored))?.number || 0;
}
