/* The decision on an alarm, asked again: POST /v1/conditions/{name}/explain. */

import { post, resource } from "../api.js";
import { given, h, notice, refresh, state, table } from "../dom.js";
import { duration, words } from "../format.js";
import { onAxis } from "../pictures/events.js";
import { probability, regions } from "../pictures/regions.js";

/**
 * Build the picture of an alarm's events, and the decision on them as soon as the service has
 * answered. If the request has the ids of events, the service searches Kafka for them.
 */
export function explanation(drawn, { condition, body }, signal) {
  const picture = h("div", {}, drawn);
  const place = h("div", { role: "status" });
  const ask = async () => {
    refresh(place, h("p", { class: "loading" }, "Asking how the events are decided…"));
    try {
      const answer = await post(resource("conditions", condition, "explain"), body, signal);
      const pair = pairOf(answer);
      if (pair !== null) picture.replaceChildren(pair);
      refresh(place, [decision(answer), tokens(answer)]);
    } catch (error) {
      if (!signal.aborted) place.replaceChildren(unexplained(error, ask));
    }
  };
  ask();
  return [picture, h("section", { "aria-label": "Explanation" }, place)];
}

/* An answer of a pair has the window, and the events with their histograms, in the order in which
   the job would report them. */
function pairOf({ a, b, window }) {
  if (!a || !b || !window) return null;
  const events = [
    { label: "A", event: a },
    { label: "B", event: b },
  ];
  const more = (zero, [first, second]) => [windowLane(first, second, window)];
  return onAxis(events, "When A and B happened", more);
}

/* For which times of B the predicate holds: for some times of A, and for all of them. */
function windowLane(a, b, { lower_us: lower, upper_us: upper }) {
  // An unbounded window is drawn to the end of the picture.
  const [start, end] = [Math.min(a.from, b.from), Math.max(a.to, b.to)];
  const [from, to] = [lower === null ? start : a.from + lower, upper === null ? end : a.to + upper];
  const inner = [lower === null ? start : a.to + lower, upper === null ? end : a.from + upper];
  const written = (us) => (us === null ? "unbounded" : duration(us));
  return {
    label: "B in the window (filled: certain)",
    kind: "window",
    from,
    to,
    inner: inner[0] <= inner[1] ? inner : null,
    note: `${written(lower)} to ${written(upper)}`,
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

function unexplained(error, again) {
  const button = h("button", { type: "button", on: { click: again } }, "Try again");
  return notice("warn", h("p", {}, `The decision cannot be explained: ${error.message}.`), button);
}

function tokens({ a, b }) {
  if (!a?.tokens || !b?.tokens) return null;
  const shared = new Set(a.tokens.filter((it) => b.tokens.includes(it)));
  const one = (token) => [shared.has(token) ? h("mark", {}, given(token)) : given(token), " "];
  const list = (it) => h("p", { class: "tokens" }, it.tokens.map(one));
  return [h("h3", {}, "Tokens; those of both sets are marked"), list(a), list(b)];
}
