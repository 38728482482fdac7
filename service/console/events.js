/* Server-sent events by `fetch`: `EventSource` sends neither a key nor a first Last-Event-ID. */

import { request, RequestError, withQuery } from "./api.js";

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 30_000;
/* A comment comes every 15 s: after three of them, the connection is dead. */
const SILENCE_MS = 45_000;

/**
 * Follow a stream until `signal` aborts, over any number of connections.
 *
 * While the page is hidden, the stream has no connection; it continues when the page is shown.
 * `open()` returns the id after which the stream begins, or null; it is awaited before the first
 * connection, and again if the service refuses the id. `handlers`: `event(name, data)` for each
 * event, `up()` for each connection, `down(problem, seconds)` for each end of one.
 */
export async function follow(path, parameters, open, handlers, signal) {
  let id = null;
  let wait = FIRST_WAIT_MS;
  while (!signal.aborted) {
    await untilShown(signal);
    if (signal.aborted) return;
    const shown = new AbortController();
    const both = AbortSignal.any([signal, shown.signal]);
    document.addEventListener("visibilitychange", () => shown.abort(), { signal: both });
    let problem = "The stream of alarms ended";
    try {
      if (id === null) id = await open();
      for await (const block of connect(withQuery(path, parameters), id, handlers, both)) {
        wait = FIRST_WAIT_MS;
        if (block.id) id = block.id;
        if (block.data !== "") handlers.event(block.event, block.data);
      }
    } catch (error) {
      problem = error.message;
      // The installation is another one, or the id is not known any more.
      if (error instanceof RequestError && error.status === 422) id = null;
    }
    if (signal.aborted) return;
    if (shown.signal.aborted) continue;
    shown.abort();
    // Readers that were cut off together do not come back together.
    const pause = wait * (0.75 + Math.random() / 2);
    handlers.down(problem, pause / 1000);
    await sleep(pause, signal);
    wait = Math.min(wait * 2, MAX_WAIT_MS);
  }
}

async function* connect(path, id, handlers, signal) {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  const headers = { Accept: "text/event-stream", ...(id === null ? {} : { "Last-Event-ID": id }) };
  let reader;
  try {
    const both = AbortSignal.any([signal, silence.signal]);
    const response = await request(path, { headers, signal: both });
    handlers.up();
    reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new Parser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      yield* parser.add(value);
    }
  } catch (error) {
    if (silence.signal.aborted) throw new Error("The stream of alarms is silent");
    throw error instanceof RequestError ? error : new Error("The stream of alarms broke off");
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

/** Parser of the blocks of a stream, as the HTML standard describes them. */
export class Parser {
  #rest = "";
  #fields = { id: "", event: "", data: [] };

  /** Add a part of the stream, and yield the blocks that it completes. */
  *add(part) {
    const lines = (this.#rest + part).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        const { id, event, data } = this.#fields;
        yield { id, event, data: data.join("\n") };
        this.#fields = { id: "", event: "", data: [] };
      } else this.#take(line);
    }
  }

  #take(line) {
    const colon = line.indexOf(":");
    // A comment begins with a colon: it has no name.
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#fields.data.push(value);
    else if (name === "id" || name === "event") this.#fields[name] = value;
  }
}

function untilShown(signal) {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true, signal });
    signal.addEventListener("abort", resolve, { once: true });
  });
}

function sleep(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
