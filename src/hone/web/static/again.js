// What can be done with a message: copy it, send it again, change it, branch from it, take files back.

import { at, get, post } from "./api.js";
import { copy } from "./copying.js";
import { button, el, put, way } from "./dom.js";
import { plural } from "./format.js";
import { action, complain, say } from "./notices.js";
import { pick } from "./picker.js";
import { why } from "./why.js";

/** Adds the buttons of a stored message. `turns` are the turns that changed files, by the message that began them. */
export function equip(talk, element, each, begun) {
  const header = element.querySelector("header");
  const items = choices(talk, element, each, begun);
  if (!items.length) return;
  const direct = items.filter((item) => item.direct).map((item) => {
    const made = button(item.direct, item.run, "quiet direct");
    made.setAttribute("aria-label", `${item.direct} number ${each.number}`);
    return made;
  });
  const more = button("⋯", () => pick(`Message ${each.number}`, items), "quiet more-acts");
  more.setAttribute("aria-label", `More about number ${each.number}`);
  header.append(...direct, more);
}

function choices(talk, element, each, begun) {
  const text = each.parts.filter((part) => part.kind === "text").map((part) => part.text).join("\n\n").trim();
  const own = each.role === "user" && begun;
  const asked = own ? each.number : talk.asked(each.number);
  const list = [];
  if (text) list.push({ name: "Copy", about: "the text as it was written", run: () => copy(text) });
  if (own) list.push({ name: "Edit and send again", about: "in a new conversation with what came before; this one is kept", direct: "Edit", run: () => edit(talk, element, each, text) });
  if (asked) list.push({ name: "Retry", about: "ask for another answer; this one is kept", direct: own ? "" : "Retry", run: () => resend(talk, asked).catch(complain) });
  if (each.role === "assistant") list.push({ name: "Why", about: "what Hone knows that shaped this answer", direct: "Why", run: () => why(talk, element, each.number).catch(complain) });
  if (each.role === "assistant") list.push({ name: "Branch", about: "a new conversation that shares everything up to here", direct: "", run: () => branch(talk, each.number).catch(complain) });
  if (own) list.push({ name: "Rewind", about: "take back the files, the conversation, or both, to before this message", run: () => rewind(talk, each.number).catch(complain) });
  return list;
}

/** Sends a message once more, with other words if there are any. */
export async function resend(talk, number, text = "") {
  const made = await post(at("sessions", talk.id, "again"), { message: number, text });
  location.hash = way("chat", made.session);
}

export async function branch(talk, number = null) {
  const made = await post(at("sessions", talk.id, "branch"), number ? { at: number } : {});
  location.hash = way("chat", made.session);
}

export function edit(talk, element, each, text) {
  const body = element.querySelector(".body");
  const before = [...body.childNodes];
  const field = el("textarea", { rows: "3", "aria-label": `Edit number ${each.number}` });
  field.value = text;
  const leave = () => {
    put(body, before);
    element.classList.remove("editing");
  };
  const save = async () => {
    if (!field.value.trim()) throw new Error("A message needs words.");
    await resend(talk, each.number, field.value);
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    save().catch(complain);
  });
  element.classList.add("editing");
  put(body, field, el("p", { class: "acts" }, action("Send again", save, "main"), button("Cancel", leave),
    el("span", { class: "meta" }, "The old conversation is kept.")));
  field.focus();
}

/** Says first what would be done, then does it. */
export async function rewind(talk, number) {
  const { turns } = await get(at("sessions", talk.id, "checkpoints"), {}, talk.signal);
  const turn = turns.find((each) => each.message !== null && each.message >= number && !each.taken_back);
  const plan = turn ? await post(at("sessions", talk.id, "rewind"), { turn: turn.turn, dry_run: true }) : { files: [], left: [] };
  const back = async (conversation) => {
    const done = await post(at("sessions", talk.id, "rewind"), { turn: turn.turn });
    say(`Took back ${plural(done.files.length, "file")}.`, action("Redo", async () => {
      await post(at("sessions", talk.id, "redo"));
      say("The files are as they were before the rewind.");
    }));
    if (conversation) await leave();
  };
  const leave = async () => {
    if (number > 1) await branch(talk, number - 1);
    else location.hash = "#/chat";
  };
  const paths = plan.files.map((each) => each.path.split("/").pop()).join(", ");
  const files = plan.files.length ? `${plural(plan.files.length, "file")}: ${paths}` : "";
  const left = plan.left.length ? `; ${plan.left.length} left alone: ${plan.left[0].why}` : "";
  pick(`Rewind to before message ${number}`, [
    ...(files ? [{ name: "Files and conversation", about: files + left, run: () => back(true).catch(complain) },
      { name: "Files only", about: files + left, run: () => back(false).catch(complain) }] : []),
    { name: "Conversation only", about: files ? "files stay as they are" : "no file was changed since then", run: () => leave().catch(complain) },
  ]);
}
