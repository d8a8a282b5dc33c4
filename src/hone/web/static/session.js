// One conversation: what grew from it, what was learned from it, and every word.

import { amend, at, get, post } from "./api.js";
import { card } from "./change.js";
import { button, el, put, renew, way } from "./dom.js";
import { headline, money, origin, plural, share, short, time } from "./format.js";
import { on } from "./live.js";
import { action, complain, say } from "./notices.js";
import { transcript } from "./transcript.js";
import { tree } from "./tree.js";

export async function show(root, here, signal) {
  const wanted = Number(here.query.get("at")) || 0;
  const said = transcript(here.id, () => shared, branches(here.id), signal);
  const [session, grown, learned] = await Promise.all([said.begin(wanted),
    get(at("sessions", here.id, "tree"), {}, signal), get("/api/changes", { session: here.id }, signal)]);
  const own = el("section", { class: "stack", id: "tree" });
  const lessons = el("div", { class: "cards" });
  const draw = (data) => put(own, data.sessions.length > 1
    ? [el("h2", null, "Tree"), tree(data, session.session, signal)] : null);
  const list = (changes) => renew(lessons, changes, (each) => each.id, (each, old) => card(each, again, old));
  const fresh = async () => {
    list((await get("/api/changes", { session: here.id }, signal)).changes);
    draw(await get(at("sessions", here.id, "tree"), {}, signal));
  };
  const again = () => fresh().catch(complain);
  const shared = session.origin === "user" ? Infinity : session.shared;
  said.draw();
  draw(grown);
  list(learned.changes);
  put(root, head(session), own,
    el("h2", null, "Lessons from it"), lessons,
    learned.changes.length ? null : el("p", { class: "empty" }, "None yet."),
    el("h2", null, "Transcript"), said.root);
  on(["session"], (data) => {
    if (data.session === session.session && data.state === "ended") said.forth()?.catch(complain);
  }, signal);
  on(["changed", "learned", "reviews", "reset"], again, signal);
  find(said.log, wanted);
}

function head(session) {
  const usage = session.usage;
  const cached = usage.input ? usage.cached / usage.input : null;
  const bar = el("div", { class: "head" });
  const title = el("h1", { class: "small" }, headline(session));
  const rename = button("Rename", () => put(bar, renaming(session, (text) => {
    put(bar, title, rename);
    if (text !== null) put(title, headline(session));
  })), "quiet");
  put(bar, title, rename);
  return el("div", { class: "head" }, el("p", { class: "back" }, el("a", { href: "#/sessions" }, "Sessions")), bar,
    el("p", { class: "meta" }, `${origin(session.origin)} · ${session.model} · `, time(session.created),
      ` · ${plural(session.total, "message")} · ${short(usage.input + usage.output)} tokens · `
      + `${share(cached)} cached · cost ${money(session.calls ? usage.cost : 0)}`),
    el("p", { class: "acts" }, session.origin === "user" ? own(session) : null,
      session.parent ? el("a", { href: way("sessions", session.parent) }, "Parent conversation") : null));
}

function own(session) {
  return [el("a", { class: "button main", href: way("chat", session.session) }, "Continue"),
    action("Review it now", async () => {
      await post(at("sessions", session.session, "review"), {});
      say("A review is queued.", el("a", { href: "#/reviews" }, "See the queue"));
    }), action("Make a template", async () => {
      const made = await post("/api/templates", { session: session.session });
      say(`The template ${made.name} is made.`, el("a", { href: way("templates", made.name) }, "See it"));
    })];
}

function renaming(session, done) {
  const field = el("input", { type: "text", "aria-label": "Title", value: session.title, maxlength: 200 });
  return el("form", { class: "line", on: { submit: (event) => {
    event.preventDefault();
    amend(at("sessions", session.session), { title: field.value }).then((made) => {
      session.title = made.title;
      done(made.title);
    }, complain);
  } } }, field, el("button", { type: "submit", class: "main" }, "Save"), button("Cancel", () => done(null)));
}

/** A new conversation can begin after any reply. */
function branches(id) {
  return (said) => {
    if (!said.matches(".assistant[data-number]")) return;
    said.querySelector("header").append(action("Branch here", async () => {
      const made = await post(at("sessions", id, "branch"), { at: Number(said.dataset.number) });
      location.hash = way("chat", made.session);
    }, "quiet"));
  };
}

function find(thread, number) {
  const wanted = number && thread.querySelector(`[data-number="${number}"]`);
  if (!wanted) return;
  wanted.classList.add("wanted");
  wanted.scrollIntoView({ block: "center" });
}
