/* Streams: declared limits beside observed values, one line each. */

import { get, mapFew, orNull, resource } from "../api.js";
import { given, h, link, moment, state, table } from "../dom.js";
import { age, duration, number, rate } from "../format.js";
import { live } from "../live.js";
import { PAGE, pages } from "../paging.js";
import { rates } from "../rates.js";

const COLUMNS = [
  "Stream",
  "State",
  "#Events/s",
  "#Uncertainty: seen of declared",
  "#Delay: seen of declared",
  "#Late",
  "#Dead letters",
  "#Buffered",
  "#Watermark",
];

export function showStreams({ body, parameters, signal }) {
  const after = parameters.get("after") ?? "";
  live(
    body,
    (it) => load(after, it),
    (it) => render(after, it),
    signal,
  );
}

async function load(after, signal) {
  const page = await get("v1/streams", { limit: PAGE, after }, signal);
  const items = await mapFew(page.items, (it) =>
    orNull(get(resource("streams", it.name, "status"), {}, signal)),
  );
  // A stream may be deleted between the two requests.
  return { items: items.filter((it) => it !== null), next: page.next };
}

function render(after, { items, next }) {
  if (!items.length) {
    return h(
      "p",
      { class: "empty" },
      "No stream is registered. Register one with coincide apply -f FILE.yaml.",
    );
  }
  return [
    table("Streams", COLUMNS, items.map(row), { isTitled: true }),
    pages("streams", after, next),
  ];
}

function row(it) {
  const { seen, declared } = it;
  return [
    link(["streams", it.name], {}, given(it.name)),
    streamState(it),
    rate(rates.add(`events/${it.name}`, seen.events)),
    beside(seen.lengths?.max_us, declared.max_uncertainty_us ?? declared.max_length_us),
    declared.clock === "live"
      ? beside(seen.delays?.max_us, declared.max_delay_us)
      : `– / ${duration(declared.max_delay_us)}`,
    number(it.late_events),
    number(sum(it.rejected)),
    number(it.buffered_events),
    watermarkOf(it),
  ];
}

/* Only the watermark of a live stream follows the clock. */
function watermarkOf({ watermark, declared }) {
  if (watermark === null) return "–";
  return declared.clock === "live" ? age(watermark) : moment(watermark);
}

function beside(seen, declared) {
  return `${duration(seen)} / ${duration(declared)}`;
}

/** Sum the values of an object. */
export function sum(counts) {
  return Object.values(counts).reduce((all, it) => all + it, 0);
}

/** Build the state of a stream in a word. */
export function streamState({ advice, topic_problems: wrong, watermark, seen, job_up: isUp }) {
  if (!isUp) return state("job is down", "bad");
  if (wrong?.length) return state("topic differs", "warn");
  if (advice.length) return state("advice", "warn");
  if (!seen.events) return state("no events", "");
  return watermark === null ? state("watermark unknown", "warn") : state("fits", "good");
}
