// Where a reader stands in a conversation. Who is at the end stays there while it grows.

const NEAR = 80;

/** Begins to watch. Parts far from the view get their true height late, so each growth counts. */
export function stayAtEnd(talk) {
  const { thread } = talk;
  talk.end = false;
  const stay = () => {
    if (talk.end) thread.scrollTop = thread.scrollHeight;
  };
  thread.addEventListener("scroll", () => {
    talk.end = thread.scrollHeight - thread.clientHeight - thread.scrollTop < NEAR;
  }, { passive: true });
  // What somebody unfolds stays where it was pressed.
  thread.addEventListener("click", () => {
    talk.end = false;
  }, true);
  const watch = new ResizeObserver(stay);
  for (const part of thread.children) watch.observe(part);
  talk.signal.addEventListener("abort", () => watch.disconnect());
}

/** To the end, if the reader is there. */
export function down(talk, force = false) {
  talk.end ||= force;
  if (talk.end) talk.thread.scrollTop = talk.thread.scrollHeight;
}
