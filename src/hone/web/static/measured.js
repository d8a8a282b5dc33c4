// What experiments found out about a lesson.

import { el } from "./dom.js";
import { VERDICTS } from "./experiments.js";

export function measured(lines) {
  return lines.map((line) => {
    const [, verdict, rest] = /^(helps|harms|undecided): (.*)$/s.exec(line) || [];
    return el("p", { class: "meta" }, verdict ? [el("span", { class: VERDICTS[verdict] || "mark" }, verdict), ` ${rest}`] : line);
  });
}
