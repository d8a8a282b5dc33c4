// Memory backends: which one is used and why, which ones there are, and how they compare.

import { get, post } from "./api.js";
import { el, put } from "./dom.js";
import { plural, share } from "./format.js";
import { back, command } from "./more.js";
import { action } from "./notices.js";

const KEPT = { true: "kept", false: "lost", null: "–" };
const ABOUT = { null: "keeps no copies" };

export async function show(root, here, signal) {
  const data = await get("/api/backends", {}, signal);
  const result = el("section", { class: "stack", "aria-live": "polite" });
  const chosen = new Set(data.backends.filter((each) => each.available && !each.cloud).map((each) => each.name));
  put(root, el("div", null, back(), el("h1", null, "Memory backends")),
    el("p", { class: "lead" }, "A backend keeps a copy of what Hone knows and searches it by meaning. The journal on this machine stays the original."),
    el("p", null, "In use: ", el("strong", null, data.used), ` (${data.because}).`, waiting(data)),
    data.last_error ? el("p", { class: "bad" }, data.last_error) : null,
    el("p", { class: "meta" }, "To switch, set ", command("backend"), " under ", command("[memory]"), " in hone.toml."),
    el("ul", { class: "rows plainly" }, data.backends.map((each) => row(each, chosen))),
    el("p", { class: "acts" }, action("Compare the checked ones", () => compare([...chosen], result), "main"),
      el("span", { class: "meta" }, "Hone stores a few test memories in each, searches them, and removes them again.")), result);
}

function waiting(data) {
  return data.waiting && data.used !== "null" ? ` ${plural(data.waiting, "copy", "copies")} waiting to be stored.` : null;
}

function row(each, chosen) {
  const box = el("input", { type: "checkbox", "aria-label": `Compare ${each.name}`, checked: chosen.has(each.name), disabled: !each.available, on: { change: () => {
    if (box.checked) chosen.add(each.name);
    else chosen.delete(each.name);
  } } });
  return el("li", null, el("div", null, el("span", { class: "title" }, each.name, " ", each.used ? el("span", { class: "mark done" }, "in use") : null,
    each.available ? null : el("span", { class: "mark" }, "not available"), each.cloud ? el("span", { class: "mark doubt" }, "cloud") : null),
  el("p", { class: "meta plain" }, each.why_not || ABOUT[each.name] || each.location),
  each.cloud ? el("p", { class: "meta" }, "What Hone knows leaves this machine.") : null), box);
}

async function compare(names, result) {
  if (!names.length) throw new Error("Check at least one backend.");
  put(result, el("p", { class: "empty" }, "Measuring …"));
  try {
    const told = await post("/api/backends/evaluate", { names });
    put(result, el("h2", null, "Comparison"), table(told.backends), notes(told));
  } catch (error) {
    put(result);
    throw error;
  }
}

function table(every) {
  const timed = [...new Set(every.flatMap((each) => Object.keys(each.milliseconds)))];
  const names = ["backend", "score", "verdict", "found", "after a kill", ...timed.map((name) => `${name}, ms`)];
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Comparison of the backends" }, el("table", null,
    el("thead", null, el("tr", null, names.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", null, every.map((each) => el("tr", null, el("th", { scope: "row" }, each.name), el("td", null, String(each.score)),
      el("td", null, each.label || ""), el("td", null, share(each.recall)), el("td", null, KEPT[each.survives_kill]),
      timed.map((name) => el("td", null, span(each.milliseconds[name]))))))));
}

/** The median and what 95 of 100 stay below. */
function span(times) {
  return times ? `${times.p50.toFixed(1)} / ${times.p95.toFixed(1)}` : "–";
}

function notes(told) {
  return [told.backends.filter((each) => each.why_not || each.error).map((each) => el("p", { class: "bad" }, `${each.name}: ${each.why_not || each.error}`)),
    told.advice.map((line) => el("p", null, line)), el("p", { class: "meta" }, "Times are the median and the 95th percentile.")];
}
