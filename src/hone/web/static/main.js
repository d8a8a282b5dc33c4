// Which page is shown, and what stands above every page.

import { get } from "./api.js";
import { button, el, put } from "./dom.js";
import { begin, on } from "./live.js";
import { complain, say } from "./notices.js";
import * as access from "./access.js";
import * as backends from "./backends.js";
import * as chat from "./chat.js";
import * as curator from "./curator.js";
import * as experiment from "./experiment.js";
import * as experiments from "./experiments.js";
import * as figures from "./figures.js";
import * as journal from "./journal.js";
import * as learning from "./learning.js";
import * as more from "./more.js";
import * as payback from "./payback.js";
import * as permissions from "./permissions.js";
import * as reviews from "./reviews.js";
import * as session from "./session.js";
import * as sessions from "./sessions.js";
import * as skill from "./skill.js";
import * as skills from "./skills.js";
import * as team from "./team.js";
import * as template from "./template.js";
import * as templates from "./templates.js";
import { listen } from "./palette.js";
import * as talks from "./talks.js";

const PAGES = { chat: [chat], learning: [learning], journal: [journal], skills: [skills, skill],
  sessions: [sessions, session], reviews: [reviews], figures: [figures], access: [access], more: [more],
  payback: [payback], curator: [curator], permissions: [permissions], templates: [templates, template], experiments: [experiments, experiment], backends: [backends], team: [team] };
const FURTHER = new Map(more.VIEWS.map(([page, title]) => [page, title]));
const main = document.getElementById("main");
let leaving = new AbortController();

/** The place in the address: page, id, and words after a question mark. */
function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [page, ...parts] = path.split("/").map((part) => decode(part));
  const known = Object.hasOwn(PAGES, page);
  return { page: known ? page : "chat", id: known ? parts.join("/") : "", query: new URLSearchParams(query) };
}

function named(page) {
  return FURTHER.get(page) || document.querySelector(".pages a[aria-current] span")?.textContent || page;
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
  for (const link of document.querySelectorAll(".pages a")) {
    if (link.dataset.page === (FURTHER.has(here.page) ? "more" : here.page)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const [every, one] = PAGES[here.page];
  const view = here.id && one ? one : every;
  const root = el("div", { class: `page ${here.page}` });
  put(main, root);
  scrollTo(0, 0);
  document.title = `${named(here.page)} · Hone`;
  try {
    await view.show(root, here, signal);
  } catch (error) {
    if (signal.aborted) return;
    put(root, el("h1", null, "This page cannot be shown"), el("p", { class: "lead" }, error.message),
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
const beside = talks.begin(document.getElementById("talks"), always);
/** A slash begins a command in the chat; elsewhere it leads to what can be searched. */
listen(() => {
  const field = main.querySelector(".composer textarea, input[type='search']");
  if (!field) beside.focus();
  else if (field.matches("textarea")) {
    if (!field.value) field.value = "/";
    field.focus();
    field.dispatchEvent(new Event("input"));
  } else field.focus();
});
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
beside.fresh().catch(complain);
await show();
