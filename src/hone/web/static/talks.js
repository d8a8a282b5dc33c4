// Conversations, beside every page: by day, found by their words, narrowed to a folder.

import { get } from "./api.js";
import { button, el, put, renew, way } from "./dom.js";
import { called, day, plural } from "./format.js";
import { on } from "./live.js";
import { complain } from "./notices.js";

const STEP = 60;
const MOST = 600;
const PAUSE = 200;
const FOUND = 12;

export function begin(root, signal) {
  const state = { rows: [], limit: STEP, more: false, folder: "", words: "", hits: [] };
  const search = el("input", { type: "search", placeholder: "Search conversations", "aria-label": "Search conversations" });
  const folder = el("select", { "aria-label": "Folder", hidden: true });
  const groups = el("div", { class: "groups" });
  const found = el("div", { class: "groups" });
  const older = button("Show older", () => {
    state.limit = Math.min(state.limit + STEP, MOST);
    again();
  }, "quiet");
  const fresh = async () => {
    const answer = await get("/api/sessions", { limit: state.limit }, signal);
    state.rows = answer.sessions.map((each) => ({ ...each, busy: answer.busy.includes(each.session) }));
    state.more = answer.more && state.limit < MOST;
    draw();
  };
  const again = () => fresh().catch(complain);
  const draw = () => {
    choose(folder, state);
    const fits = state.rows.filter((each) => (!state.folder || each.folder === state.folder) && names(each, state.words));
    by(groups, fits);
    passages(found, state.words ? state.hits : []);
    older.hidden = !state.more || Boolean(state.words);
    mark(root);
    const nothing = state.words ? "Nothing matches." : "Your conversations appear here.";
    put(empty, fits.length || (state.words && state.hits.length) ? "" : nothing);
  };
  const empty = el("p", { class: "empty" });
  const look = async () => {
    const words = state.words;
    const hits = words ? (await get("/api/search", { query: words, limit: FOUND }, signal)).hits : [];
    if (words !== state.words) return; // somebody typed on
    state.hits = hits;
    draw();
  };
  let due = 0;
  search.addEventListener("input", () => {
    state.words = search.value.trim();
    draw();
    clearTimeout(due);
    due = setTimeout(() => look().catch(complain), PAUSE);
  });
  folder.addEventListener("change", () => {
    state.folder = folder.value;
    draw();
  });
  root.addEventListener("keydown", step);
  put(root, el("a", { class: "button new", href: "#/chat", "aria-keyshortcuts": "Alt+N" }, "New conversation"),
    el("form", { role: "search", "aria-label": "Conversations", on: { submit: (event) => event.preventDefault() } }, search, folder),
    el("div", { class: "list" }, groups, found, empty, older));
  for (const kind of ["hashchange", "placed"]) addEventListener(kind, () => mark(root));
  on(["session", "reset"], again, signal);
  return { fresh, focus: () => search.focus() };
}

function names(each, words) {
  if (!words) return true;
  const text = `${each.title} ${each.opening}`.toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function choose(select, state) {
  const every = [...new Set(state.rows.map((each) => each.folder).filter(Boolean))].sort();
  select.hidden = every.length < 2;
  put(select, [["", "All folders"], ...every.map((each) => [each, each.split("/").pop() || each])]
    .map(([value, text]) => el("option", { value, title: value, selected: value === state.folder }, text)));
}

function by(groups, rows) {
  const days = new Map();
  for (const each of rows) days.set(day(each.updated), [...(days.get(day(each.updated)) || []), each]);
  renew(groups, [...days].map(([name, own]) => ({ name, own })), ({ name }) => name, ({ name, own }, old) => {
    const made = old || el("section", null, el("h2", null, name), el("ul"));
    renew(made.querySelector("ul"), own, (each) => each.session, row);
    return made;
  });
}

function row(each) {
  const facts = `${plural(each.messages, "message")}${each.parent ? ", a branch" : ""}`;
  return el("li", null, el("a", { href: way("chat", each.session), "data-session": each.session, title: `${called(each)}\n${facts}` },
    each.parent ? el("span", { class: "soft", title: "A branch" }, "↳ ") : null, called(each),
    each.busy ? el("span", { class: "working" }, el("span", { class: "unseen" }, " (at work)")) : null));
}

function passages(found, hits) {
  put(found, hits.length ? el("section", null, el("h2", null, "Said in"), el("ul", null, hits.map((hit) => el("li", null,
    el("a", { href: `${way("sessions", hit.session)}?at=${hit.passage.number}` }, hit.title || "A conversation",
      el("span", { class: "about" }, hit.passage.pieces.map(([text, fits]) => (fits ? el("mark", null, text) : text))))))))
    : null);
}

function mark(root) {
  const here = /^#\/chat\/([^?]+)/.exec(location.hash)?.[1];
  for (const link of root.querySelectorAll("a[data-session]")) {
    if (here && link.dataset.session === decodeURIComponent(here)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Up and down lead from one to the next. */
function step(event) {
  if (!["ArrowDown", "ArrowUp"].includes(event.key) || event.target.matches("select")) return;
  const links = [...event.currentTarget.querySelectorAll(".list a")];
  const next = links[links.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)];
  if (!next && event.target.matches(".list a")) return;
  event.preventDefault();
  (next || links[0])?.focus();
}
