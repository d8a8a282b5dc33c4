// Panels at the sides. Where there is room they are always there; on a small screen one opens over the page.

import { el } from "./dom.js";

const scrim = document.getElementById("scrim");
const closer = el("button", { type: "button", class: "closer quiet", "aria-label": "Close", on: { click: () => close() } }, "×");
let opened = null;
let back = null;

/** Opens a panel, with the focus in it. Esc, a click beside it, or going elsewhere closes it. */
export function open(panel) {
  close();
  back = document.activeElement;
  opened = panel;
  panel.classList.add("open");
  scrim.hidden = false;
  (panel.querySelector("input, button, a, [tabindex]") || panel).focus();
  panel.prepend(closer);
}

export function close() {
  if (!opened) return;
  opened.classList.remove("open");
  closer.remove();
  scrim.hidden = true;
  opened = null;
  if (back?.isConnected) back.focus({ preventScroll: true });
  back = null;
}

/** A button that opens a panel; it is there only where the panel is not. */
export function opener(text, label, panel) {
  const made = el("button", { type: "button", class: "opener", "aria-label": label, on: { click: () => open(panel()) } }, text);
  return made;
}

scrim.addEventListener("click", close);
document.addEventListener("keydown", (event) => {
  if (!opened) return;
  if (event.key === "Escape") {
    event.preventDefault();
    close();
  }
  if (event.key === "Tab") stay(event);
});
addEventListener("hashchange", close);

/** Tab stays in the open panel. */
function stay(event) {
  const every = [...opened.querySelectorAll("a, button, input, select, textarea, summary, [tabindex='0']")]
    .filter((each) => !each.disabled && each.checkVisibility());
  const edge = event.shiftKey ? every[0] : every.at(-1);
  if (document.activeElement !== edge && opened.contains(document.activeElement)) return;
  event.preventDefault();
  (event.shiftKey ? every.at(-1) : every[0])?.focus();
}
