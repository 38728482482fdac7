/* One condition: state, rates, its plan with a picture if its kind draws one, and its list. */

import { get, limited, orNull, request, resource } from "../api.js";
import { facts, given, h, link, moment, notice, table } from "../dom.js";
import { age, number, percent, words } from "../format.js";
import { live } from "../live.js";
import { alarmsPerHour, conditionState, estimate } from "./conditions.js";
import { showList } from "./list.js";

export function showCondition({ body, names, parameters, signal }) {
  const [status, list, plan] = [h("div"), h("div"), h("div")];
  body.append(status, list, plan);
  live(status, (it) => load(names.name, it), render, signal);
  const chosen = { key: parameters.get("key"), after: parameters.get("after") };
  showList(list, names.name, chosen, signal);
  live(plan, (it) => loadPlan(names.name, it), renderPlan, signal, 60);
}

async function load(name, signal) {
  const [stored, status] = await Promise.all([
    get(resource("conditions", name), {}, signal),
    get(resource("conditions", name, "status"), {}, signal),
  ]);
  return { stored, status, chance: await estimate(stored, status, new Map(), signal) };
}

function render({ stored, status, chance }) {
  const streams = Object.entries(status.streams).map(([name, it]) => [
    link(["streams", name], {}, given(name)),
    it.watermark === null ? "not known yet" : moment(it.watermark),
    number(it.buffered_events),
    number(it.late_events),
  ]);
  return [
    h(
      "div",
      {},
      status.detail === null
        ? null
        : notice(status.state === "failed" ? "bad" : "warn", status.detail),
      status.applied
        ? null
        : notice("warn", "The job has not applied the newest version in all slots yet."),
    ),
    facts([
      ["State", conditionState(status)],
      ["Kind", stored.document.kind],
      ["Version", `${status.version}, applied: ${status.applied_version ?? "–"}`],
      [
        "Alarms",
        [number(status.alarms), " ", link(["alarms"], { condition: stored.name }, "Show alarms")],
      ],
      ["Last alarm", age(status.last_alarm_at)],
      ["Alarms per hour, last minute", alarmsPerHour(status)],
      ["Of these by chance, with one key", chance === null ? null : number(chance)],
      [
        "Hit ratio",
        status.hit_ratio === null ? null : percent(status.hit_ratio),
      ],
      ...Object.entries(status.gauges).map(([name, value]) => [words(name), number(value)]),
    ]),
    table("Streams", ["Stream", "Watermark", "#Buffered", "#Late"], streams),
    h(
      "details",
      {},
      h("summary", {}, "Document"),
      h("pre", { tabindex: "0" }, JSON.stringify(stored.document, null, 2)),
    ),
  ];
}

async function loadPlan(name, signal) {
  const path = resource("conditions", name, "plan");
  // Kinds without a picture answer with the plan itself.
  const headers = { Accept: "image/svg+xml, application/json;q=0.5" };
  const drawn = await orNull(request(path, { headers, signal: limited(signal) }));
  const isPicture = drawn?.headers.get("content-type")?.startsWith("image/svg+xml");
  return { plan: await get(path, {}, signal), picture: isPicture ? await drawn.blob() : null };
}

function renderPlan({ plan, picture }) {
  const { sentences = [], query, regions, ...more } = plan;
  const [texts, rest] = [{}, {}];
  for (const [name, value] of Object.entries(more))
    (typeof value === "string" ? texts : rest)[name] = value;
  return h(
    "section",
    { "aria-labelledby": "plan" },
    h("h2", { id: "plan" }, "Plan"),
    query === undefined ? null : h("pre", { tabindex: "0", "aria-label": "Query" }, String(query)),
    picture === null ? null : image(picture),
    sentences.length
      ? h(
          "ul",
          {},
          sentences.map((it) => h("li", {}, String(it))),
        )
      : null,
    facts(
      Object.entries(texts).map(([name, value]) => [words(name), value]),
      { isLong: true },
    ),
    regions?.base_a && regions.base_b ? regionTable(regions) : null,
    h(
      "details",
      {},
      h("summary", {}, "Further parts"),
      h("pre", { tabindex: "0" }, JSON.stringify(rest, null, 2)),
    ),
  );
}

/* An image cannot run scripts, whatever the picture contains. */
function image(picture) {
  const url = URL.createObjectURL(picture);
  const release = () => URL.revokeObjectURL(url);
  const drawn = h("img", {
    src: url,
    alt: "Picture of the plan",
    on: { load: release, error: release },
  });
  return h(
    "figure",
    {},
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Picture of the plan" },
      drawn,
    ),
  );
}

/* For the shortest and for the longest base event: where the end of a target must be. */
function regionTable(regions) {
  const rows = ["a", "b"].flatMap((base) =>
    Object.entries(regions[`base_${base}`]).map(([length, it]) => [
      `${base.toUpperCase()}, ${words(length)}: ${it.length}`,
      ...["LH", "LL", "RL", "RH"].map((end) => it[end]),
      it.meaning,
    ]),
  );
  const caption = "Regions: end of the target relative to the end of the base event";
  return table(caption, ["Base event", "#LH", "#LL", "#RL", "#RH", "Meaning"], rows);
}
