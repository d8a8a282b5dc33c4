// What goes with the next message: pictures and text files, chosen, pasted or dropped. The server takes metadata out.

import { el, put } from "./dom.js";
import { action, complain } from "./notices.js";

const KINDS = ["image/png", "image/jpeg", "image/gif", "image/webp"];

const LARGEST = 200000;
const TALL = 240;

/** `root` names what is held, `take` returns it and forgets it, `choose` opens the list of files. */
export function pictures(field) {
  const root = el("ul", { class: "held", "aria-label": "Attached", "aria-live": "polite" });
  const input = el("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to attach", tabindex: "-1" });
  let held = [];
  const hold = (all) => {
    held = all;
    put(root, held.map((each) => el("li", null, el("span", null, each.name),
      named(action("×", () => hold(held.filter((other) => other !== each)), "quiet"), `Remove ${each.name}`))));
  };
  const add = async (files) => hold([...held, ...await Promise.all([...files].map(read))]);
  const take = (event, files) => {
    if (!files.length) return;
    event.preventDefault();
    add(files).catch(complain);
  };
  input.addEventListener("change", () => {
    add(input.files).catch(complain);
    input.value = "";
    field.focus();
  });
  field.addEventListener("paste", (event) => take(event, [...event.clipboardData.files]));
  field.addEventListener("dragover", (event) => event.preventDefault());
  field.addEventListener("drop", (event) => take(event, [...event.dataTransfer.files]));
  return { root, input, hold, choose: () => input.click(), take: () => {
    const all = held;
    hold([]);
    return all;
  } };
}

function named(made, name) {
  made.setAttribute("aria-label", name);
  return made;
}

/** What a message carries of held files. */
export function carried(held) {
  return { images: held.filter((each) => each.image).map((each) => each.image),
    files: held.filter((each) => each.text !== undefined).map(({ name, text }) => ({ name, text })) };
}

async function read(file) {
  if (KINDS.includes(file.type)) return { name: file.name || "picture", image: await address(file) };
  if (file.size > LARGEST) throw new Error(`${file.name} is too large to attach: ${file.size} bytes, at most ${LARGEST}.`);
  const text = new TextDecoder("utf-8", { fatal: true });
  try {
    return { name: file.name, text: text.decode(await file.arrayBuffer()) };
  } catch {
    throw new Error(`${file.name} is neither text nor a picture Hone knows (PNG, JPEG, GIF, WebP).`);
  }
}

function address(file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => done(reader.result));
    reader.addEventListener("error", () => failed(new Error(`${file.name} cannot be read.`)));
    reader.readAsDataURL(file);
  });
}

/** A picture of a stored message, drawn from its bytes: nothing is loaded. */
export function picture(part) {
  const canvas = el("canvas", { role: "img", "aria-label": `A picture, ${part.media_type}`, class: "drawn" });
  draw(part, canvas).catch(() => canvas.replaceWith(el("p", { class: "meta" }, `(a picture, ${part.media_type})`)));
  return canvas;
}

async function draw(part, canvas) {
  const bytes = Uint8Array.from(atob(part.data), (each) => each.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: part.media_type }));
  const scale = Math.min(1, TALL / bitmap.height, (TALL * 2) / bitmap.width);
  canvas.width = Math.max(1, bitmap.width * scale);
  canvas.height = Math.max(1, bitmap.height * scale);
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
}
