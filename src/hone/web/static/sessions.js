// Conversations: the latest first, and what was said in all of them, found by its words.

import { get } from "./api.js";
import { el, put, renew, way } from "./dom.js";
import { begun, called, origin, plural, time } from "./format.js";
import { on } from "./live.js";
import { complain } from "./notices.js";

const PAUSE = 200;
const ROLES = { user: "You", assistant: "Hone", tool: "A tool", itself: "Hone, to itself" };

export async function show(root, here, signal) {
  const chosen = { all: false };
  const list = el("ul", { class: "rows" });
  const found = el("div", { class: "stack" });
  const fresh = async () => {
    const answer = await get("/api/sessions", { ...chosen, limit: 200 }, signal);
    const sessions = answer.sessions.map((each) => ({ ...each, busy: answer.busy.includes(each.session) }));
    renew(list, sessions, (each) => each.session, row);
    list.hidden = found.childElementCount > 0;
    if (!sessions.length) put(list, el("li", { class: "empty" }, "No conversations yet."));
  };
  const again = () => fresh().catch(complain);
  let wanted = "";
  const look = async (query) => {
    wanted = query;
    const answer = query ? await hits(query, chosen.all, signal) : null;
    if (wanted !== query) return; // somebody typed on
    put(found, answer);
    list.hidden = Boolean(query);
  };
  put(root, el("h1", null, "Sessions"),
    el("p", { class: "lead" }, "Every conversation, with its branches and reviews."),
    search(look, chosen, again, here.query.get("q") || ""), found, list);
  if (here.query.get("q")) await look(here.query.get("q"));
  await fresh();
  on(["session", "reset"], again, signal);
}

function search(look, chosen, again, query) {
  let due = 0;
  const field = el("input", { type: "search", placeholder: "Search everything that was said", value: query,
    "aria-label": "Search everything that was said", on: { input: () => {
      clearTimeout(due);
      due = setTimeout(start, PAUSE);
    } } });
  const start = () => {
    const words = field.value.trim();
    history.replaceState(null, "", words ? `#/sessions?${new URLSearchParams({ q: words })}` : "#/sessions");
    look(words).catch(complain);
  };
  const all = el("input", { type: "checkbox", on: { change: (event) => {
    chosen.all = event.target.checked;
    again();
    start();
  } } });
  return el("form", { class: "filters", role: "search", on: { submit: (event) => {
    event.preventDefault();
    start();
  } } }, field, el("label", null, all, "include reviews and helpers"));
}

async function hits(query, all, signal) {
  const answer = await get("/api/search", { query, all }, signal);
  if (!answer.hits.length) return el("p", { class: "empty" }, answer.explanation);
  return [el("h2", null, plural(answer.hits.length, "passage")), answer.hits.map(hit)];
}

function hit(each) {
  const to = `${way("sessions", each.session)}?at=${each.passage.number}`;
  return el("article", { class: "hit" },
    el("h3", null, el("a", { href: to }, each.title || `A ${origin(each.origin)}`),
      el("span", { class: "meta" }, " · ", time(each.passage.at))),
    [each.before, each.passage, each.after].filter(Boolean).map((part) =>
      el("p", { class: part === each.passage ? "passage" : "beside" },
        el("span", { class: "who" }, ROLES[part.itself ? "itself" : part.role] || part.role),
        part.pieces.map(([text, fits]) => fits ? el("mark", null, text) : text))),
    el("p", { class: "meta" }, `message ${each.passage.number}`));
}

function row(session) {
  const busy = session.busy ? el("span", { class: "mark at-work" }, "at work") : null;
  const kind = session.origin === "user" ? null : el("span", { class: "mark" }, origin(session.origin));
  return el("li", null, el("a", { href: way("sessions", session.session) },
    el("span", { class: "title" }, called(session)),
    session.title && session.opening ? el("span", { class: "about" }, begun(session.opening)) : null,
    el("span", { class: "meta" }, busy, kind, session.parent ? el("span", { class: "mark" }, "branch") : null,
      ` ${plural(session.messages, "message")} · `, time(session.updated))));
}
