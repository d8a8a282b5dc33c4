// A conversation and what grew from it, drawn: each session a row, joined to the one it came from.

import { el, put, svg, way } from "./dom.js";
import { called, origin, plural, time } from "./format.js";

const ROW = 56;
const STEP = 26;
const LEFT = 16;
const LETTER = 7.7;
const SMALL = 6.6;

export function tree(data, current, signal) {
  const rows = ordered(data.sessions);
  const drawing = el("div", { class: "drawing" });
  const draw = () => put(drawing, picture(rows, current, Math.max(drawing.clientWidth, 260)));
  const watch = new ResizeObserver(draw);
  watch.observe(drawing);
  signal.addEventListener("abort", () => watch.disconnect());
  return el("figure", { class: "panel" }, drawing, el("details", null, el("summary", null, "As a table"), table(rows)));
}

/** Depth first, the oldest first. */
function ordered(sessions) {
  const known = new Set(sessions.map((each) => each.session));
  const below = new Map();
  for (const each of [...sessions].sort((a, b) => a.created.localeCompare(b.created))) {
    const parent = known.has(each.parent) ? each.parent : "";
    below.set(parent, [...(below.get(parent) || []), each]);
  }
  const rows = [];
  const walk = (parent, depth, over) => {
    for (const session of below.get(parent) || []) {
      const row = { session, depth, over, at: rows.length };
      rows.push(row);
      walk(session.session, depth + 1, row);
    }
  };
  walk("", 0, null);
  return rows;
}

function picture(rows, current, width) {
  const height = rows.length * ROW;
  return svg("svg", { class: "tree", role: "group", width, height, viewBox: `0 0 ${width} ${height}`,
    "aria-label": "The tree of this conversation" },
    svg("title", null, "The tree of this conversation"),
    svg("desc", null, rows.map((row) => sentence(row)).join(" ")),
    rows.filter((row) => row.over).map(edge), rows.map((row) => node(row, current, width)));
}

function spot(row) {
  return { x: LEFT + row.depth * STEP, y: row.at * ROW + ROW / 2 };
}

function edge(row) {
  const from = spot(row.over);
  const to = spot(row);
  const bend = `M${from.x} ${from.y} V${to.y - 14} Q${from.x} ${to.y} ${from.x + 14} ${to.y} H${to.x}`;
  return svg("path", { class: `edge ${row.session.origin}`, d: bend });
}

function node(row, current, width) {
  const { x, y } = spot(row);
  const room = width - x - 28;
  const here = row.session.session === current;
  return svg("a", { href: way("sessions", row.session.session), class: here ? "node here" : "node",
    "aria-current": here ? "true" : null },
    svg("rect", { class: "field", x: x + 14, y: y - ROW / 2 + 3, width: Math.max(width - x - 16, 20), height: ROW - 6, rx: 8 }),
    svg("circle", { class: row.session.origin, cx: x, cy: y, r: here ? 8 : 6 }),
    svg("text", { class: "name", x: x + 24, y: y - 4 }, cut(name(row.session), Math.floor(room / LETTER))),
    svg("text", { class: "fact", x: x + 24, y: y + 15 }, cut(fact(row), Math.floor(room / SMALL))));
}

/** What Hone did for itself is named after what it is. */
function name(session) {
  const kind = origin(session.origin);
  return session.origin === "user" ? called(session) : `${kind[0].toUpperCase()}${kind.slice(1)}`;
}

function fact(row) {
  const { session } = row;
  const kind = session.origin === "user" ? [row.over ? "branch" : "conversation"] : [];
  const shared = row.over ? [`after message ${session.shared}`] : [];
  return [...kind, ...shared, plural(session.messages, "message")].join(" · ");
}

function sentence(row) {
  return `${name(row.session)}: ${fact(row)}.`;
}

function cut(text, room) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > room ? `${line.slice(0, Math.max(room - 1, 1))}…` : line;
}

function table(rows) {
  const heads = ["Session", "Kind", "From message", "Messages", "Last"];
  return el("div", { class: "scroll", tabindex: "0" }, el("table", null,
    el("thead", null, el("tr", null, heads.map((each) => el("th", { scope: "col" }, each)))),
    el("tbody", null, rows.map((row) => el("tr", null,
      el("th", { scope: "row" }, el("a", { href: way("sessions", row.session.session) }, cut(name(row.session), 60))),
      el("td", null, origin(row.session.origin)), el("td", null, row.over ? String(row.session.shared) : "–"),
      el("td", null, String(row.session.messages)), el("td", null, time(row.session.updated)))))));
}
