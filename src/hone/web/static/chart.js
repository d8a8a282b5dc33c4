// Charts as drawings: bars by day, a line by day, bars by name. A table with the same figures stands beside.

import { el, put, svg } from "./dom.js";

const HEIGHT = 200;
const LEFT = 52;
const BOTTOM = 24;
const TOP = 10;

/**
 * `series` are {name, kind, values}, one value per label; null is a gap. `text` writes a value;
 * `draw` makes the marks; `most` is the upper end, if it is fixed.
 */
export function chart({ title, about, labels, series, text, draw, most = 0 }, signal) {
  const drawing = el("div", { class: "drawing" });
  const top = most || nice(Math.max(0, ...sums(series, labels.length, draw === bars)));
  const paint = () => put(drawing, picture(Math.max(drawing.clientWidth, 240)));
  const picture = (width) => {
    const frame = { width, top, labels, series, x: (at) => LEFT + ((at + 0.5) * (width - LEFT - 6)) / labels.length,
      y: (value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM) };
    return svg("svg", { role: "img", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, class: "chart" },
      svg("title", null, title), svg("desc", null, about), grid(frame, text), days(frame), draw(frame, text));
  };
  const watch = new ResizeObserver(paint);
  watch.observe(drawing);
  signal.addEventListener("abort", () => watch.disconnect());
  return el("figure", { class: "panel" }, el("figcaption", null, el("h2", null, title), el("p", { class: "meta" }, about)),
    series.length > 1 ? legend(series) : null, drawing,
    el("details", null, el("summary", null, "As a table"), table(labels, series, text)));
}

function sums(series, length, stacked) {
  const columns = Array.from({ length }, (_, at) => series.map((each) => each.values[at] || 0));
  return columns.map((column) => (stacked ? column.reduce((sum, value) => sum + value, 0) : Math.max(...column)));
}

/** The next round number. */
function nice(value) {
  if (!value) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((step) => step * size).find((each) => each >= value * 0.999);
}

function grid({ width, top, y }, text) {
  return [0, 0.5, 1].map((part) => svg("g", { class: "grid" },
    svg("line", { x1: LEFT, x2: width, y1: y(top * part), y2: y(top * part) }),
    svg("text", { x: LEFT - 8, y: y(top * part) + 4, "text-anchor": "end" }, text(top * part))));
}

function days({ width, labels, x }) {
  const every = Math.max(1, Math.ceil(labels.length / Math.max(2, Math.floor((width - LEFT) / 84))));
  return svg("g", { class: "grid" }, labels.map((label, at) => ((labels.length - 1 - at) % every ? null
    : svg("text", { x: Math.min(x(at), width - 26), y: HEIGHT - 6, "text-anchor": "middle" }, label))));
}

/** Stacked. */
export function bars({ width, labels, series, x, y }, text) {
  const wide = Math.max(2, Math.min(28, ((width - LEFT) / labels.length) * 0.68));
  return labels.map((label, at) => {
    let under = 0;
    return svg("g", null, series.map((each) => {
      const value = each.values[at] || 0;
      if (!value) return null;
      const [low, high] = [y(under), y(under + value)];
      under += value;
      return svg("rect", { class: each.kind, x: x(at) - wide / 2, y: high, width: wide, height: Math.max(low - high, 1), rx: 1.5 },
        svg("title", null, `${label}, ${each.name}: ${text(value)}`));
    }));
  });
}

/** Days without a value are bridged. */
export function lines({ series, x, y, labels }, text) {
  return series.map((each) => {
    const spots = each.values.map((value, at) => (value === null ? null : { at, value })).filter(Boolean);
    const path = spots.map(({ at, value }, index) => `${index ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`);
    return svg("g", { class: `line ${each.kind}` }, svg("path", { d: path.join(" ") || "M0 0" }),
      spots.map(({ at, value }) => svg("circle", { cx: x(at), cy: y(value), r: 3 },
        svg("title", null, `${labels[at]}, ${each.name}: ${text(value)}`))));
  });
}

function legend(series) {
  return el("ul", { class: "legend" }, series.map((each) => el("li", null,
    svg("svg", { width: 12, height: 12, "aria-hidden": "true" }, svg("rect", { class: each.kind, width: 12, height: 12, rx: 3 })),
    each.name)));
}

function table(labels, series, text) {
  return el("div", { class: "scroll", tabindex: "0" }, el("table", null,
    el("thead", null, el("tr", null, el("td"), series.map((each) => el("th", { scope: "col" }, each.name)))),
    el("tbody", null, labels.map((label, at) => el("tr", null, el("th", { scope: "row" }, label),
      series.map((each) => el("td", null, each.values[at] === null ? "–" : text(each.values[at]))))))));
}
