// Usage: what conversations and learning cost, what the cache saved, how the skills stand.

import { get } from "./api.js";
import { bars, chart, lines } from "./chart.js";
import { el, put } from "./dom.js";
import { count, money, plural, share, short } from "./format.js";
import { on } from "./live.js";
import { back } from "./more.js";
import { complain } from "./notices.js";

const SPANS = [[7, "a week"], [30, "30 days"], [90, "90 days"], [365, "a year"]];
const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", timeZone: "UTC" });
const TWO = [["foreground", "conversations"], ["learning", "learning"]];

export async function show(root, here, signal) {
  let span = 30;
  const charts = el("div", { class: "charts" });
  const fresh = async () => put(charts, drawn(await get("/api/figures", { days: span }, signal), signal));
  const again = () => fresh().catch(complain);
  put(root, el("div", null, back(), el("h1", null, "Usage")), el("p", { class: "lead" }, "Tokens and cost of conversations, and of learning from them."),
    el("form", { class: "filters" }, el("label", null, "over",
    el("select", { on: { change: (event) => {
      span = Number(event.target.value);
      again();
    } } }, SPANS.map(([days, text]) => el("option", { value: days, selected: days === span }, text))))), charts);
  await fresh();
  on(["session", "learned", "reset"], again, signal);
}

function drawn({ days, skills }, signal) {
  const labels = days.map((each) => DAY.format(new Date(`${each.day}T00:00:00Z`)));
  const series = (of) => TWO.map(([kind, name]) => ({ kind, name, values: days.map((each) => of(each[kind])) }));
  const cost = series((each) => each.cost);
  const tokens = series((each) => each.input + each.output);
  const sent = total(tokens[0]) + total(tokens[1]);
  const unpriced = days.reduce((sum, each) => sum + each.foreground.unpriced + each.learning.unpriced, 0);
  const spent = total(cost[0]) + total(cost[1]);
  if (!sent) return [el("p", { class: "empty" }, "No model was called in this time."), skillChart(skills, signal)];
  return [
    !spent ? unpricedPanel(unpriced) : chart({ title: "Cost per day", labels, series: cost, text: money, draw: bars,
      about: `Conversations ${money(total(cost[0]))}, learning ${money(total(cost[1]))}.${unknown(unpriced)}` }, signal),
    chart({ title: "Tokens per day", labels, series: tokens, text: short, draw: bars,
      about: `Conversations ${short(total(tokens[0]))}, learning ${short(total(tokens[1]))}.` }, signal),
    chart({ title: "Cached share", labels, series: series((each) => each.cached_share), text: share, draw: lines, most: 1,
      about: `Share of the tokens sent that the provider had in its cache: ${overall(days)}.` }, signal),
    skillChart(skills, signal),
  ];
}

function skillChart(skills, signal) {
  if (!skills.active && !skills.archived) return null;
  const drawn = shelf(skills);
  const about = `${plural(skills.active, "skill")} in use, ${skills.pinned} pinned, ${skills.stale} unused for a long time, ${skills.archived} archived.`;
  if (drawn.series[0].values.filter(Boolean).length < 2) return told("Skills", about);
  return chart({ title: "Skills", ...drawn, text: count, draw: bars, about }, signal);
}

/** A chart of nothing, or of one bar, says nothing: it is said in words. */
function told(title, about) {
  return el("figure", { class: "panel" }, el("figcaption", null, el("h2", null, title), el("p", { class: "meta" }, about)));
}

function unpricedPanel(calls) {
  return told("Cost per day", calls ? `The price of ${plural(calls, "model call")} is unknown. Set it under [prices] in hone.toml.` : "Everything was free in this time.");
}

function total(series) {
  return series.values.reduce((sum, value) => sum + value, 0);
}

function unknown(calls) {
  return calls ? ` ${plural(calls, "call")} with an unknown price not included.` : "";
}

function overall(days) {
  const sum = (kind, name) => days.reduce((all, each) => all + each[kind][name], 0);
  return TWO.map(([kind, name]) => `${name} ${share(sum(kind, "input") ? sum(kind, "cached") / sum(kind, "input") : null)}`)
    .join(", ");
}

function shelf(skills) {
  const named = [["in use", skills.active - skills.pinned - skills.stale], ["pinned", skills.pinned],
    ["stale", skills.stale], ["archived", skills.archived]];
  return { labels: named.map(([name]) => name), series: [{ kind: "foreground", name: "skills", values: named.map(([, many]) => many) }] };
}
