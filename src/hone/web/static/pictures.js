// Pictures that go with the next message: pasted into the field or dropped on it. The server takes their metadata out.

import { el, put } from "./dom.js";
import { plural } from "./format.js";
import { action, complain } from "./notices.js";

const KINDS = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** `root` says how many there are, `take` returns them and forgets them. */
export function pictures(field) {
  const root = el("span", { class: "meta pictures", "aria-live": "polite" });
  let held = [];
  const hold = (all) => {
    held = all;
    put(root, held.length ? [plural(held.length, "picture"), " ", action("Remove", () => hold([]), "quiet")] : null);
  };
  const add = async (event, files) => {
    const found = [...files].filter((file) => KINDS.includes(file.type));
    if (!found.length) return;
    event.preventDefault();
    hold([...held, ...await Promise.all(found.map(read))]);
  };
  field.addEventListener("paste", (event) => add(event, event.clipboardData.files).catch(complain));
  field.addEventListener("dragover", (event) => event.preventDefault());
  field.addEventListener("drop", (event) => add(event, event.dataTransfer.files).catch(complain));
  const take = () => {
    const all = held;
    hold([]);
    return all;
  };
  return { root, hold, take };
}

function read(file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => done(reader.result));
    reader.addEventListener("error", () => failed(new Error(`${file.name} cannot be read.`)));
    reader.readAsDataURL(file);
  });
}
