/* Conditions: state, alarms seen beside those that chance explains, hit ratio. */

import { get, mapFew, orNull, resource } from "../api.js";
import { chancePerHour } from "../chance.js";
import { given, h, link, state, table } from "../dom.js";
import { age, number, percent } from "../format.js";
import { live } from "../live.js";
import { PAGE, pages } from "../paging.js";
import { rates } from "../rates.js";

const COLUMNS = [
  "Condition",
  "Kind",
  "State",
  "#Alarms",
  "#Alarms/h now",
  "#By chance/h",
  "#Hit ratio",
  "#Last alarm",
];

export function showConditions({ body, parameters, signal }) {
  const after = parameters.get("after") ?? "";
  live(
    body,
    (it) => load(after, it),
    (it) => render(after, it),
    signal,
  );
}

async function load(after, signal) {
  const page = await get("v1/conditions", { limit: PAGE, after }, signal);
  const streams = new Map();
  const items = await mapFew(page.items, (stored) => loadOne(stored, streams, signal));
  return { items: items.filter((it) => it !== null), next: page.next };
}

async function loadOne(stored, streams, signal) {
  const status = await orNull(get(resource("conditions", stored.name, "status"), {}, signal));
  if (status === null) return null;
  return { stored, status, chance: await estimate(stored, status, streams, signal) };
}

/** Return the chance alarms per hour of a condition; `streams` keeps the answers of one refresh. */
export async function estimate(stored, status, streams, signal) {
  const names = Object.keys(status.streams);
  for (const it of names) {
    if (!streams.has(it))
      streams.set(it, orNull(get(resource("streams", it, "status"), {}, signal)));
  }
  const found = await Promise.all(names.map((it) => streams.get(it)));
  if (found.includes(null)) return null;
  return chancePerHour(
    stored,
    Object.fromEntries(found.map((it) => [it.name, it.seen.events])),
    signal,
  );
}

function render(after, { items, next }) {
  if (!items.length) {
    return [
      h("p", { class: "empty" }, "No condition is registered. Try one before you register it: "),
      link(["validate"], {}, "Validate a condition"),
    ];
  }
  return [
    table("Conditions", COLUMNS, items.map(row), { isTitled: true }),
    h(
      "p",
      { class: "hint" },
      "Rates are those of the last minute. By chance: ",
      "expected of unrelated streams at these rates, with one key.",
    ),
    pages("conditions", after, next),
  ];
}

function row({ stored, status, chance }) {
  return [
    link(["conditions", stored.name], {}, given(stored.name)),
    stored.document.kind,
    conditionState(status),
    number(status.alarms),
    alarmsPerHour(status),
    number(chance),
    percent(status.hit_ratio),
    age(status.last_alarm_at),
  ];
}

/** Write the alarms per hour in the last minute. */
export function alarmsPerHour({ name, alarms }) {
  const found = rates.add(`alarms/${name}`, alarms);
  return found === null ? "–" : number(found * 3600);
}

const KINDS = { running: "good", paused: "", waiting: "warn", pending: "warn", failed: "bad" };

/** Build the state of a condition in a word. */
export function conditionState({ state: word, job_up: isUp }) {
  return isUp ? state(word, KINDS[word] ?? "") : state(`${word}, job is down`, "bad");
}
