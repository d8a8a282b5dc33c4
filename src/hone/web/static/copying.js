// Copying: text goes to the clipboard, and the page says that it did.

import { button } from "./dom.js";
import { complain, say } from "./notices.js";

export async function copy(text, told = "Copied.") {
  try {
    await navigator.clipboard.writeText(text);
    say(told);
  } catch {
    complain(new Error("The browser does not allow copying here. Select the text and copy it by hand."));
  }
}

/** A button that copies what `text` gives at that moment. */
export function copier(text, label, name = "Copy") {
  const made = button(name, () => copy(text()), "quiet copy");
  made.setAttribute("aria-label", label);
  return made;
}
