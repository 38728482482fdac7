/* Chance alarms of a condition at the rates that the console has seen. */

import { post } from "./api.js";
import { rates } from "./rates.js";

/* The answer changes with the rates only: it is kept for this time. */
const KEPT_MS = 15_000;
const known = new Map();

/**
 * Return the number of chance alarms per hour, for one key, or null if it is not known.
 *
 * `seen` has the number of events of each stream, by name. The estimate needs the rates of all
 * streams, and is not made for every kind of condition.
 */
export async function chancePerHour({ name, version, document }, seen, signal) {
  const found = Object.fromEntries(
    Object.entries(seen).map(([stream, events]) => [stream, rates.add(`events/${stream}`, events)]),
  );
  const kept = known.get(name);
  if (kept?.version === version && performance.now() - kept.at < KEPT_MS) return kept.value;
  if (Object.values(found).some((it) => it === null)) return null;
  const answer = await post(
    "v1/conditions:validate",
    { condition: document, rates: found },
    signal,
  );
  const value = answer.derived?.chance_alarms_per_hour ?? null;
  known.set(name, { version, at: performance.now(), value });
  return value;
}
