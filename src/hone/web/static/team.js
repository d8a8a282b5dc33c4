// Team: what colleagues share, what waits for a second person, and what a text would tell before it is shared.

import { at, get, post } from "./api.js";
import { el, put } from "./dom.js";
import { time } from "./format.js";
import { back } from "./more.js";
import { action, complain, say } from "./notices.js";

const ASKED = { entry: "Some of its words, or its change number", skill: "The name of the skill" };

export async function show(root, here, signal) {
  const state = el("div", { class: "stack" });
  const fresh = async () => put(state, drawn(await get("/api/team", {}, signal), again));
  /** After a deed: what is said, and the list with the focus at the heading `name`, since the button is gone. */
  const again = async (told, name) => {
    await fresh();
    say(told);
    state.querySelector(`[data-part="${name}"]`)?.focus();
  };
  put(root, el("div", null, back(), el("h1", null, "Team")),
    el("p", { class: "lead" }, "What you and your colleagues share. It reaches everybody's next prompt after a second person approves it."), state);
  await fresh();
}

function drawn(data, again) {
  if (data.why) return el("p", { class: "empty" }, data.why);
  return [proposing(again),
    heading("waiting", "Waiting for a second person"), data.pending.length ? data.pending.map((each) => waiting(each, again)) : el("p", { class: "empty" }, "Nothing waits."),
    heading("shared", "Shared"), data.entries.length + data.skills.length ? [data.entries.map((each) => shared(each, each.text, again)),
      data.skills.map((each) => shared(each, `team/${each.name}: ${each.description}`, again))] : el("p", { class: "empty" }, "Your team shares nothing yet.")];
}

function heading(part, text) {
  return el("h2", { "data-part": part, tabindex: "-1" }, text);
}

function proposing(again) {
  const words = el("input", { type: "text", required: true, "aria-label": ASKED.entry, placeholder: ASKED.entry });
  const reason = el("input", { type: "text", "aria-label": "Why, for your colleagues", placeholder: "Why, for your colleagues (optional)" });
  const seen = el("div", { class: "stack", "aria-live": "polite" });
  const kind = el("select", { "aria-label": "What to propose", on: { change: () => {
    words.placeholder = ASKED[kind.value];
    words.setAttribute("aria-label", ASKED[kind.value]);
    put(seen);
  } } }, el("option", { value: "entry" }, "an entry of mine"), el("option", { value: "skill" }, "a skill of mine"));
  const look = async () => {
    put(seen);
    const draft = { [kind.value]: words.value.trim() };
    const shown = await post("/api/team/proposals", draft);
    put(seen, content(shown), shown.refused ? el("p", { class: "bad" }, "A secret is never shared.") : el("p", { class: "acts" }, reason, action("Propose exactly this", async () => {
      const made = await post("/api/team/proposals", { ...draft, seal: shown.seal, reason: reason.value.trim() });
      await again(`Proposed as team ${made.change}. A second person must approve it.`, "waiting");
    }, "main")));
  };
  return el("form", { class: "panel", on: { submit: (event) => {
    event.preventDefault();
    look().catch(complain);
  } } }, el("h2", null, "Propose"), el("p", { class: "acts" }, kind, words, el("button", { type: "submit", class: "main" }, "Look at it first")), seen);
}

function content(shown) {
  return [Object.entries(shown.texts).map(([file, text]) => [file ? el("h3", null, file) : null, el("pre", { class: "plain", tabindex: "0" }, text)]),
    shown.exposures.length ? el("table", { class: "told" }, el("caption", null, "Look at this before others read it"),
      el("thead", null, el("tr", null, ["what", "words", "line:column"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", null, shown.exposures.map((each) => el("tr", null, el("th", { scope: "row" }, each.kind), el("td", { class: "plain" }, each.text), el("td", null, each.place)))))
      : el("p", { class: "meta" }, "No names, addresses, paths, hosts or private matters were found. Read it all the same."),
    shown.remarks.map((each) => el("p", { class: "bad" }, each))];
}

function waiting(each, again) {
  const approve = action("Approve for everybody", async () => {
    await post(at("team", each.change, "approve"), { seal: each.seal });
    await again("Approved. It is in everybody's next prompt.", "shared");
  }, "main");
  const reject = action(each.mine ? "Withdraw" : "Reject", async () => {
    await post(at("team", each.change, "reject"), {});
    await again(each.mine ? "Withdrawn." : "Rejected.", "waiting");
  });
  return el("article", { class: "change pending" }, el("header", null, el("h3", null, each.skill ? `Skill ${each.skill}` : "Entry"),
    el("p", { class: "meta" }, `team ${each.change}, from ${each.sharer}, `, time(each.at), each.reason ? `: ${each.reason}` : "")), content(each),
  el("p", { class: "acts" }, each.mine ? el("span", { class: "meta" }, "You proposed it; somebody else must approve it.") : each.refused ? el("span", { class: "bad" }, "A secret is never shared.") : approve, reject));
}

function shared(each, text, again) {
  return el("article", { class: "change" }, el("p", { class: "plain" }, text),
    el("p", { class: "meta" }, `team ${each.change}, shared by ${each.sharer}, approved by ${each.approver}`),
    each.undoable ? el("p", { class: "acts" }, action("Undo for everybody", async () => {
      await post(at("team", each.change, "undo"), {});
      await again("Undone. It is gone from everybody's next prompt.", "shared");
    })) : null);
}
