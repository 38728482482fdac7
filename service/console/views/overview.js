/* Overview: is everything healthy, how much is read, and what was reported last? */

import { get, orNull, RequestError } from "../api.js";
import { describe } from "../alarm_text.js";
import { facts, given, h, link, moment, notice, state, table } from "../dom.js";
import { age, duration, number, rate } from "../format.js";
import { live } from "../live.js";
import { topicProblems } from "../problems.js";
import { rates } from "../rates.js";

const SHOWN_ALARMS = 5;
const DOWN =
  "The job does not run, or has not reported for a minute. " +
  "Start it again: it continues where it stopped.";
const STALLED =
  "The job runs, but completes no batch: new alarms wait. It restarts its query by itself " +
  "after COINCIDE_MAX_BATCH_SECONDS; see CoincideJobStalled in the runbook.";
const STARTING = "The job is starting. Alarms continue when its first batch is completed.";
/* A job in one of these states reports every second, and needs no help. */
const PASSING = new Set(["starting", "restarting"]);
const SILENT_SECONDS = 60;

export function showOverview({ body, signal }) {
  live(body, load, render, signal);
}

async function load(signal) {
  const [ready, job, streams, conditions, alarms] = await Promise.all([
    readiness(signal),
    get("v1/job", {}, signal),
    get("v1/streams", { limit: 1000 }, signal),
    get("v1/conditions", { limit: 1000 }, signal),
    // 404: the service does not follow alarms.
    orNull(get("v1/alarms", { limit: SHOWN_ALARMS }, signal)),
  ]);
  return { ready, job, streams, conditions, alarms };
}

/* A service that is not ready still answers, and says why. */
async function readiness(signal) {
  try {
    return await get("readyz", {}, signal);
  } catch (error) {
    const isAnswer = error instanceof RequestError && error.status === 503;
    if (!isAnswer) throw error;
    return { ready: false, detail: error.message };
  }
}

function render({ ready, job, streams, conditions, alarms }) {
  const lag = total(job.lag);
  const paused = conditions.items.filter((it) => it.paused).length;
  return [
    h("div", {}, problems(ready, job, alarms)),
    h(
      "section",
      { "aria-label": "State" },
      h(
        "ul",
        { class: "tiles" },
        tile("Service", ready.ready ? state("ready", "good") : state("not ready", "bad"), null),
        tile(
          "Job",
          jobState(job),
          job.at === null ? "It has never reported." : `Reported ${age(job.at)}`,
        ),
        tile("Lag", h("span", {}, job.at === null ? "–" : number(lag)), "records not yet read"),
        tile("Input", h("span", {}, rate(job.input_rate)), `records; batch ${job.batch ?? "–"}`),
        tile("Streams", link(["streams"], {}, count(streams)), null),
        tile(
          "Conditions",
          link(["conditions"], {}, count(conditions)),
          paused ? `${paused} paused` : null,
        ),
      ),
    ),
    streams.items.length ? null : firstSteps(),
    newest(alarms),
    details(job),
  ];
}

function tile(name, value, more) {
  return h(
    "li",
    {},
    h("h2", {}, name),
    h("p", { class: "value" }, value),
    more && h("p", {}, more),
  );
}

/* A list has at most 1000 items on a page. */
const count = ({ items, next }) => `${items.length}${next === null ? "" : "+"}`;

function jobState(job) {
  if (job.up) return state(job.state, "good");
  if (isStarting(job)) return state(job.state, "warn");
  if (isStalled(job)) return state(job.state, "bad");
  return state(job.state === "unknown" ? "not started" : `${job.state}, down`, "bad");
}

const isRecent = (job) => Date.now() / 1000 - job.at / 1e6 < SILENT_SECONDS;
const isStarting = (job) => PASSING.has(job.state) && isRecent(job);
const isStalled = (job) => job.state === "stalled" && isRecent(job);

function health(job) {
  if (job.up || job.at === null) return null;
  if (isStarting(job)) return notice("warn", STARTING);
  return notice("bad", isStalled(job) ? STALLED : DOWN);
}

const total = (topics) =>
  Object.values(topics)
    .flatMap(Object.values)
    .reduce((sum, it) => sum + it, 0);

function problems(ready, job, alarms) {
  const lost = total(job.lost);
  const behind = job.config_head_offset - (job.applied_config_offset ?? -1);
  const reading = Object.entries(alarms?.reading ?? {}).filter(([, problem]) => problem !== null);
  return [
    ready.ready ? null : notice("bad", `The service is not ready: ${ready.detail}`),
    health(job),
    job.at === null ? notice("warn", "No job has reported yet. Start one: coincide job.") : null,
    lost
      ? notice("bad", `At least ${number(lost)} records were lost before the job read them.`)
      : null,
    job.missing_topics.length
      ? notice(
          "bad",
          "Output topics that do not exist: ",
          job.missing_topics.map((it) => [given(it), " "]),
        )
      : null,
    job.at !== null && behind > 0 && job.up
      ? notice(
          "warn",
          `The job has not applied ${number(behind)} of the newest records of the configuration.`,
        )
      : null,
    unreadable(ready.unreadable_records, ready.unreadable_records_total, "service"),
    unreadable(job.unreadable_records, job.unreadable_records_total, "job"),
    Object.entries(job.recreated_topics).map(([topic, it]) =>
      notice(
        "warn",
        "Topic ",
        given(topic),
        ` was deleted and created again, detected ${age(it.at)}.`,
      ),
    ),
    topicProblems(ready.topic_problems),
    reading.map(([topic, problem]) =>
      notice("warn", "Alarms of topic ", given(topic), `: ${problem}`),
    ),
  ];
}

function unreadable(records, all, who) {
  if (!all) return null;
  return notice(
    "bad",
    h("p", {}, `The ${who} cannot read ${number(all)} records of the configuration:`),
    h(
      "ul",
      {},
      records.map((it) =>
        h("li", {}, given(it.key), ` at offset ${it.offset}: `, given(it.problem)),
      ),
    ),
  );
}

function firstSteps() {
  return notice(
    "",
    h("p", {}, h("strong", {}, "Nothing is registered yet.")),
    h("p", {}, "Register streams and conditions with coincide apply -f FILE.yaml, or over REST."),
  );
}

function newest(alarms) {
  if (alarms === null)
    return notice("", "The service does not follow alarms: COINCIDE_RECENT_ALARMS is 0.");
  const items = alarms.items.map(describe);
  return h(
    "section",
    { "aria-labelledby": "newest" },
    h("h2", { id: "newest" }, "Newest alarms"),
    items.length
      ? h("ol", { class: "alarms" }, items)
      : h("p", { class: "empty" }, "No alarm yet."),
    h("p", {}, link(["alarms"], {}, "Follow alarms live")),
  );
}

function slots(job) {
  if (job.slots === job.wanted_slots) return job.slots;
  const reason = job.slots_problem === null ? "" : `: ${job.slots_problem}`;
  return `${job.slots ?? "–"}, wanted ${job.wanted_slots}${reason}`;
}

function details(job) {
  const lags = Object.entries(job.lag).flatMap(([topic, partitions]) =>
    Object.entries(partitions).map(([partition, records]) => [
      given(topic),
      partition,
      number(records),
    ]),
  );
  const phases = Object.entries(job.durations).map(([phase, seconds]) => [
    phase,
    duration(seconds * 1e6),
  ]);
  return h(
    "section",
    { "aria-labelledby": "job" },
    h("h2", { id: "job" }, "Job"),
    job.exception === null
      ? null
      : h(
          "details",
          { open: !job.up },
          h("summary", {}, "Last exception"),
          h("pre", { tabindex: "0" }, job.exception),
        ),
    facts([
      ["Query", job.query_id],
      ["Slots", slots(job)],
      ["Last batch", job.last_batch_at === null ? null : moment(job.last_batch_at)],
      ["Last report", job.at === null ? null : moment(job.at)],
      [
        "Configuration",
        job.config_head_offset < 0
          ? "empty"
          : `offset ${job.applied_config_offset ?? "–"} of ${job.config_head_offset} applied`,
      ],
      ["Batches per minute", perMinute(job)],
    ]),
    folded("Lag by partition", ["Topic", "Partition", "#Records"], lags),
    folded("Duration of the newest batch", ["Phase", "#Duration"], phases),
  );
}

function folded(title, columns, rows) {
  if (!rows.length) return null;
  return h("details", {}, h("summary", {}, title), table(title, columns, rows, { isTitled: true }));
}

function perMinute(job) {
  const batches = job.batch === null ? null : rates.add("batches", job.batch);
  return batches === null ? null : number(batches * 60);
}
