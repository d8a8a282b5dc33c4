// Markdown of a reply as elements: paragraphs, headings, lists, code, emphasis. Links and images stay text.

import { el } from "./dom.js";

const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|(?<![\w*])\*([^*\s][^*\n]*)\*(?!\w)/g;
const ITEM = /^\s*(?:[-*+]|\d+[.)])\s+/;
const STARTS = /^(```|#{1,6}\s|\s*(?:[-*+]|\d+[.)])\s+)/;

export function markup(text) {
  const lines = text.split("\n");
  const made = [];
  for (let at = 0; at < lines.length;) {
    const [block, next] = read(lines, at);
    if (block) made.push(block);
    at = next;
  }
  return el("div", { class: "prose" }, made);
}

function read(lines, at) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  if (line.startsWith("```")) return fence(lines, at);
  if (/^#{1,6}\s/.test(line)) return [el("h4", null, inline(line.replace(/^#+\s+/, ""))), at + 1];
  if (ITEM.test(line)) return list(lines, at);
  return paragraph(lines, at);
}

function fence(lines, at) {
  const end = lines.findIndex((line, index) => index > at && line.startsWith("```"));
  const last = end < 0 ? lines.length : end;
  return [el("pre", { tabindex: "0" }, el("code", null, lines.slice(at + 1, last).join("\n"))), last + 1];
}

function list(lines, at) {
  const items = [];
  let next = at;
  for (; next < lines.length && lines[next].trim(); next += 1) {
    if (ITEM.test(lines[next])) items.push(lines[next].replace(ITEM, ""));
    else items[items.length - 1] += ` ${lines[next].trim()}`;
  }
  const name = /^\s*\d/.test(lines[at]) ? "ol" : "ul";
  return [el(name, null, items.map((item) => el("li", null, inline(item)))), next];
}

function paragraph(lines, at) {
  let next = at + 1;
  while (next < lines.length && lines[next].trim() && !STARTS.test(lines[next])) next += 1;
  return [el("p", null, inline(lines.slice(at, next).join("\n"))), next];
}

function inline(text) {
  const made = [];
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    made.push(text.slice(from, found.index));
    const [, code, strong, soft] = found;
    if (code) made.push(el("code", null, code));
    else made.push(strong ? el("strong", null, strong) : el("em", null, soft));
    from = found.index + found[0].length;
  }
  return [...made, text.slice(from)];
}
