// Team: what colleagues share, what waits for a second person, and what a text would tell before it is shared.

import { at, get, post } from "./api.js";
import { el, put } from "./dom.js";
import { time } from "./format.js";
import { back } from "./more.js";
import { action, complain, say } from "./notices.js";

export async function show(root, here, signal) {
  const state = el("div", { class: "stack" });
  const fresh = async () => put(state, drawn(await get("/api/team", {}, signal), again));
  const again = () => fresh().catch(complain);
  put(root, el("div", null, back(), el("h1", null, "Team")),
    el("p", { class: "lead" }, "What you and your colleagues share. It reaches everybody's next prompt after a second person approves it."), state);
  await fresh();
}

function drawn(data, again) {
  if (data.why) return el("p", { class: "empty" }, data.why);
  return [el("h2", null, "Propose"), proposing(again),
    el("h2", null, "Waiting for a second person"), data.pending.length ? data.pending.map((each) => waiting(each, again)) : el("p", { class: "empty" }, "Nothing waits."),
    el("h2", null, "Shared"), data.entries.length + data.skills.length ? [data.entries.map((each) => shared(each, each.text, again)),
      data.skills.map((each) => shared(each, `team/${each.name}: ${each.description}`, again))] : el("p", { class: "empty" }, "Your team shares nothing yet.")];
}

function proposing(again) {
  const words = el("input", { type: "text", required: true, "aria-label": "Words or change number of an entry, or the name of a skill" });
  const kind = el("select", { "aria-label": "What to propose" }, el("option", { value: "entry" }, "an entry of mine"), el("option", { value: "skill" }, "a skill of mine"));
  const seen = el("div", { class: "stack", "aria-live": "polite" });
  const look = async () => {
    const draft = { [kind.value]: words.value };
    const shown = await post("/api/team/proposals", draft);
    put(seen, content(shown), shown.refused ? el("p", { class: "bad" }, "A secret is never shared.") : el("p", { class: "acts" }, action("Propose exactly this", async () => {
      const made = await post("/api/team/proposals", { ...draft, seal: shown.seal });
      say(`Proposed as team ${made.change}. A second person must approve it.`);
      again();
    }, "main")));
  };
  return [el("p", { class: "filters" }, kind, words, action("Look at it first", look, "main")), seen];
}

function content(shown) {
  return [Object.entries(shown.texts).map(([file, text]) => [file ? el("h3", null, file) : null, el("pre", { class: "plain", tabindex: "0" }, text)]),
    shown.exposures.length ? el("table", null, el("caption", null, "Look at this before others read it"),
      el("thead", null, el("tr", null, ["what", "words", "line:column"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", null, shown.exposures.map((each) => el("tr", null, el("th", { scope: "row" }, each.kind), el("td", null, each.text), el("td", null, each.place)))))
      : el("p", { class: "meta" }, "No names, addresses, paths, hosts or private matters were found. Read it all the same."),
    shown.remarks.map((each) => el("p", { class: "bad" }, each))];
}

function waiting(each, again) {
  const answer = (deed, body) => async () => {
    await post(at("team", each.change, deed), body);
    again();
  };
  return el("article", { class: "change pending" }, el("header", null, el("h3", null, each.skill ? `Skill ${each.skill}` : "Entry"),
    el("p", { class: "meta" }, `team ${each.change}, from ${each.sharer}, `, time(each.at), each.reason ? `: ${each.reason}` : "")), content(each),
  el("p", { class: "acts" }, each.mine ? el("span", { class: "meta" }, "You proposed it; somebody else must approve it.") : action("Approve for everybody", answer("approve", { seal: each.seal }), "main"),
    action("Reject", answer("reject", {}))));
}

function shared(each, text, again) {
  return el("article", { class: "change" }, el("p", { class: "plain" }, text),
    el("p", { class: "meta" }, `team ${each.change}, shared by ${each.sharer}, approved by ${each.approver}`),
    el("p", { class: "acts" }, action("Undo for everybody", async () => {
      await post(at("team", each.change, "undo"), {});
      again();
    })));
}
