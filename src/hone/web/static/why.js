// Why an answer came out as it did: what of its prompt shaped it, each with a way to correct it.

import { at, get, post } from "./api.js";
import { el, put } from "./dom.js";
import { plural } from "./format.js";
import { entry, skill } from "./knows.js";
import { action } from "./notices.js";

const METHODS = { record: "by record", measure: "by measure", citation: "says the model", ablation: "by ablation" };

/** Shows it below a message, or takes it away. Number 0 is the last answer. */
export async function why(talk, element, number) {
  const old = element.querySelector(".why");
  if (old) {
    old.remove();
    return;
  }
  const box = el("section", { class: "why", "aria-label": "Why this answer" });
  const path = at("sessions", talk.id, "why");
  const fresh = async () => draw(box, await get(path, number ? { message: number } : {}, talk.signal), ask, fresh);
  const ask = async () => draw(box, await post(number ? `${path}?message=${number}` : path), ask, fresh);
  await fresh();
  element.querySelector(".body").after(box);
}

function draw(box, data, ask, fresh) {
  const used = data.items.filter((each) => each.use !== "unlikely");
  const rest = data.items.length - used.length;
  const more = used.length ? `${plural(rest, "other item")} in its prompt left no trace.` : `${plural(rest, "item")} stood in its prompt.`;
  put(box, el("h3", null, used.length ? "What shaped this answer" : "Nothing that Hone knows left a trace in this answer"),
    used.length ? el("ul", null, used.map((each) => shown(each, fresh))) : null,
    rest ? el("p", { class: "meta" }, more) : null,
    el("p", { class: "acts" }, action("Ask the model", ask)));
}

function shown(each, again) {
  const how = each.by.map((name) => METHODS[name]).join(" and ");
  const about = el("p", { class: "meta" }, [each.use, how].join(", "), each.because ? `: ${each.because}` : "");
  if (each.kind === "entry" && each.target) {
    const item = entry({ ...each, part: each.name, known: "prompt" }, false, false, again);
    item.append(about);
    return item;
  }
  if (each.kind === "skill") {
    const item = skill({ ...each, description: "", used: false }, again);
    item.querySelector("div").append(about);
    return item;
  }
  const gone = each.kind === "entry" ? el("span", { class: "mark" }, "no longer in the journal in these words") : null;
  return el("li", null, el("p", { class: "plain" }, gone ? each.text : `${each.kind} ${each.name}`, gone ? " " : null, gone), about);
}

/** The entries and skills that shaped the last answer, by text and by name. */
export async function shapers(talk) {
  const { items } = talk.id ? await get(at("sessions", talk.id, "why"), {}, talk.signal) : { items: [] };
  const used = items.filter((each) => each.use !== "unlikely");
  const of = (kind, key) => new Set(used.filter((each) => each.kind === kind).map(key));
  return { entries: of("entry", (each) => `${each.name} ${each.text}`), skills: of("skill", (each) => each.name) };
}
