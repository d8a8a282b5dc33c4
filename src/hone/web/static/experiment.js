// One experiment: its task, and each study with every figure.

import { at, get } from "./api.js";
import { el, put, way } from "./dom.js";
import { money, plural, share, short, time } from "./format.js";
import { head, points, success } from "./experiments.js";
import { back } from "./more.js";

const AMOUNT = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const SIGNS = new Intl.NumberFormat("en", { maximumFractionDigits: 2, signDisplay: "exceptZero" });

export async function show(root, here, signal) {
  const task = await get(at("experiments", here.id), {}, signal);
  put(root, el("div", { class: "stack" }, el("div", null, back("experiments", "Experiments"), el("h1", null, task.name)),
    el("p", { class: "meta" }, "from ", el("a", { href: way("sessions", task.session) }, "a conversation"), " · ", time(task.created)),
    el("pre", { class: "plain", tabindex: "0" }, task.request),
    task.files.length ? el("p", { class: "meta" }, `Files: ${task.files.join(", ")}`) : null, check(task.check)),
  el("h2", null, "Lessons measured with it"),
  task.studies.map((study) => el("article", { class: "panel" }, head(study), success(study), figures(study), el("p", { class: "meta" }, spent(study.runs)))),
  task.studies.length ? null : el("p", { class: "empty" }, "No runs yet."));
}

/** What must hold for a run to count as a success. */
function check({ text, script, files }) {
  return el("details", { class: "panel", open: true }, el("summary", null, "A run succeeds if"),
    el("ul", { class: "stack" }, text ? el("li", null, "the answer contains: ", el("code", null, text)) : null,
      files.map((each) => el("li", null, "there is a file ", el("code", null, each.path), each.text ? [" that contains: ", el("code", null, each.text)] : null)),
      script ? el("li", null, "this script succeeds:", el("pre", { class: "plain", tabindex: "0" }, script)) : null));
}

function figures(study) {
  const shown = study.differences.filter((each) => each.interval);
  if (!shown.length) return null;
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Figures of ${study.lesson}` }, el("table", null,
    el("thead", null, el("tr", null, ["figure", "with", "without", "difference", "95% interval"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", null, shown.map(row))));
}

function row(each, at) {
  const rate = at === 0;
  const [plain, signed] = rate ? [share, (value) => `${points(value)} points`] : [AMOUNT.format, signedly];
  const [low, high] = each.interval;
  return el("tr", null, el("th", { scope: "row" }, each.name), el("td", null, plain(each.with)), el("td", null, plain(each.without)),
    el("td", null, signed(each.difference)), el("td", null, `${(rate ? points : signed)(low)} to ${signed(high)}`));
}

function signedly(value) {
  return SIGNS.format(value).replace("-", "−");
}

function spent(runs) {
  const costs = runs.map((each) => each.cost);
  const cost = costs.includes(null) ? null : costs.reduce((sum, each) => sum + each, 0);
  return `${plural(runs.length, "run")}, ${short(runs.reduce((sum, each) => sum + each.tokens, 0))} tokens, cost ${money(cost)}.`;
}
