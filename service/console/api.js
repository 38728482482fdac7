/* Requests to the service. Addresses are relative, so that the console works behind a prefix. */

import { access, refuse } from "./access.js";

const LIMIT_SECONDS = 20;

/** State of the connection to the service; "change" events follow each change. */
export const connection = Object.assign(new EventTarget(), { problem: null, since: Date.now() });

function report(problem) {
  if ((problem === null) === (connection.problem === null)) return;
  connection.problem = problem;
  connection.since = Date.now();
  connection.dispatchEvent(new Event("change"));
}

/** A request that failed: `status` is 0 if the service does not answer. */
export class RequestError extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `status ${status}`);
    this.name = "RequestError";
    this.status = status;
    this.code = problem.error_code ?? 0;
    this.errors = problem.errors ?? [];
  }
}

/**
 * Send a request and return its response, whose status is a success.
 *
 * `path` is relative to the console, such as "v1/job"; `key` replaces the key of the reader. Errors
 * are `RequestError`; an aborted `signal` raises AbortError, as `fetch` does.
 */
export async function request(path, { signal, key = access.key, headers = {}, ...options } = {}) {
  const sent = key === null ? headers : { ...headers, Authorization: `Bearer ${key}` };
  let response;
  try {
    response = await fetch(path, { ...options, headers: sent, signal, cache: "no-store" });
  } catch (error) {
    if (
      signal?.aborted &&
      !(signal.reason instanceof DOMException && signal.reason.name === "TimeoutError")
    ) {
      throw error;
    }
    report("The service does not answer");
    throw new RequestError(0, { detail: "The service does not answer" });
  }
  report(null);
  if (response.ok) return response;
  let problem = {};
  try {
    problem = (await response.json()) ?? {};
  } catch {
    // A proxy answered instead of the service: its status is the only information.
  }
  if (response.status === 401) refuse(key);
  throw new RequestError(response.status, problem);
}

/** Return the JSON of a GET request; parameters that are null or empty are left out. */
export async function get(path, parameters = {}, signal = undefined) {
  const response = await request(withQuery(path, parameters), { signal: limited(signal) });
  return response.json();
}

/** Return the JSON of a POST request. */
export async function post(path, body, signal = undefined) {
  const response = await request(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json" },
    signal: limited(signal),
  });
  return response.json();
}

/** Add parameters to a path; those that are null or empty are left out. */
export function withQuery(path, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== "");
  const query = new URLSearchParams(given).toString();
  return query ? `${path}?${query}` : path;
}

/** Return the path of a resource, or of a part of it. */
export function resource(kind, name, part = "") {
  return `v1/${kind}/${encodeURIComponent(name)}${part && `/${part}`}`;
}

/** Return null for a request whose answer is 404, which is a normal answer of some routes. */
export async function orNull(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof RequestError && error.status === 404) return null;
    throw error;
  }
}

/** Load the items, a few at a time; return the results in order. */
export async function mapFew(items, load, atOnce = 4) {
  const found = new Array(items.length);
  let next = 0;
  const work = async () => {
    while (next < items.length) {
      const place = next++;
      found[place] = await load(items[place]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, work));
  return found;
}

/** Return a signal that aborts with another one, or when the time limit of requests has passed. */
export function limited(signal) {
  const limit = AbortSignal.timeout(LIMIT_SECONDS * 1000);
  return signal ? AbortSignal.any([signal, limit]) : limit;
}
