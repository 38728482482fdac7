/* A line for each record of GET /v1/alarms: alarms, factored records, changes of lists. */

import { address, given, h } from "./dom.js";
import { duration, number, time } from "./format.js";

/** Return the address of the view of a record. */
export function alarmAddress({ topic, partition, offset, record, timestamp }) {
  const at = record?.detected_at ?? timestamp;
  return address(["alarms", topic, partition, offset], {
    condition: record?.condition ?? null,
    at,
  });
}

/** Describe a record in one line, as a link to its view. */
export function describe(item) {
  const { record, timestamp } = item;
  return h(
    "a",
    { href: alarmAddress(item), class: "alarm" },
    h("time", {}, time(record?.detected_at ?? timestamp)),
    " ",
    h("strong", {}, given(record?.condition ?? item.topic)),
    " ",
    h("span", { class: "what" }, record === null ? `cannot be read: ${item.error}` : what(record)),
    " ",
    record?.late === true ? h("span", { class: "tag" }, "late") : null,
  );
}

function what(record) {
  if (record.change !== undefined) return change(record);
  if (record.record !== undefined) return factored(record);
  if (record.events !== undefined) return combination(record);
  if (isEvent(record.a)) return pair(record);
  return given(JSON.stringify(record).slice(0, 120));
}

/** Return whether a value has the times of an event, as alarms contain it. */
export function isEvent(value) {
  return isNumber(value?.earliest ?? value?.begin) && isNumber(value?.latest ?? value?.end);
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function pair({ a, b, probability }) {
  if (!isEvent(b)) return [named(a), " without B"];
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

function change({ change: kind, rank, similarity, older, younger }) {
  const marks = { entered: "+", left: "−", moved: "~" };
  return [
    `${marks[kind] ?? ""} ${words(kind)}, rank ${rank ?? "–"}: `,
    named(older),
    " and ",
    named(younger),
    isNumber(similarity) ? `, similarity ${number(similarity)}` : null,
  ];
}

function factored(record) {
  if (record.record === "targets")
    return [`table of ${number(record.size)} events of `, given(record.stream)];
  return [named(record.a ?? record.b), ` in ${number(record.pairs)} pairs`];
}

const words = (value) => (typeof value === "string" ? value : "");

/** Name an event by its stream and its id. */
export function named(event) {
  return [given(event?.stream ?? ""), ":", given(event?.id ?? "")];
}

/** Write how far B ends from A. */
export function apart(us) {
  if (us === 0) return "at the same time";
  return us > 0 ? `${duration(us)} apart, B later` : `${duration(-us)} apart, B earlier`;
}
