/* A line for each record of GET /v1/alarms: alarms, factored records, changes of lists. */

import { address, given, h, moment } from "./dom.js";
import { isTime } from "./format.js";

/* Characters of a line that are shown; a record of an unknown kind is shown as JSON. */
const LINE = 300;
const JSON_LINE = 120;

/** Describe a record in one line: an item of a list, with a link to the view of the record. */
export function describe(item) {
  const { topic, partition, offset, timestamp, record } = item;
  const { condition, detected_at: detected } = record ?? {};
  const href = address(["alarms", topic, partition, offset]);
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

function words({ record, error, description }) {
  if (record === null) return `cannot be read: ${error}`;
  return given(description ?? JSON.stringify(record).slice(0, JSON_LINE), LINE);
}
