/* Numbers, durations and times as text. Times of the API are integers in µs since 1970. */

const UNITS = [
  ["d", 86_400_000_000],
  ["h", 3_600_000_000],
  ["min", 60_000_000],
  ["s", 1_000_000],
  ["ms", 1_000],
  ["µs", 1],
];
const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const SMALL = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/* The API has no times further from 1970. */
const MAX_TIME_US = 2 ** 60;

/** Return whether a value is a time of the API: records in Kafka may contain any JSON. */
export function isTime(value) {
  return typeof value === "number" && Math.abs(value) <= MAX_TIME_US;
}

/** Return a value of a record as a string: strings as they are, other values as JSON. */
export function written(value) {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Write a number with at most two decimal places; null as a dash. */
export function number(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) < 1 && value !== 0 ? SMALL.format(value) : NUMBER.format(value);
}

/** Write a share of 1 in percent; null as a dash. */
export function percent(share) {
  return share === null || share === undefined ? "–" : `${number(share * 100)} %`;
}

/** Write a duration in µs with its largest fitting unit: 1.5 s. */
export function duration(us) {
  if (us === null || us === undefined) return "–";
  if (us === 0) return "0 s";
  const [unit, size] = UNITS.find(([, it]) => Math.abs(us) >= it) ?? UNITS.at(-1);
  return `${number(us / size)} ${unit}`;
}

/** Write a time in µs since 1970 as RFC 3339, with as many places as it has. */
export function time(us) {
  if (us === null || us === undefined) return "–";
  const ms = Math.floor(us / 1000);
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return `${us} µs`;
  const whole = date.toISOString().replace(/\.\d+Z$/, "");
  const rest = us - Math.floor(ms / 1000) * 1_000_000;
  const places = String(rest).padStart(6, "0").replace(/0+$/, "");
  return `${whole}${places ? `.${places}` : ""}Z`;
}

/** Write the time that has passed since a time, in whole units: 3 s ago. */
export function age(us, now = Date.now() * 1000) {
  if (us === null || us === undefined) return "–";
  const passed = now - us;
  const [unit, size] = UNITS.find(([, it]) => Math.abs(passed) >= it) ?? UNITS.at(-1);
  if (size < 1_000_000) return "now";
  const shown = `${NUMBER.format(Math.floor(Math.abs(passed) / size))} ${unit}`;
  return passed > 0 ? `${shown} ago` : `in ${shown}`;
}

/** Write a rate per second; null, when it is not known yet, as a dash. */
export function rate(perSecond) {
  return perSecond === null || perSecond === undefined ? "–" : `${number(perSecond)}/s`;
}

/** Write a field name as words: max_uncertainty_us becomes max uncertainty. */
export function words(name) {
  return name.replace(/_us$/, "").replaceAll("_", " ");
}

const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Replace characters that reorder the text around them: an id could look like another one. */
export function inOrder(text) {
  return text.replace(REORDERING, "\ufffd");
}
