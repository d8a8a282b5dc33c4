// Access: the browsers that are signed in, a link for another one, and signing out.

import { at, get, post, remove } from "./api.js";
import { copier } from "./copying.js";
import { el, put, renew } from "./dom.js";
import { time } from "./format.js";
import { back } from "./more.js";
import { action, complain, say } from "./notices.js";

export async function show(root, here, signal) {
  const list = el("ul", { class: "rows plainly" });
  const link = el("div");
  const fresh = async () => {
    const { logins } = await get("/api/logins", {}, signal);
    renew(list, logins, (each) => each.login, (each) => row(each, () => fresh().catch(complain)));
  };
  put(root, el("div", null, back(), el("h1", null, "Access")),
    el("p", { class: "lead" }, "Browsers that are signed in to this server. Signing one out does not affect the others."),
    list, el("p", { class: "acts" }, action("Link for another browser", async () => {
      const { url } = await post("/api/tickets");
      put(link, el("p", { class: "panel" }, el("span", null, "Open this address in the other browser. It works once, within an hour."),
        el("code", { class: "plain" }, url), el("span", null, copier(() => url, "Copy the address"))));
    }), action("Sign out here", async () => {
      await post("/api/logout");
      location.reload();
    })), link);
  await fresh();
}

function row(each, fresh) {
  const out = action("Sign out", async () => {
    await remove(at("logins", each.login));
    say(`${each.label} is signed out.`);
    fresh();
  }, "quiet");
  out.setAttribute("aria-label", `Sign out ${each.label}`);
  return el("li", null, el("div", null, el("span", { class: "title" }, each.label, " ", each.here ? el("span", { class: "mark done" }, "this browser") : null,
    each.by_key ? el("span", { class: "mark" }, "by key") : null),
    el("p", { class: "meta" }, "signed in ", time(each.created), " · last seen ", time(each.used))), each.here ? null : out);
}
