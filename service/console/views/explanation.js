/* The decision on an alarm, asked again: POST /v1/conditions/{name}/explain. */

import { isEvent } from "../alarm_text.js";
import { get, post, RequestError, resource } from "../api.js";
import { given, h, notice, refresh, state, table } from "../dom.js";
import { duration, words } from "../format.js";
import { onAxis } from "../pictures/events.js";
import { probability, regions } from "../pictures/regions.js";

/** Build the picture of a pair, and its explanation below as soon as the service has answered. */
export function pairExplanation(record, signal) {
  const drawn = h("div", {}, pair(record.a, record.b, null));
  const below = h(
    "div",
    {},
    h("p", { class: "loading", role: "status" }, "Asking how the pair is decided…"),
  );
  explainPair(record, signal).then(
    (answer) => {
      // A stream with itself: the answer may have the events in the other order.
      if (isEvent(answer.a) && isEvent(answer.b))
        drawn.replaceChildren(pair(answer.a, answer.b, answer.window));
      refresh(below, decision(answer));
    },
    (error) => signal.aborted || refresh(below, unexplained(error)),
  );
  return [drawn, below];
}

async function explainPair({ condition, a, b }, signal) {
  const path = resource("conditions", condition, "explain");
  const shapes = await Promise.all([a, b].map((it) => hasShapes(it.stream, signal)));
  if (shapes.includes(true)) {
    try {
      // Only the records in Kafka have the histograms.
      return await post(path, { a: { id: a.id }, b: { id: b.id } }, signal);
    } catch (error) {
      if (!(error instanceof RequestError && error.status === 404)) throw error;
    }
  }
  return post(path, { a: asGiven(a), b: asGiven(b) }, signal);
}

async function hasShapes(stream, signal) {
  const { document } = await get(resource("streams", stream), {}, signal);
  return document.templates.length > 0 || document.histograms;
}

function asGiven({ id, key, earliest, latest, attributes }) {
  const more = { ...(key === null ? {} : { key }), ...(attributes ? { attributes } : {}) };
  return { event: { id, earliest, latest, ...more } };
}

function pair(a, b, window) {
  const rows = [
    ["A  ", a, "a"],
    ["B  ", b, "b"],
  ];
  const more = (zero, [first, second]) =>
    window === null ? [] : [windowLane(first, second, window)];
  return onAxis(rows, "When A and B happened", more);
}

/* For which times of B the predicate holds: for some times of A, and for all of them. */
function windowLane(a, b, { lower_us: lower, upper_us: upper }) {
  // An unbounded window is drawn to the end of the picture.
  const [start, end] = [Math.min(a.from, b.from), Math.max(a.to, b.to)];
  const [from, to] = [lower === null ? start : a.from + lower, upper === null ? end : a.to + upper];
  const inner = [lower === null ? start : a.to + lower, upper === null ? end : a.from + upper];
  const words = (us) => (us === null ? "unbounded" : duration(us));
  return {
    label: "B in the window (filled: certain)",
    kind: "window",
    from,
    to,
    inner: inner[0] <= inner[1] ? inner : null,
    note: `${words(lower)} to ${words(upper)}`,
  };
}

function decision(answer) {
  const isSatisfied = answer.verdict === "satisfied";
  return [
    h("h2", {}, "Decision"),
    h(
      "p",
      {},
      state(words(answer.verdict), isSatisfied ? "good" : "bad"),
      `: ${answer.explanation}`,
    ),
    typeof answer.probability === "number"
      ? probability(answer.probability, Number(answer.threshold))
      : null,
    answer.regions ? [h("h3", {}, "Regions of A"), regions(answer.regions.base_a)] : null,
    steps(answer),
    answer.notes.length
      ? h(
          "ul",
          {},
          answer.notes.map((it) => h("li", {}, it)),
        )
      : null,
  ];
}

function steps(answer) {
  const marks = { true: "passed", false: "failed", null: "not reached" };
  const rows = answer.steps.map((it) => [words(it.step), marks[it.passed], it.detail ?? ""]);
  return table("Steps", ["Step", "Result", "Detail"], rows);
}

function unexplained(error) {
  return notice("warn", `The decision cannot be explained: ${error.message}.`);
}

/**
 * Build a button that asks for the explanation of a combination or of a change of a list. The
 * service searches Kafka for the records: readers ask for it only where they need it.
 */
export function searchedExplanation(record, signal) {
  const place = h("div", { role: "status" });
  const ask = async (event) => {
    event.target.disabled = true;
    refresh(place, h("p", { class: "loading" }, "The service searches the topics…"));
    try {
      const path = resource("conditions", record.condition, "explain");
      const answer = await post(path, await asked(record, signal), signal);
      refresh(place, [decision(answer), tokens(answer)]);
    } catch (error) {
      if (!signal.aborted) refresh(place, unexplained(error));
    }
    event.target.disabled = false;
  };
  const button = h("button", { type: "button", on: { click: ask } }, "Explain the decision");
  return h("section", { "aria-label": "Explanation" }, button, place);
}

async function asked({ condition, events, older, newer }, signal) {
  if (events !== undefined) {
    const ids = Object.entries(events).map(([alias, it]) => [alias, { id: it.id }]);
    return { events: Object.fromEntries(ids) };
  }
  const { document } = await get(resource("conditions", condition), {}, signal);
  const [a, b] = older.stream === document.a ? [older, newer] : [newer, older];
  return { a: { id: a.id }, b: { id: b.id } };
}

function tokens({ a, b }) {
  if (!a?.tokens || !b?.tokens) return null;
  const shared = new Set(a.tokens.filter((it) => b.tokens.includes(it)));
  const one = (token) => [shared.has(token) ? h("mark", {}, given(token)) : given(token), " "];
  const list = (it) => h("p", { class: "tokens" }, it.tokens.map(one));
  return [h("h3", {}, "Tokens; those of both sets are marked"), list(a), list(b)];
}
