// Markdown as elements. The server reads it; here each node becomes an element of a known kind, and text stays text.

import { post } from "./api.js";
import { el, put } from "./dom.js";
import { copier, copy } from "./copying.js";

// As the server has them: p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre table thead tbody tr th td hr br em strong s code a img span .
const SAME = new Set(["p", "ul", "li", "blockquote", "thead", "tbody", "tr", "hr", "br", "em", "strong", "s", "code"]);
const HEADINGS = { h1: "h3", h2: "h4", h3: "h5", h4: "h6", h5: "h6", h6: "h6" };
const BATCH = 50;

/** Elements of what the server read. An unknown node shows its words. */
export function elements(nodes) {
  return nodes.map((node) => (typeof node === "string" ? node : element(node)));
}

function element(node) {
  const inner = elements(node.children);
  if (SAME.has(node.tag)) return el(node.tag, null, inner);
  if (HEADINGS[node.tag]) return el(HEADINGS[node.tag], { class: node.tag }, inner);
  switch (node.tag) {
    case "ol":
      return el("ol", { start: node.start }, inner);
    case "pre":
      return code(node, inner);
    case "span":
      return el("span", { class: `ink-${node.kind}` }, inner);
    case "table":
      return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, el("table", null, inner));
    case "th":
      return el("th", { scope: "col", class: side(node) }, inner);
    case "td":
      return el("td", { class: side(node) }, inner);
    case "a":
      return link(node, inner);
    case "img":
      return el("span", { class: "picture" }, "picture: ", inner.length ? inner : "no words", place(node));
    default:
      return el("span", null, inner);
  }
}

function side(node) {
  return ["right", "center"].includes(node.align) ? node.align : null;
}

/** A link is marked and says where it leads. It is never followed from here; a press copies its address. */
function link(node, inner) {
  const same = node.children.length === 1 && [node.to, node.to?.replace(/^mailto:/, "")].includes(node.children[0]);
  return el("span", { class: "link" },
    el("button", { type: "button", class: "linked", title: `Copy the address ${node.to || ""}`,
      on: { click: () => copy(node.to || "", "The address is copied.") } }, inner.length ? inner : "link"),
    same ? null : place(node));
}

function place(node) {
  if (!node.to) return null;
  return el("span", { class: "place" }, ` (${node.to}${node.title ? `: ${node.title}` : ""})`);
}

function code(node, inner) {
  const name = (node.info || "").split(" ")[0];
  const block = el("pre", { tabindex: "0" }, el("code", null, inner));
  return el("figure", { class: "code" },
    el("figcaption", null, el("span", null, node.info || "code"), copier(() => block.textContent, name ? `Copy ${name}` : "Copy code")), block);
}

const waiting = [];
let due = false;

/** The document of a text; texts that are asked for at the same time go together. */
function ask(text) {
  return new Promise((done, failed) => {
    waiting.push({ text, done, failed });
    if (due) return;
    due = true;
    queueMicrotask(flush);
  });
}

async function flush() {
  due = false;
  while (waiting.length) {
    const some = waiting.splice(0, BATCH);
    try {
      const { documents } = await post("/api/markdown", { texts: some.map((each) => each.text) });
      some.forEach((each, at) => each.done(documents[at]));
    } catch (error) {
      for (const each of some) each.failed(error);
    }
  }
}

/** A text, shown as it is until the server has read it. `.ready` ends when it has. */
export function prose(text) {
  const root = el("div", { class: "prose" }, el("p", null, text));
  root.ready = ask(text).then(({ nodes }) => put(root, elements(nodes)), () => root);
  return root;
}

/**
 * A text that grows. One request is under way at a time, and only what may still change is sent again:
 * blocks that are settled stay.
 */
export function growing(moved) {
  const fixed = el("div", { class: "prose" });
  const open = el("div", { class: "prose" });
  const root = el("div", { class: "grown" }, fixed, open);
  let rest = "";
  let busy = false;
  let again = false;
  const look = async () => {
    busy = true;
    again = false;
    const sent = rest;
    const { nodes, settled } = await ask(sent);
    const made = elements(nodes);
    if (settled) {
      fixed.append(...made.slice(0, -1));
      rest = rest.slice(cut(sent, settled));
    }
    put(open, settled ? made.slice(-1) : made);
    busy = false;
    moved();
    if (again) go();
  };
  const go = () => look().catch(() => {
    busy = false;
    put(open, el("p", null, rest));
  });
  const add = (text) => {
    rest += text;
    if (!open.hasChildNodes()) put(open, el("p", null, rest));
    if (busy) again = true;
    else go();
  };
  return { root, add };
}

/** Where line `count` of a text begins. */
function cut(text, count) {
  let at = 0;
  for (let line = 0; line < count; line += 1) at = text.indexOf("\n", at) + 1;
  return at;
}
