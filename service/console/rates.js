/* Rates of counters, from the values that the console has seen in the last minute. */

const WINDOW_MS = 60_000;
/* Shorter spans would show the rhythm of the job's batches. */
const MIN_SPAN_MS = 4_000;

/** Values of counters over time. */
export class Rates {
  #seen = new Map();

  /**
   * Add the present value of a counter, and return its rate per second.
   *
   * Null until the values span some seconds. A counter that falls, because its stream was declared
   * again, begins again.
   */
  add(name, value, now = performance.now()) {
    const values = (this.#seen.get(name) ?? []).filter(([at]) => at >= now - WINDOW_MS);
    if (values.length && values.at(-1)[1] > value) values.length = 0;
    values.push([now, value]);
    this.#seen.set(name, values);
    const [first, before] = values[0];
    return now - first < MIN_SPAN_MS ? null : ((value - before) * 1000) / (now - first);
  }
}

/** Counters of all views: a reader who changes the view keeps the rates. */
export const rates = new Rates();
