// Short sentences at the edge of the page, read aloud, gone after a while.

import { button, el } from "./dom.js";

const STAY = 9000;

export function say(text, ...actions) {
  show(el("div", { class: "notice" }, el("p", null, text), actions));
}

export function complain(error) {
  if (error.name === "AbortError") return;
  show(el("div", { class: "notice bad" }, el("p", null, error.message)));
}

function show(notice) {
  notice.append(button("×", () => notice.remove(), "quiet"));
  notice.lastChild.setAttribute("aria-label", "Close");
  document.getElementById("notices").append(notice);
  setTimeout(() => notice.remove(), STAY);
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
