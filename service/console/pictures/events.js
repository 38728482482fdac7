/* Events as alarms contain them, on one time axis. */

import { isTime, time, written } from "../format.js";
import { lanes } from "./lanes.js";

/**
 * Draw events on an axis that begins with the earliest time.
 *
 * A row is a label before the name of the event, the event, and a class. `words` is the caption.
 * `more(zero, lanes)` returns further lanes, from the lanes of the events.
 */
export function onAxis(rows, words, more = () => []) {
  const times = rows.map(([, it]) => [
    it.earliest ?? it.begin ?? it.time,
    it.latest ?? it.end ?? it.time,
  ]);
  const zero = Math.min(...times.map(([from]) => from));
  const drawn = rows.map(([label, it, kind], place) => ({
    label: `${label}${written(it.stream)}:${written(it.id)}`,
    kind,
    from: times[place][0] - zero,
    to: times[place][1] - zero,
    buckets: isHistogram(it.histogram)
      ? it.histogram.map(({ lo, hi, p }) => ({ lo: lo - zero, hi: hi - zero, p }))
      : null,
  }));
  const spoken = drawn
    .map((it) => `${it.label} from ${time(it.from + zero)} to ${time(it.to + zero)}`)
    .join("; ");
  return lanes([...drawn, ...more(zero, drawn)], `0 = ${time(zero)}`, `${words}: ${spoken}`, words);
}

const isHistogram = (value) => Array.isArray(value) && value.length > 0 && value.every(isBucket);
const isBucket = (it) => isTime(it?.lo) && isTime(it.hi) && it.lo <= it.hi && Number(it.p) >= 0;
