/* One alarm, explained: its events on a time axis, the window, the regions and the decision. */

import { get } from "../api.js";
import { isEvent, isMissing, named } from "../alarm_text.js";
import { broken, facts, given, h, link, moment, notice } from "../dom.js";
import { isTime, number } from "../format.js";
import { onAxis } from "../pictures/events.js";
import { pairExplanation, searchedExplanation } from "./explanation.js";

export async function showAlarm({ body, names, parameters, signal }) {
  body.replaceChildren(h("p", { class: "loading", role: "status" }, "Loading…"));
  let item;
  try {
    item = await find(names, parameters, signal);
  } catch (error) {
    const again = () => showAlarm({ body, names, parameters, signal });
    if (!signal.aborted) body.replaceChildren(broken(error, again));
    return;
  }
  if (signal.aborted) return;
  body.replaceChildren(...(item === null ? [missing(names)] : render(item, signal)));
}

/* The list has no address for one alarm: its moment narrows the search. */
async function find({ topic, partition, offset }, parameters, signal) {
  const [at, condition] = [parameters.get("at"), parameters.get("condition")];
  const place = [topic, partition, offset].join("/");
  let after = null;
  do {
    const asked = { condition, since: at, until: at, limit: 1000, after };
    const { items, next } = await get("v1/alarms", asked, signal);
    const found = items.find((it) => [it.topic, it.partition, it.offset].join("/") === place);
    if (found) return found;
    after = next;
  } while (after !== null);
  return null;
}

function missing({ topic, partition, offset }) {
  return notice(
    "warn",
    h("p", {}, "This alarm is not in the memory of the service any more. Kafka may still have it:"),
    h(
      "p",
      {},
      "topic ",
      given(topic),
      ", partition ",
      given(partition),
      ", offset ",
      given(offset),
    ),
    h("p", {}, link(["alarms"], {}, "Recent alarms")),
  );
}

function render(item, signal) {
  const { record } = item;
  const raw = h(
    "details",
    {},
    h("summary", {}, "Record"),
    h("pre", { tabindex: "0" }, JSON.stringify(record ?? item, null, 2)),
  );
  if (record === null) return [notice("bad", `The record cannot be read: ${item.error}`), raw];
  try {
    return [summary(item), picture(record, signal), raw].flat().filter((it) => it !== null);
  } catch {
    // A record that Coincide did not write may have any shape.
    return [notice("bad", "The fields of this record cannot be shown as those of an alarm."), raw];
  }
}

function summary({ topic, partition, offset, record }) {
  const { condition, detected_at: detected, probability, threshold } = record;
  const name = condition === undefined ? null : given(condition);
  return facts([
    ["Condition", typeof condition === "string" ? link(["conditions", condition], {}, name) : name],
    ["Kind", record.kind === undefined ? null : given(record.kind)],
    ["Detected", isTime(detected) ? moment(detected) : null],
    ["A", isEvent(record.a) ? h("span", {}, named(record.a)) : null],
    ["B", isEvent(record.b) ? h("span", {}, named(record.b)) : null],
    ["Join key", record.a?.key === undefined || record.a.key === null ? null : given(record.a.key)],
    ["Probability", typeof probability === "number" ? number(probability) : null],
    ["Threshold", threshold === undefined || threshold === null ? null : given(threshold)],
    ["Decided by", record.decided_by === undefined ? null : given(record.decided_by)],
    ["Late", record.late === true ? "yes: an event came later than max_delay" : null],
    ["Pairs", typeof record.pairs === "number" ? number(record.pairs) : null],
    ["Record", h("span", {}, given(topic), `, partition ${partition}, offset ${offset}`)],
  ]);
}

function picture(record, signal) {
  if (record.change !== undefined) return [sets(record), searchedExplanation(record, signal)];
  if (record.events !== undefined)
    return [combination(record), searchedExplanation(record, signal)];
  if (isEvent(record.a) && isEvent(record.b)) return pairExplanation(record, signal);
  const [alone, ...others] = [record.a, record.b].filter((it) => !isMissing(it));
  if (!isEvent(alone) || others.length) return null;
  const words =
    record.record === undefined
      ? "No B satisfies the condition with A."
      : "The event and its pairs with the targets of a table.";
  return [onAxis([["", alone, "a"]], words), notice("", words)];
}

function combination({ events }) {
  const rows = Object.entries(events ?? {}).filter(([, it]) => isEvent(it));
  const drawn = rows.map(([alias, it]) => [`${alias} = `, it, "a"]);
  return rows.length ? onAxis(drawn, "The events of the combination") : null;
}

function sets({ older, newer }) {
  const rows = [
    ["older ", older, "a"],
    ["newer ", newer, "b"],
  ].filter(([, it]) => isTime(it?.time));
  return rows.length ? onAxis(rows, "The two sets of the pair") : null;
}
