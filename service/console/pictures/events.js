/* Events as alarms contain them, on one time axis. */

import { isTime, time, written } from "../format.js";
import { lanes } from "./lanes.js";

/**
 * Draw events on an axis that begins with the earliest time; null: none of them has times.
 *
 * Each has a `label` and an `event`. `words` is the caption. `more(zero, lanes)` returns further
 * lanes, from the lanes of the events.
 */
export function onAxis(events, words, more = () => []) {
  const rows = events.map((it, place) => [it, place, span(it.event)]).filter(([, , it]) => it);
  if (!rows.length) return null;
  const zero = Math.min(...rows.map(([, , [from]]) => from));
  const drawn = rows.map(([{ label, event }, place, [from, to]]) => ({
    label: `${label}  ${written(event.stream)}:${written(event.id)}`,
    kind: place ? "b" : "a",
    from: from - zero,
    to: to - zero,
    buckets: isHistogram(event.histogram)
      ? event.histogram.map(({ lo, hi, p }) => ({ lo: lo - zero, hi: hi - zero, p }))
      : null,
  }));
  const spoken = drawn
    .map((it) => `${it.label} from ${time(it.from + zero)} to ${time(it.to + zero)}`)
    .join("; ");
  return lanes([...drawn, ...more(zero, drawn)], `0 = ${time(zero)}`, `${words}: ${spoken}`, words);
}

function span(event) {
  const from = event.earliest ?? event.begin ?? event.time;
  const to = event.latest ?? event.end ?? event.time;
  return isTime(from) && isTime(to) ? [from, to] : null;
}

const isHistogram = (value) => Array.isArray(value) && value.length > 0 && value.every(isBucket);
const isBucket = (it) => isTime(it?.lo) && isTime(it.hi) && it.lo <= it.hi && Number(it.p) >= 0;
