/* A part of a page that is loaded, shown and refreshed: its loading, broken and old states. */

import { connection } from "./api.js";
import { h, notice, refresh } from "./dom.js";
import { time } from "./format.js";

/**
 * Show data in a container and refresh it until `signal` aborts.
 *
 * `load(signal)` returns the data, `render(data)` nodes. While the page is hidden nothing is
 * requested. If a refresh fails, the old data stays, with a notice that says so. Returns a function
 * that refreshes at once.
 */
export function live(container, load, render, signal, seconds = 5) {
  const warning = h("div", { role: "status" });
  const body = h("div", {}, h("p", { class: "loading", role: "status" }, "Loading…"));
  container.append(warning, body);
  let loadedAt = null;
  let timer;
  let running = false;

  const plan = () => {
    clearTimeout(timer);
    if (!signal.aborted) timer = setTimeout(turn, seconds * 1000);
  };
  const turn = async () => {
    if (document.hidden || running || signal.aborted) return plan();
    running = true;
    try {
      const data = await load(signal);
      if (signal.aborted) return undefined;
      loadedAt = Math.floor(Date.now() / 1000) * 1_000_000;
      refresh(warning);
      refresh(body, render(data));
    } catch (error) {
      if (signal.aborted) return undefined;
      fail(error);
    } finally {
      running = false;
    }
    return plan();
  };
  const fail = (error) => {
    const again = `Trying again every ${seconds} s.`;
    const shown = loadedAt === null ? "" : ` Shown: the state of ${time(loadedAt)}.`;
    refresh(
      warning,
      notice(
        loadedAt === null ? "bad sentence" : "warn sentence",
        `${error.message}.${shown} ${again}`,
      ),
    );
    if (loadedAt === null) refresh(body);
  };
  // As soon as the service or the reader is back.
  const wake = () => {
    if (connection.problem === null && !document.hidden) turn();
  };
  connection.addEventListener("change", wake, { signal });
  document.addEventListener("visibilitychange", wake, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  turn();
  return turn;
}
