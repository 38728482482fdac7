/* One alarm, explained: its events on a time axis, the window, the regions and the decision. */

import { get, RequestError, resource } from "../api.js";
import { broken, facts, given, h, link, moment, notice } from "../dom.js";
import { isTime, number } from "../format.js";
import { onAxis } from "../pictures/events.js";
import { explanation } from "./explanation.js";

/* Characters of a description that are shown. */
const DESCRIPTION = 1000;

export async function showAlarm({ body, names, signal }) {
  body.replaceChildren(h("p", { class: "loading", role: "status" }, "Loading…"));
  const { topic, partition, offset } = names;
  const part = [partition, offset].map(encodeURIComponent).join("/");
  let item;
  try {
    item = await get(resource("alarms", topic, part), {}, signal).catch(unlessMissing);
  } catch (error) {
    const again = () => showAlarm({ body, names, signal });
    if (!signal.aborted) body.replaceChildren(broken(error, again));
    return;
  }
  if (signal.aborted) return;
  body.replaceChildren(...(item === null ? [missing(names)] : render(item, signal)));
}

/* The error code of an alarm that is not in memory. */
const NOT_IN_MEMORY = 40406;

function unlessMissing(error) {
  if (error instanceof RequestError && error.code === NOT_IN_MEMORY) return null;
  throw error;
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
  const described =
    item.description === null
      ? notice("bad", "The fields of this record cannot be shown as those of an alarm.")
      : h("p", { class: "what" }, given(item.description, DESCRIPTION));
  return [described, summary(item), picture(item, signal), raw].flat().filter((it) => it !== null);
}

function summary({ topic, partition, offset, record, events }) {
  const { condition, detected_at: detected, probability, threshold } = record;
  const name = condition === undefined ? null : given(condition);
  const key = record.key ?? events[0]?.event.key;
  return facts([
    ["Condition", typeof condition === "string" ? link(["conditions", condition], {}, name) : name],
    ["Kind", record.kind === undefined ? null : given(record.kind)],
    ["Detected", isTime(detected) ? moment(detected) : null],
    ...events.map(({ label, event }) => [
      given(label),
      h("span", {}, given(event.stream), ":", given(event.id)),
    ]),
    ["Join key", key === undefined || key === null ? null : given(key)],
    ["Probability", typeof probability === "number" ? number(probability) : null],
    ["Threshold", threshold === undefined || threshold === null ? null : given(threshold)],
    ["Decided by", record.decided_by === undefined ? null : given(record.decided_by)],
    ["Late", record.late === true ? "yes: an event came later than max_delay" : null],
    ["Record", h("span", {}, given(topic), `, partition ${partition}, offset ${offset}`)],
  ]);
}

/* The kind of the condition has named the events, and the request that explains them. */
function picture({ events, explain }, signal) {
  const drawn = onAxis(events, "The events of the alarm");
  return explain === null ? drawn : explanation(drawn, explain, signal);
}
