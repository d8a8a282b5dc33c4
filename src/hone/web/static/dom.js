// Elements from values. Text goes in as text; nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";
const REFUSED = new Set(["style", "src", "srcdoc", "action", "formaction", "innerhtml", "xlink:href"]);

/** An HTML element. `on` holds listeners; a child that is null or false is left out. */
export function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for a drawing. */
export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") listen(element, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) set(element, name, String(value));
  }
  element.append(...present(children));
  return element;
}

function listen(element, handlers) {
  for (const [kind, handler] of Object.entries(handlers)) element.addEventListener(kind, handler);
}

// Data never becomes something that runs: a link leads to a place in this page and nowhere else.
function set(element, name, value) {
  const low = name.toLowerCase();
  if (REFUSED.has(low) || low.startsWith("on")) throw new Error(`${name} is not set by data`);
  if (low === "href" && !value.startsWith("#")) throw new Error("links lead into this page only");
  element.setAttribute(name, value);
}

function present(children) {
  return children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false);
}

/** What stands in an element, anew. */
export function put(element, ...children) {
  element.replaceChildren(...present(children));
  return element;
}

/**
 * A list that keeps the elements whose data is the same, so that what is open stays open and
 * the focus stays where it is.
 */
export function renew(list, items, key, make) {
  const before = new Map([...list.children].map((each) => [each.dataset.key, each]));
  const after = items.map((item) => {
    const name = String(key(item));
    const print = JSON.stringify(item);
    const old = before.get(name);
    if (old && old.print === print) return old;
    const made = make(item, old);
    made.dataset.key = name;
    made.print = print;
    return made;
  });
  for (const each of [...list.children]) if (!after.includes(each)) each.remove();
  after.forEach((each, at) => {
    if (list.children[at] !== each) list.insertBefore(each, list.children[at] || null);
  });
}

export function button(text, act, kind = "") {
  return el("button", { type: "button", class: kind, on: { click: act } }, text);
}

/** Where a link leads: a page and its parts, each escaped. */
export function way(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}
