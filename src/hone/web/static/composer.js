// Where messages are written. While an answer comes, what is sent waits in line and goes when the answer is there.

import { at, post } from "./api.js";
import { button, el, put } from "./dom.js";
import { action } from "./notices.js";
import { carried, pictures } from "./pictures.js";
import { suggestions } from "./suggest.js";

const SKILL = /^\/([a-z0-9-]+)(?:\s+([\s\S]*))?$/;

/** `send(body, shown)` says whether a message was taken. */
export function composer(talk, send) {
  let line = [];
  const field = el("textarea", { rows: "1", "aria-label": "Message", placeholder: "Write to Hone",
    "aria-autocomplete": "list", "aria-controls": "suggest", on: { keydown: (event) => key(event) } });
  const images = pictures(field);
  const list = suggestions(field);
  const attach = named(button("+", images.choose, "quiet attach"), "Attach pictures or text files");
  const queue = el("ol", { class: "queue", "aria-label": "Queue" });
  const sender = el("button", { type: "submit", class: "main" }, "Send");
  const stop = action("Stop", () => post(at("sessions", talk.id, "interrupt")));
  stop.hidden = true;
  const form = el("form", { class: "composer", on: { submit: (event) => {
    event.preventDefault();
    submit();
  } } }, attach, images.input, field, sender, stop);

  const key = (event) => {
    if (list.key(event)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (event.key === "Escape" && talk.asking.waits) talk.asking.focus();
    else if (event.key === "Escape" && talk.busy && !stop.hidden) stop.click();
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  };
  const submit = () => {
    const draft = { text: field.value, images: images.take() };
    if (!draft.text.trim()) {
      images.hold(draft.images);
      return;
    }
    field.value = "";
    if (talk.busy || line.length) hold([...line, draft]);
    else say(draft);
  };
  const say = async (draft) => {
    if (await send({ ...spoken(draft.text), ...carried(draft.images) }, draft.text)) return;
    restore(draft);
  };
  const restore = (draft) => {
    field.value = field.value ? `${draft.text}\n${field.value}` : draft.text;
    images.hold(draft.images);
  };
  const hold = (drafts) => {
    line = drafts;
    put(queue, line.map((draft, place) => el("li", null, el("span", null, draft.text),
      place || talk.busy ? null : button("Send now", next, "quiet"),
      button("Edit", () => {
        hold(line.filter((each) => each !== draft));
        restore(draft);
        field.focus();
      }, "quiet"),
      named(button("×", () => hold(line.filter((each) => each !== draft)), "quiet"), `Remove from the queue: ${draft.text}`))));
  };
  const next = () => {
    const [first, ...rest] = line;
    if (!first) return;
    hold(rest);
    say(first);
  };
  return {
    root: el("div", { class: "writing" }, list.root, queue, images.root, form),
    field,
    next,
    write: (text) => {
      field.value = text;
      field.focus();
    },
    busy: (state) => {
      put(sender, state ? "Queue" : "Send");
      stop.hidden = !state;
      hold(line);
    },
  };
}

function named(made, name) {
  made.setAttribute("aria-label", name);
  return made;
}

/** A message that begins with /name goes with that skill. */
function spoken(text) {
  const found = SKILL.exec(text.trim());
  return found ? { text: found[2] || `Use the skill ${found[1]}.`, skills: [found[1]] } : { text };
}
