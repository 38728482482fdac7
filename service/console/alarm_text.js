/* A line for each record of GET /v1/alarms: alarms, factored records, changes of lists. */

import { address, given, h, moment } from "./dom.js";
import { duration, isTime, number, written } from "./format.js";

/* Other strings cannot be the name of a condition: the service would refuse to search for them. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;

/** Describe a record in one line: an item of a list, with a link to the view of the record. */
export function describe(item) {
  const { topic, partition, offset, timestamp, record } = item;
  const { condition, detected_at: detected = timestamp } = record ?? {};
  const href = address(["alarms", topic, partition, offset], {
    condition: typeof condition === "string" && NAME.test(condition) ? condition : null,
    at: isTime(detected) && detected >= 0 ? detected : null,
  });
  return h(
    "li",
    { "data-key": href },
    h(
      "a",
      { href, class: "alarm" },
      moment(isTime(detected) ? detected : timestamp),
      " ",
      h("strong", {}, given(condition ?? topic)),
      " ",
      h("span", { class: "what" }, words(item)),
      " ",
      record?.late === true ? h("span", { class: "tag" }, "late") : null,
    ),
  );
}

/* A record that Coincide did not write may have any shape. */
function words({ record, error, description }) {
  if (record === null) return `cannot be read: ${error}`;
  try {
    return what(record, description);
  } catch {
    return "cannot be shown";
  }
}

/* Built-in kinds have their own lines; the service describes the results of all others. */
function what(record, description) {
  if (record.change !== undefined && isNamed(record.older) && isNamed(record.newer))
    return change(record);
  if (record.record !== undefined) return factored(record);
  if (record.events !== undefined) return combination(record);
  if (isEvent(record.a) && (isMissing(record.b) || isEvent(record.b))) return pair(record);
  return given(description ?? JSON.stringify(record).slice(0, 120));
}

const isNamed = (event) => typeof event?.stream === "string" && typeof event?.id === "string";

/** Return whether a value has the times of an event, as alarms contain it. */
export function isEvent(value) {
  return isTime(value?.earliest ?? value?.begin) && isTime(value?.latest ?? value?.end);
}

/** Return whether an alarm does not have an event. */
export const isMissing = (event) => event === undefined || event === null;

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function pair({ a, b, probability }) {
  if (isMissing(b)) return [named(a), " without B"];
  return [
    named(a),
    " and ",
    named(b),
    `, ends ${apart(b.latest - a.latest)}`,
    isNumber(probability) ? `, probability ${number(probability)}` : null,
  ];
}

function combination({ type, events }) {
  const shown = Object.entries(events ?? {}).slice(0, 6);
  return [
    given(type),
    ": ",
    shown.map(([alias, it], place) => [place ? ", " : "", given(alias), " = ", named(it)]),
  ];
}

function change({ change: kind, rank, similarity, distance, older, newer }) {
  const marks = { entered: "+ ", left: "− ", moved: "~ " };
  return [
    [marks[written(kind)], given(kind), `, rank ${rank ?? "–"}: `],
    named(older),
    " and ",
    named(newer),
    isNumber(similarity) ? `, similarity ${number(similarity)}` : null,
    isNumber(distance) ? `, distance ${number(distance)}` : null,
  ];
}

function factored(record) {
  if (record.record === "targets")
    return [`table of ${number(record.size)} events of `, given(record.stream)];
  return [named(record.a ?? record.b), ` in ${number(record.pairs)} pairs`];
}

/** Name an event by its stream and its id. */
export function named(event) {
  return [given(event?.stream ?? ""), ":", given(event?.id ?? "")];
}

/** Write how far B ends from A. */
export function apart(us) {
  if (us === 0) return "at the same time";
  return us > 0 ? `${duration(us)} apart, B later` : `${duration(-us)} apart, B earlier`;
}
