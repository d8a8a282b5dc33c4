// Payback: what each lesson cost and saved. The parts add up to the whole bill.

import { at, get } from "./api.js";
import { el, put, way } from "./dom.js";
import { count, named, plural, time } from "./format.js";
import { back, command } from "./more.js";

const SPANS = [[7, "a week"], [30, "30 days"], [90, "90 days"], [365, "a year"]];
const SIGNS = new Intl.NumberFormat("en", { maximumFractionDigits: 2, signDisplay: "exceptZero" });
const UNIT = 10000;

export async function show(root, here, signal) {
  if (here.id) return one(root, here.id, signal);
  let span = 30;
  const shown = el("div", { class: "stack" });
  const fresh = async () => put(shown, drawn(await get("/api/payback", { days: span }, signal)));
  put(root, el("div", null, back(), el("h1", null, "Payback")),
    el("p", { class: "lead" }, "What each lesson cost: its part of the reviews, its bytes in every later request, and the curator."),
    el("form", { class: "filters" }, el("label", null, "over", el("select", { on: { change: (event) => {
      span = Number(event.target.value);
      fresh();
    } } }, SPANS.map(([days, text]) => el("option", { value: days, selected: days === span }, text))))), shown);
  await fresh();
}

function drawn(bill) {
  const rows = [...bill.lessons.map((each) => ({ ...each, name: name(each) })), ...bill.unassigned.map((each) => ({ ...each, name: each.what, state: "unassigned" }))];
  if (!bill.calls && !rows.length) return el("p", { class: "empty" }, "No model was called in this time, and nothing is known yet.");
  const learning = rounded(rows.map((each) => Number(each.review) + Number(each.curator)));
  const prompts = rounded(rows.map((each) => Number(each.prompt_cached) + Number(each.prompt_fresh)));
  const sum = (values) => values.reduce((all, each) => all + each, 0);
  return [el("p", null, `${plural(bill.calls, "model call")} cost ${dollars(Number(bill.total) * UNIT)}. Conversations took ${dollars(Number(bill.conversations) * UNIT)}; the rest is below.`),
    bill.unpriced_calls ? el("p", { class: "bad" }, `The price of ${plural(bill.unpriced_calls, "call")} is unknown, and they are in no sum here. Set it under [prices] in hone.toml.`) : null,
    table("What lessons cost", ["lesson", "state", "learning", "in prompts", "total", "used", "measured"], [...rows.map((each, at) => [each.change ? el("a", { href: way("payback", each.change) }, each.name) : each.name,
      each.state, dollars(learning[at]), dollars(prompts[at]), dollars(learning[at] + prompts[at]) + (each.unpriced_tokens ? " + unknown" : ""), each.used ?? "", each.verdict || ""]),
    ["sum", "", dollars(sum(learning)), dollars(sum(prompts)), dollars(sum(learning) + sum(prompts)), "", ""]])];
}

/** In hundredths of a cent, so that a column adds up as it is shown. */
function rounded(amounts) {
  const exact = amounts.map((each) => each * UNIT);
  const down = exact.map(Math.floor);
  const left = Math.round(exact.reduce((all, each) => all + each, 0)) - down.reduce((all, each) => all + each, 0);
  exact.map((each, at) => [each - down[at], at]).sort((one, two) => two[0] - one[0] || one[1] - two[1]).slice(0, Math.max(0, left)).forEach(([, at]) => { down[at] += 1; });
  return down;
}

function dollars(units) {
  return `$${(units / UNIT).toFixed(4)}`;
}

function name(each) {
  return each.target.startsWith("skill:") ? named(each.target) : each.text;
}

async function one(root, id, signal) {
  const each = await get(at("payback", id), { days: 365 }, signal);
  const parts = [["its part of reviews", each.review, ""], ["its part of the curator", each.curator, ""],
    ["in prompts, cached", each.prompt_cached, count(each.cached_tokens)], ["in prompts, in full", each.prompt_fresh, count(each.fresh_tokens)]];
  const shown = rounded(parts.map(([, amount]) => Number(amount)));
  put(root, el("div", null, back("payback", "Payback"), el("h1", null, name(each))),
    el("p", { class: "meta" }, `${named(each.target)}, ${each.state}, since `, time(each.at), each.used === null ? "" : ` · used in ${plural(each.used, "conversation")}`),
    table("What it cost in a year", ["part", "cost", "tokens"], [...parts.map(([part, , tokens], place) => [part, dollars(shown[place]), tokens]),
      ["sum", dollars(shown.reduce((all, amount) => all + amount, 0)), each.unpriced_tokens ? `${count(each.unpriced_tokens)} of unknown price` : ""]]),
    el("h2", null, "Experiments"), each.experiments.length ? each.experiments.map(study) : el("p", { class: "empty" }, "No experiment has measured it. Start with ", command("hone experiment new"), "."),
    el("h2", null, "Before and after"), el("p", { class: "meta" }, "Weaker evidence than an experiment: the work, the model and other lessons changed meanwhile, too."),
    compared(each.before_and_after));
}

function study(each) {
  return el("article", { class: "panel" }, el("h3", null, el("a", { href: way("experiments", each.task) }, each.task), ` ${each.verdict}`),
    el("p", { class: "meta" }, `${plural(each.pairs, "pair")} · ${each.model}${each.current ? "" : " · an earlier version"}`), differences(each.task, each.differences));
}

function compared({ pairs, needed, differences: found }) {
  if (!found.length) return el("p", { class: "empty" }, `Too few: ${plural(pairs, "matched pair")} of conversations, ${needed} are needed.`);
  return [el("p", null, `${plural(pairs, "matched pair")} of conversations, after minus before.`), differences("Before and after", found)];
}

function differences(label, found) {
  return table(label, ["figure", "difference", "95% interval"], found.map((each) => [each.name, signed(each.mean), `${signed(each.low)} to ${signed(each.high)}`]));
}

function signed(value) {
  return SIGNS.format(value).replace("-", "−");
}

function table(label, titles, rows) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, el("table", null,
    el("thead", null, el("tr", null, titles.map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", null, rows.map(([first, ...rest]) => el("tr", null, el("th", { scope: "row" }, first), rest.map((each) => el("td", null, each)))))));
}
