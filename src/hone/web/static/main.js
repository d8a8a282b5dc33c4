// Which page is shown, and what stands above every page.

import { get } from "./api.js";
import { button, el, put } from "./dom.js";
import { begin, on } from "./live.js";
import { complain, say } from "./notices.js";
import * as chat from "./chat.js";
import * as figures from "./figures.js";
import * as journal from "./journal.js";
import * as learning from "./learning.js";
import * as reviews from "./reviews.js";
import * as session from "./session.js";
import * as sessions from "./sessions.js";
import * as skill from "./skill.js";
import * as skills from "./skills.js";

const PAGES = { chat: [chat], learning: [learning], journal: [journal], skills: [skills, skill],
  sessions: [sessions, session], reviews: [reviews], figures: [figures] };
const main = document.getElementById("main");
let leaving = new AbortController();

/** The place in the address: page, id, and words after a question mark. */
function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [page, ...parts] = path.split("/").map((part) => decode(part));
  const known = Object.hasOwn(PAGES, page);
  return { page: known ? page : "chat", id: known ? parts.join("/") : "", query: new URLSearchParams(query) };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const here = place();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === here.page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const [every, one] = PAGES[here.page];
  const view = here.id && one ? one : every;
  const root = el("div", { class: `page ${here.page}` });
  put(main, root);
  scrollTo(0, 0);
  document.title = `${document.querySelector("nav a[aria-current]").textContent} · Hone`;
  try {
    await view.show(root, here, signal);
  } catch (error) {
    if (signal.aborted) return;
    put(root, el("h1", null, "This cannot be shown"), el("p", { class: "lead" }, error.message),
      el("p", null, button("Try again", show)));
  }
  root.dataset.ready = "";
}

async function stand() {
  const status = await get("/api/status");
  const badge = document.getElementById("waiting");
  badge.hidden = !status.pending;
  put(badge, String(status.pending));
  badge.setAttribute("aria-label", `${status.pending} waiting for you`);
  const model = document.getElementById("model");
  put(model, status.model || "no model");
  model.title = status.trouble || `Hone ${status.version}, in ${status.folder}`;
  return status;
}

function tell(state) {
  const light = document.getElementById("live");
  light.dataset.state = state;
  put(light, state === "on" ? "live" : "no connection");
}

addEventListener("hashchange", () => {
  if (location.hash === "#main") return;
  show().then(() => {
    if (!main.contains(document.activeElement)) main.focus({ preventScroll: true });
  });
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
const always = new AbortController().signal;
on(["changed", "learned", "reset"], () => stand().catch(complain), always);
on(["notice"], (data) => say(data.text), always);
on(["review_failed"], (data) => say(`A review failed: ${data.error}`, el("a", { href: "#/reviews" }, "See it")), always);
on(["learned"], (data) => {
  if (data.line && place().page !== "chat") say(data.line, el("a", { href: "#/learning" }, "See it"));
}, always);
try {
  const status = await stand();
  begin(status.mark, tell, always);
} catch (error) {
  complain(error);
}
await show();
