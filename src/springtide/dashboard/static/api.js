// The server's HTTP interface, and the token that its controls ask for.

const KEY = "springtide-token";

/** The server said no; `message` is its own sentence. */
export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Nobody answered: the server is down, or the network is. */
export class Unreachable extends Error {}

/** Take the token out of the address, where it could be seen and shared, and keep it as long as this tab lives. */
export function takeToken() {
  const places = [new URLSearchParams(location.hash.slice(1)), new URLSearchParams(location.search)];
  const token = places.map((place) => place.get("token")).find(Boolean);
  if (!token) return;
  sessionStorage.setItem(KEY, token);
  const [hash, query] = places;
  hash.delete("token");
  query.delete("token");
  const rest = (query.size ? `?${query}` : "") + (hash.size ? `#${hash}` : "");
  history.replaceState(null, "", location.pathname + rest);
}

function headers(more = {}) {
  const token = sessionStorage.getItem(KEY);
  return { Accept: "application/json", ...(token ? { "X-Springtide-Token": token } : {}), ...more };
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
  } catch {
    throw new Unreachable("The dashboard's server does not answer.");
  }
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  throw new Refused(body?.error ?? `The server answered ${response.status} to ${path}.`, response.status);
}

function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

const get = (path) => ask(path, { headers: headers() });

export const runs = () => get("/api/runs");
export const run = (id) => get(`/api/runs/${id}`);
export const series = (id, parameters) => get(`/api/runs/${id}/series${query(parameters)}`);
export const frame = (id, interval) => get(`/api/runs/${id}/frames/${interval}`);
export const decisions = (id, parameters) => get(`/api/runs/${id}/decisions${query(parameters)}`);
export const events = (id) => new EventSource(`/api/runs/${id}/events`);

export function control(id, wish) {
  const body = JSON.stringify(wish);
  return ask(`/api/runs/${id}/controls`, { method: "POST", headers: headers({ "Content-Type": "application/json" }), body });
}
