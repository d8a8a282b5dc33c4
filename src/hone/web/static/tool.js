// A call of a tool: folded, with its state; a change of a file shows its difference.

import { copier } from "./copying.js";
import { el, put } from "./dom.js";

const DECLINED = /(^|\. )The user said no(: [\s\S]*)?\.$/;
const PLACE = /^@@/;
const RUNNING = "…";
// What a call is about, by the names of its arguments.
const TOLD = ["path", "command", "query", "url", "name", "pattern", "task"];

/** A call, folded; `result` is null while it runs. */
export function call(part, result = null) {
  const state = el("span", { class: "state" });
  const values = read(part.arguments);
  const answer = el("div", { class: "answer" });
  const asked = el("div", null, changes(part.name, values)
    || el("pre", { class: "plain", tabindex: "0" }, values ? JSON.stringify(values, null, 2) : part.arguments));
  const made = el("details", { class: "fold tool" },
    el("summary", null, el("code", null, part.name), el("span", { class: "gist" }, gist(values, part.arguments)), state),
    asked, answer);
  made.finish = (ended) => {
    const kind = !ended.failed ? "done" : DECLINED.test(ended.text) ? "declined" : "failed";
    made.classList.toggle("failed", kind === "failed");
    made.classList.toggle("declined", kind === "declined");
    put(state, kind, !(ended.seconds >= 0.1) ? "" : ` · ${ended.seconds.toFixed(1)} s`);
    asked.hidden = patched(part.name, ended.text); // the result has it with its surroundings
    put(answer, ended.text ? output(part.name, ended.text) : null);
  };
  /** The turn is over; a call without a result was stopped. */
  made.leave = () => {
    if (state.textContent === RUNNING) put(state, "stopped");
  };
  if (result) made.finish(result);
  else put(state, RUNNING);
  return made;
}

function read(text) {
  try {
    const values = JSON.parse(text);
    return values && typeof values === "object" ? values : null;
  } catch {
    return null;
  }
}

function gist(values, text) {
  if (!values) return text.slice(0, 120);
  const told = TOLD.map((name) => values[name]).find((value) => typeof value === "string");
  return (told ?? Object.values(values).find((value) => typeof value === "string") ?? "").slice(0, 120);
}

/** What a call writes, as lines that came and went; null for other calls. */
function changes(name, values) {
  if (!values || typeof values.path !== "string") return null;
  if (name === "write_file" && typeof values.content === "string") return diff(signed("+", values.content), `${values.path}, whole`);
  if (name === "patch" && typeof values.find === "string" && typeof values.replace === "string") {
    return diff([...signed("-", values.find), ...signed("+", values.replace)], values.path);
  }
  return null;
}

function signed(sign, text) {
  return text.replace(/\n$/, "").split("\n").map((line) => `${sign}${line}`);
}

/** Lines with a sign each, colored by it. */
export function diff(lines, label = "Difference") {
  const kind = (line) => (PLACE.test(line) ? "place" : { "+": "came", "-": "went" }[line[0]] || "same");
  return el("pre", { class: "diff", tabindex: "0", "aria-label": `Difference: ${label}` },
    lines.map((line) => el("span", { class: kind(line) }, `${line}\n`)));
}

function patched(name, text) {
  return name === "patch" && text.split("\n").slice(1).some((line) => PLACE.test(line));
}

function output(name, text) {
  const lines = text.split("\n");
  const block = patched(name, text) ? [el("p", { class: "meta" }, lines[0]), diff(lines.slice(1))]
    : [el("pre", { class: "plain", tabindex: "0" }, text)];
  return [el("p", { class: "meta between" }, "Result", copier(() => text, "Copy the result")), block];
}

/** What a question is about: a command, or a file with its difference. */
export function about(detail) {
  const lines = detail.split("\n");
  if (!lines.slice(1).some((line) => PLACE.test(line))) return el("pre", { class: "plain", tabindex: "0" }, detail);
  return el("div", null, el("p", { class: "meta" }, lines[0]), diff(lines.slice(1), lines[0]));
}
