// Short sentences at the top of the page, read aloud, gone after a while. A new one takes the place of the last.

import { button, el, put } from "./dom.js";

const STAY = 6000;
const LONGER = 12000;

export function say(text, ...actions) {
  show(el("div", { class: "notice" }, el("p", null, text), actions), STAY);
}

export function complain(error) {
  if (error.name === "AbortError") return;
  show(el("div", { class: "notice bad" }, el("p", null, error.message)), LONGER);
}

/** What went wrong: its first line, and the rest folded. */
export function reason(text) {
  const [first, ...rest] = text.split("\n");
  return [el("p", { class: "plain" }, first), rest.length ? el("details", { class: "fold" }, el("summary", null, "Details"),
    el("pre", { class: "plain", tabindex: "0" }, rest.join("\n"))) : null];
}

/** It stays while somebody points at it or is in it. */
function show(notice, stay) {
  notice.append(button("×", () => notice.remove(), "quiet"));
  notice.lastChild.setAttribute("aria-label", "Close");
  const leave = () => {
    if (notice.matches(":hover, :focus-within")) setTimeout(leave, STAY);
    else notice.remove();
  };
  put(document.getElementById("notices"), notice);
  setTimeout(leave, stay);
}

/** A button whose work may fail: it cannot be pressed twice, and the reason is said. */
export function action(text, act, kind = "") {
  const made = button(text, async () => {
    made.disabled = true;
    try {
      await act();
    } catch (error) {
      complain(error);
    } finally {
      made.disabled = false;
    }
  }, kind);
  return made;
}
