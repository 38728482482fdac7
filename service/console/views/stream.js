/* One stream: its declaration beside what was seen, as pictures and as numbers. */

import { get, resource } from "../api.js";
import { facts, given, h, moment, notice, table } from "../dom.js";
import { age, duration, number, percent, rate, words } from "../format.js";
import { live } from "../live.js";
import { spread } from "../pictures/spread.js";
import { rates } from "../rates.js";
import { topicProblems } from "../problems.js";
import { streamState, sum } from "./streams.js";

const DOWN = "The job is down: the values below are those of its last report.";

export function showStream({ body, names, signal }) {
  live(body, (it) => load(names.name, it), render, signal);
}

async function load(name, signal) {
  const [stored, status] = await Promise.all([
    get(resource("streams", name), {}, signal),
    get(resource("streams", name, "status"), {}, signal),
  ]);
  return { stored, status };
}

function render({ stored, status }) {
  const { declared, seen } = status;
  const lengths = limits(declared, [
    "min_uncertainty",
    "max_uncertainty",
    "min_length",
    "max_length",
  ]);
  return [
    h(
      "div",
      {},
      status.job_up ? null : notice("warn", DOWN),
      status.advice.map((it) => notice("warn sentence", it)),
      topicProblems(status.topic_problems),
    ),
    facts([
      ["State", streamState(status)],
      ["Topic", given(stored.document.topic)],
      ["Clock", declared.clock],
      ["Version", number(status.version)],
      ["Events", `${number(seen.events)} under this declaration`],
      ["Rate", rate(rates.add(`events/${status.name}`, seen.events))],
      [
        "Late events",
        `${number(status.late_events)} in all, ${number(seen.late)} under this declaration`,
      ],
      ["Dead letters", number(sum(status.rejected))],
      ["Filtered", status.filtered ? number(status.filtered) : null],
      ["Refused heartbeats", status.refused_heartbeats ? number(status.refused_heartbeats) : null],
      ["Buffered events", number(status.buffered_events)],
      ["Watermark", watermark(status)],
    ]),
    comparison("Uncertainty", "lengths", lengths, seen.lengths),
    declared.clock === "live"
      ? comparison("Delay", "delays", limits(declared, ["max_delay"]), seen.delays)
      : notice("", `Recorded data has no delays. Declared: ${duration(declared.max_delay_us)}.`),
    near(seen.near_limits),
    rejected(status.rejected),
    partitions(status.partitions, declared.clock === "live"),
    h(
      "details",
      {},
      h("summary", {}, "Document"),
      h("pre", { tabindex: "0" }, JSON.stringify(stored.document, null, 2)),
    ),
  ];
}

/* The watermark of recorded data does not follow the clock: it has no age. */
function watermark({ watermark: us, declared }) {
  if (us === null) return "not known yet";
  return [moment(us), declared.clock === "live" ? `, ${age(us)}` : null];
}

function limits(declared, names) {
  return Object.fromEntries(
    names
      .map((it) => [it, declared[`${it}_us`]])
      .filter(([, value]) => value !== undefined && value !== null),
  );
}

function comparison(title, id, declared, seen) {
  const rows = Object.entries(declared).map(([name, us]) => [
    words(name),
    duration(us),
    "declared",
  ]);
  if (seen) {
    rows.push(["min", duration(seen.min_us), "seen"]);
    for (const it of seen.quantiles) {
      rows.push([
        `${percent(it.share)} of the events`,
        `about ${duration(it.estimate_us)}`,
        `at most ${duration(it.at_most_us)}`,
      ]);
    }
    rows.push(["max", duration(seen.max_us), "seen"]);
  }
  return h(
    "section",
    { "aria-labelledby": id },
    h("h2", { id }, `${title}: declared and seen`),
    seen
      ? spread(title, declared, seen)
      : h("p", { class: "empty" }, "No event was seen under this declaration yet."),
    h(
      "details",
      {},
      h("summary", {}, "Numbers"),
      table(title, ["Value", "#Duration", "Source"], rows),
    ),
  );
}

function near(shares) {
  const rows = Object.entries(shares ?? {})
    .filter(([, share]) => share !== null)
    .map(([name, share]) => [words(name), percent(share)]);
  return rows.length ? table("Events within a tenth of a limit", ["Limit", "#Share"], rows) : null;
}

function rejected(reasons) {
  const rows = Object.entries(reasons).map(([reason, records]) => [given(reason), number(records)]);
  return rows.length ? table("Dead letters by reason", ["Reason", "#Records"], rows) : null;
}

function partitions(marks, isLive) {
  const columns = ["Partition", "Watermark", ...(isLive ? ["#Age"] : [])];
  const rows = Object.entries(marks).map(([partition, us]) => [
    partition,
    moment(us),
    ...(isLive ? [age(us)] : []),
  ]);
  return rows.length ? table("Watermark by partition", columns, rows) : null;
}
