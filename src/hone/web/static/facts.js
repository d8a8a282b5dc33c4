// Below the message: the folder, the model, the mode, how full the window is, and what the conversation cost.

import { at, get, post } from "./api.js";
import { button, el, put } from "./dom.js";
import { money, share, short } from "./format.js";
import { complain, say } from "./notices.js";
import { pick } from "./picker.js";

/** Facts of a conversation. Of a new one, `wanted` is the model that goes with its first message. */
export function facts(talk) {
  const folder = el("span", { class: "folder" });
  const model = button("model", () => own.choose().catch(complain), "quiet");
  const room = el("span", { class: "room" });
  const cost = el("span");
  const root = el("div", { class: "settings" }, folder, model, talk.mode.root, room, cost);
  const own = { root, wanted: "", model: "" };
  const named = (name) => {
    own.model = name;
    put(model, name || "no model");
    model.setAttribute("aria-label", `Model: ${name || "none"}. Change it`);
  };
  own.show = (data) => {
    put(folder, data.folder ? [el("span", { class: "unseen" }, "Folder: "), data.folder.split("/").pop() || data.folder] : null);
    folder.title = data.folder || "";
    if (data.model) named(data.model);
    const part = data.window ? data.tokens / data.window : null;
    put(room, data.window ? [el("meter", { min: 0, max: 1, value: Math.min(1, part), "aria-label": "Context in use" }), ` ${share(part)} of ${short(data.window)}`] : null);
    room.title = data.window ? `${short(data.tokens)} of ${short(data.window)} tokens in the context window` : "";
    put(cost, data.calls ? `cost ${money(data.cost)}` : "");
  };
  own.named = named;
  own.choose = async () => {
    const { models, notes } = await get("/api/models", {}, talk.signal);
    if (!models.length) throw new Error(notes[0] || "No model can be used yet. Run hone setup in a terminal.");
    pick("Which model?", models.map((each) => ({ name: each.name, about: about(each, own.model), run: () => use(each.name).catch(complain) })));
  };
  const use = async (name) => {
    if (!talk.id) {
      own.wanted = name;
      named(name);
      return;
    }
    named((await post(at("sessions", talk.id, "model"), { model: name })).model);
    say(`This conversation now uses ${own.model}.`);
  };
  return own;
}

function about(each, current) {
  const price = each.price ? `$${each.price.input} in, $${each.price.output} out per million tokens` : "price unknown";
  return `${each.name === current ? "in use · " : ""}${short(each.window)} tokens · ${each.local ? "local" : price}`;
}
