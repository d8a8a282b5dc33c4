// What experiments found out about a lesson.

import { el } from "./dom.js";

export function measured(lines) {
  return lines.map((line) => el("p", { class: "meta" }, `Measured: ${line}`));
}
