/* Alarms as they are written: the recent ones, then a live feed with the same filters. */

import { get } from "../api.js";
import { describe } from "../alarm_text.js";
import { address, h, notice, refresh, state } from "../dom.js";
import { follow } from "../events.js";
import { number } from "../format.js";

const KEPT = 200;
/* The list is drawn at most this often, however many alarms arrive. */
const DRAW_MS = 250;
const PATH = "v1/alarms";

export function showAlarms({ body, parameters, signal }) {
  const filters = { condition: parameters.get("condition"), key: parameters.get("key") };
  const list = new AlarmList(signal);
  body.append(form(filters, signal), list.element);
  const open = async () => {
    const page = await get(PATH, { ...filters, limit: KEPT }, signal);
    list.begin(page);
    return page.position;
  };
  const handlers = {
    up: () => list.setState("live", "good"),
    down: (problem, seconds) =>
      list.setState(`${problem}. Trying again in ${Math.ceil(seconds)} s`, "bad"),
    event: (name, data) => list.take(name, data),
  };
  follow(PATH, filters, open, handlers, signal);
}

function form({ condition, key }, signal) {
  const names = h("datalist", { id: "condition-names" });
  get("v1/conditions", { limit: 1000 }, signal).then(
    ({ items }) => names.append(...items.map((it) => h("option", { value: it.name }))),
    // Without the names the field takes any name; the list below shows the problem.
    () => undefined,
  );
  const submit = (event) => {
    event.preventDefault();
    const typed = new FormData(event.target);
    const wanted = typed.get("condition").trim();
    location.hash = address(["alarms"], { condition: wanted, key: typed.get("key") });
  };
  return h(
    "form",
    { class: "filters", on: { submit }, "aria-label": "Filters" },
    field("Condition", "condition", { value: condition, list: "condition-names" }),
    field("Join key", "key", { value: key }),
    h("button", {}, "Filter"),
    condition || key ? h("a", { href: "#/alarms" }, "All alarms") : null,
    names,
  );
}

function field(label, name, attributes) {
  const typed = {
    id: name,
    name,
    autocomplete: "off",
    spellcheck: "false",
    autocapitalize: "none",
  };
  return h("p", {}, h("label", { for: name }, label), h("input", { ...typed, ...attributes }));
}

/** The newest alarms, without repeats. */
class AlarmList {
  #alarms = new Map();
  #received = 0;
  #waiting = 0;
  #isPaused = false;
  #isLoaded = false;
  #timer = null;
  #state = h("p", { class: "stream", role: "status" }, "Loading…");
  #count = h("p", { class: "hint" });
  #notices = h("div", { role: "status" });
  #gap = h("div", { role: "status" });
  #list = h("ol", { class: "alarms", "aria-label": "Alarms, the newest first" });
  #pause = h("button", { type: "button", "aria-pressed": "false" }, "Pause");

  constructor(signal) {
    this.#pause.addEventListener("click", () => this.#toggle());
    signal.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
    const bar = h("div", { class: "bar" }, this.#state, this.#pause);
    this.element = h("div", {}, bar, this.#notices, this.#gap, this.#count, this.#list);
  }

  /** Begin with the recent alarms, the newest first. */
  begin({ items, reading }) {
    this.#alarms.clear();
    this.#isLoaded = true;
    for (const item of [...items].reverse()) this.#add(item);
    const problems = Object.entries(reading).filter(([, problem]) => problem !== null);
    refresh(
      this.#notices,
      problems.map(([topic, problem]) => notice("warn", `${topic}: ${problem}`)),
    );
    refresh(this.#gap);
    this.#draw();
  }

  setState(words, kind) {
    refresh(this.#state, state(words, kind));
    this.#draw();
  }

  take(name, data) {
    const item = JSON.parse(data);
    if (name === "gap" || name === "dropped") {
      const what = name === "gap" ? "Alarms are missing here" : "The page was too slow";
      const words = `${what}: ${item.problem ?? ""} Read them from Kafka.`;
      refresh(this.#gap, notice("warn", words));
      return;
    }
    this.#received += 1;
    this.#waiting += this.#isPaused ? 1 : 0;
    this.#add(item);
    this.#timer ??= setTimeout(() => this.#draw(), DRAW_MS);
  }

  #add(item) {
    const place = `${item.topic}/${item.partition}/${item.offset}`;
    this.#alarms.set(place, item);
    if (this.#alarms.size > KEPT) this.#alarms.delete(this.#alarms.keys().next().value);
  }

  #toggle() {
    this.#isPaused = !this.#isPaused;
    this.#waiting = 0;
    this.#pause.setAttribute("aria-pressed", String(this.#isPaused));
    this.#draw();
  }

  #draw() {
    clearTimeout(this.#timer);
    this.#timer = null;
    const waiting = this.#waiting ? `, ${number(this.#waiting)} of them wait` : "";
    const paused = this.#isPaused ? `; paused${waiting}` : "";
    refresh(
      this.#count,
      `${number(this.#received)} new alarms since the page was opened${paused}.`,
    );
    if (this.#isPaused || !this.#isLoaded) return;
    const shown = [...this.#alarms.values()].reverse();
    refresh(this.#list, shown.map(describe));
    this.#list.classList.toggle("empty", shown.length === 0);
    if (!shown.length) refresh(this.#list, h("li", {}, "No alarm yet. New ones appear here."));
  }
}
