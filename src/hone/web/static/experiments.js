// Experiments: the same task with a lesson and without it, and what follows, with its interval.

import { get } from "./api.js";
import { el, put, svg, way } from "./dom.js";
import { plural, share, time } from "./format.js";
import { back, command, faults } from "./more.js";

const WIDTH = 320;
const MIDDLE = WIDTH / 2;
const REACH = MIDDLE - 8;
const KINDS = { skill: "Skill", entry: "Entry", template: "Template" };
export const VERDICTS = { helps: "mark done", harms: "mark failed" };

export async function show(root, here, signal) {
  const { experiments, broken } = await get("/api/experiments", {}, signal);
  put(root, el("div", null, back(), el("h1", null, "Experiments")),
    el("p", { class: "lead" }, "An experiment runs the same task with a lesson and without it, and says whether the lesson makes a difference."),
    faults(broken), el("div", { class: "cards" }, experiments.map(card)),
    experiments.length ? null : el("p", { class: "empty" }, "No experiments yet. To see one without a model or a key, run ", command("hone experiment demo"),
      ". To measure a skill of yours, start with ", command("hone experiment new"), "."));
}

function card(each) {
  return el("article", { class: "panel" }, el("header", null, el("h2", null, el("a", { href: way("experiments", each.name) }, each.name)),
    el("p", { class: "about" }, each.request)),
  each.studies.length ? each.studies.map((study) => el("section", { class: "stack study" }, head(study), success(study)))
    : el("p", { class: "meta" }, "No runs yet. Start them with ", command(`hone experiment run ${each.name}`), "."));
}

/** What was tried, and what follows. */
export function head(study) {
  return el("div", null, el("h3", null, `${KINDS[study.kind] || study.kind} ${study.lesson} `, el("span", { class: VERDICTS[study.verdict] || "mark" }, study.complete ? study.verdict : "running")),
    el("p", { class: "meta" }, `${study.done} of ${plural(study.pairs, "pair")} · ${study.model} · `, time(study.begun)),
    el("p", null, study.sentence));
}

/** The difference in the success rate as a dot, its interval as a line, and both in words. */
export function success(study) {
  const own = study.differences.find((each) => each.interval);
  if (!own) return null;
  const [low, high] = own.interval;
  const words = `Success ${share(own.with)} with it, ${share(own.without)} without: ${points(own.difference)} points, 95% interval ${points(low)} to ${points(high)}.`;
  const x = (value) => MIDDLE + Math.max(-1, Math.min(1, value)) * REACH;
  return el("div", { class: "interval" }, el("p", { class: "meta" }, words),
    svg("svg", { role: "img", viewBox: `0 0 ${WIDTH} 40`, class: "chart" }, svg("title", null, words),
      svg("g", { class: "grid" }, svg("line", { x1: MIDDLE - REACH, x2: MIDDLE + REACH, y1: 12, y2: 12 }), svg("line", { x1: MIDDLE, x2: MIDDLE, y1: 2, y2: 22 }),
        [[-1, "start"], [0, "middle"], [1, "end"]].map(([value, anchor]) => svg("text", { x: x(value), y: 36, "text-anchor": anchor }, points(value)))),
      svg("g", { class: "line foreground" }, svg("path", { d: `M${x(low)} 12H${x(high)}` })),
      svg("circle", { class: "foreground", cx: x(own.difference), cy: 12, r: 5 })));
}

export function points(value) {
  const number = Math.round(value * 100);
  return number ? `${number < 0 ? "−" : "+"}${Math.abs(number)}` : "0";
}
