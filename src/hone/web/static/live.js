// News from the server: one stream for the page, one for the conversation that is open.

const KINDS = ["session", "changed", "reviews", "notice", "learned", "review_failed", "reset"];
const listeners = new Set();

/** Calls `act` with the data of each event of these kinds, until `signal` ends it. */
export function on(kinds, act, signal) {
  const listener = { kinds: new Set(kinds), act };
  listeners.add(listener);
  signal.addEventListener("abort", () => listeners.delete(listener));
}

/** Listens to the whole server from a mark on. `tell` learns whether it is heard. */
export function begin(mark, tell, signal) {
  const heard = Object.fromEntries(KINDS.map((kind) => [kind, (data) => hand(kind, data)]));
  follow("/api/events", mark, heard, signal, tell);
}

function hand(kind, data) {
  for (const each of [...listeners]) if (each.kinds.has(kind)) each.act(data, kind);
}

/**
 * One stream; `heard` has a function for each kind that matters. A tab in the background lets go of
 * its stream, because a browser holds only six to one host, and comes back where it left.
 */
export function follow(path, mark, heard, signal, tell = () => {}) {
  let source = null;
  let last = mark;
  const close = () => {
    if (source) source.close();
    source = null;
  };
  const open = () => {
    source = new EventSource(last ? `${path}?${new URLSearchParams({ since: last })}` : path);
    source.onopen = () => tell("on");
    source.onerror = () => tell("off");
    for (const [kind, act] of Object.entries(heard)) {
      source.addEventListener(kind, (event) => {
        last = event.lastEventId;
        act(JSON.parse(event.data));
      });
    }
  };
  const look = () => {
    if (document.hidden) close();
    else if (!source) open();
  };
  document.addEventListener("visibilitychange", look, { signal });
  addEventListener("pagehide", close, { signal });
  addEventListener("pageshow", look, { signal });
  signal.addEventListener("abort", close);
  look();
}
