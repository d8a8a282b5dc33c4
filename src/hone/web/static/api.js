// The API of this server. An error is a sentence that can be shown.

export class Failure extends Error {
  constructor(status, kind, message) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

async function ask(method, path, body, signal) {
  const asked = { method, signal, headers: {}, cache: "no-store" };
  if (method !== "GET") {
    asked.headers["content-type"] = "application/json";
    asked.body = JSON.stringify(body || {});
  }
  let response;
  try {
    response = await fetch(path, asked);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, "unreachable", "The server does not answer. Is hone serve still running?");
  }
  const answer = await response.json();
  if (response.ok) return answer;
  const told = answer.error || { type: "error", message: `The server answered ${response.status}.` };
  if (response.status === 401) told.message = "This browser is signed out. Reload the page to sign in.";
  throw new Failure(response.status, told.type, told.message);
}

export function get(path, query = {}, signal = undefined) {
  const asked = Object.entries(query).filter(([, value]) => value !== "" && value != null && value !== false);
  const text = new URLSearchParams(asked).toString();
  return ask("GET", text ? `${path}?${text}` : path, null, signal);
}

export const post = (path, body) => ask("POST", path, body);
export const write = (path, body) => ask("PUT", path, body);
export const remove = (path) => ask("DELETE", path, null);
export const amend = (path, body) => ask("PATCH", path, body);

/** A path below /api, each part escaped. */
export function at(...parts) {
  return `/api/${parts.map(encodeURIComponent).join("/")}`;
}
