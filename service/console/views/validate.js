/* A form that checks a condition while one types: problems beside fields, costs at the side. */

import { get, orNull, post, RequestError, resource } from "../api.js";
import { broken, facts, given, h, notice, refresh, state } from "../dom.js";
import { duration, number, words } from "../format.js";
import { rates } from "../rates.js";
import { fieldsOf, kindsOf, valueOf } from "../schema_form.js";

const PAUSE_MS = 300;

export async function showValidation({ body, signal }) {
  body.replaceChildren(h("p", { class: "loading", role: "status" }, "Loading…"));
  let loaded;
  try {
    loaded = await Promise.all([
      get("openapi.json", {}, signal),
      get("v1/streams", { limit: 1000 }, signal),
    ]);
  } catch (error) {
    if (!signal.aborted)
      body.replaceChildren(broken(error, () => showValidation({ body, signal })));
    return;
  }
  if (signal.aborted) return;
  const [openapi, streams] = loaded;
  body.replaceChildren(
    new Validation(
      kindsOf(openapi),
      streams.items.map((it) => it.name),
      signal,
    ).element,
  );
}

/** The form, and the answer beside it. */
class Validation {
  #kinds;
  #streams;
  #fields = [];
  #signal;
  #timer;
  #asking = new AbortController();
  #reached = new Set();
  /* Streams that the condition of the last valid answer reads: a query names them in its text. */
  #read = [];
  #fieldset = h("div", { class: "fields" });
  #load = h("div", { class: "fields" });
  #answer = h("div", {}, h("p", { class: "hint" }, "Checking…"));

  constructor(kinds, streams, signal) {
    this.#kinds = kinds;
    this.#streams = new Set(streams);
    this.#signal = signal;
    const stop = () => {
      clearTimeout(this.#timer);
      this.#asking.abort();
    };
    signal.addEventListener("abort", stop, { once: true });
    const change = (event) => this.#choose(event.target.value);
    const options = [...kinds.keys()].map((it) => h("option", { value: it }, words(it)));
    const kind = h("select", { id: "kind", name: "kind", on: { change } }, options);
    const focusout = (event) => {
      this.#reached.add(event.target.name);
      this.#plan();
    };
    const submit = (event) => {
      event.preventDefault();
      for (const it of this.#fields) this.#reached.add(it.name);
      this.#ask();
    };
    this.form = h(
      "form",
      { "aria-label": "Condition", on: { input: () => this.#plan(), focusout, submit } },
      h("p", { class: "field" }, h("label", { for: "kind" }, "kind"), kind),
      this.#fieldset,
      h("h2", {}, "Expected load"),
      h("p", { class: "hint" }, "Chance alarms and buffered events are estimated from it."),
      this.#load,
      h(
        "datalist",
        { id: "streams" },
        streams.map((it) => h("option", { value: it })),
      ),
    );
    const hint = streams.length
      ? null
      : notice("warn", "No stream is registered: every condition names streams.");
    const answer = h("section", { class: "answer", "aria-label": "Answer" }, this.#answer);
    this.element = h("div", { class: "columns" }, h("div", {}, hint, this.form), answer);
    this.#choose(kind.value);
  }

  #choose(kind) {
    const schema = this.#kinds.get(kind);
    this.kind = kind;
    this.#reached.clear();
    this.#read = [];
    this.#fields = schema === undefined ? [] : fieldsOf(schema);
    const optional = this.#fields.filter((it) => !it.isRequired);
    this.#fieldset.replaceChildren(
      h("p", { class: "hint" }, schema?.description ?? ""),
      ...this.#fields.filter((it) => it.isRequired).map(row),
      h("details", {}, h("summary", {}, "Optional fields"), optional.map(row)),
    );
    const description = "Number of equally frequent keys.";
    this.#load.replaceChildren(row({ name: "keys", input: "text", description, fallback: 1 }));
    this.#plan();
  }

  /* Only the newest state of the form is of interest: earlier questions are cancelled. */
  #plan() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), PAUSE_MS);
  }

  async #ask() {
    clearTimeout(this.#timer);
    this.#asking.abort();
    const asking = (this.#asking = new AbortController());
    const condition = this.#document();
    try {
      const streams = this.#streamsOf(condition);
      await this.#rateFields(streams);
      const both = AbortSignal.any([asking.signal, this.#signal]);
      const body = { condition, ...this.#expected(streams) };
      const answer = await post("v1/conditions:validate", body, both);
      this.#show(condition, answer);
      this.#read = Object.keys(answer.derived?.buffer_horizon_us ?? {});
      // The question was asked without the rates of its streams, or with rates of other streams.
      if (String(this.#streamsOf(condition)) !== String(streams)) this.#plan();
    } catch (error) {
      if (asking.signal.aborted || this.#signal.aborted) return;
      const isAnswer = error instanceof RequestError && error.errors.length;
      if (isAnswer) this.#show(condition, { valid: false, errors: error.errors });
      else
        refresh(
          this.#answer,
          notice("bad", `${error.message}. The form is checked again when you change it.`),
        );
    }
  }

  #document() {
    const typed = new FormData(this.form);
    const found = { kind: this.kind };
    for (const field of this.#fields) {
      const value = valueOf(field, typed.get(field.name) ?? "");
      if (value !== undefined) found[field.name] = value;
    }
    return found;
  }

  /* The names of the streams that a condition reads, in order. */
  #streamsOf(condition) {
    const fields = this.#fields.filter((it) => it.input === "stream");
    const named = fields.map((it) => condition[it.name]).filter((it) => it !== undefined);
    return [...new Set([...named, ...this.#read])].sort();
  }

  /* A field for the rate of each stream that exists; the rates seen are the first values. */
  async #rateFields(streams) {
    for (const stream of streams) {
      const name = `rates.${stream}`;
      if (!this.#streams.has(stream) || this.form.elements.namedItem(name)) continue;
      const status = await orNull(get(resource("streams", stream, "status"), {}, this.#signal));
      const seen = status && rates.add(`events/${stream}`, status.seen.events);
      if (!this.form.elements.namedItem(name)) {
        const value = seen ? seen.toPrecision(3) : "";
        this.#load.append(row({ name, input: "text", description: "Events per second.", value }));
      }
    }
  }

  #expected(streams) {
    const typed = new FormData(this.form);
    const typedRates = streams.map((it) => [it, (typed.get(`rates.${it}`) ?? "").trim()]);
    const numbers = Object.fromEntries(
      typedRates.filter(([, value]) => value !== "").map(([it, value]) => [it, asNumber(value)]),
    );
    const keys = (typed.get("keys") ?? "").trim();
    return { rates: numbers, ...(keys === "" ? {} : { keys: asNumber(keys) }) };
  }

  #show(condition, { valid, errors, derived, document }) {
    const left = this.#mark(errors);
    const counted = `${errors.length} ${errors.length === 1 ? "problem" : "problems"}`;
    refresh(
      this.#answer,
      h(
        "p",
        { role: "status" },
        valid ? state("valid", "good") : state(`not valid: ${counted}`, "bad"),
      ),
      left.length
        ? h(
            "ul",
            {},
            left.map((it) => h("li", {}, h("strong", {}, given(it.field)), ` ${problemOf(it)}`)),
          )
        : null,
      derived ? [h("h2", {}, "Derived"), derivedFacts(derived)] : null,
      h("h2", {}, valid ? "Document, with defaults" : "Document"),
      h("pre", { tabindex: "0" }, JSON.stringify(document ?? condition, null, 2)),
    );
  }

  /* Put each problem beside its field, and return those of fields that the form does not have. */
  #mark(errors) {
    for (const it of this.form.querySelectorAll(".problem")) it.replaceChildren();
    for (const it of this.form.querySelectorAll("[aria-invalid]"))
      it.removeAttribute("aria-invalid");
    return errors.filter((error) => {
      const names = [
        error.field,
        error.field.split(/[.[]/)[0],
        error.field.replace(/_(us|ms|s)$/, ""),
      ];
      const input = names.map((it) => this.form.elements.namedItem(it)).find((it) => it);
      if (!input) return true;
      // A field that the reader has not reached yet.
      if (input.value === "" && !this.#reached.has(input.name)) return false;
      input.closest("details")?.setAttribute("open", "");
      input.setAttribute("aria-invalid", "true");
      const path = error.field === input.name ? "" : `${error.field}: `;
      document
        .getElementById(`problem-${input.name}`)
        ?.append(h("span", {}, `${path}${problemOf(error)} `));
      return false;
    });
  }
}

const asNumber = (typed) => (Number.isFinite(Number(typed)) ? Number(typed) : typed);
const problemOf = ({ problem, remedy }) => (remedy ? `${problem}; ${remedy}` : problem);

function row(field) {
  const { name, description, isRequired } = field;
  const id = `field-${name}`;
  return h(
    "div",
    { class: "field" },
    h(
      "label",
      { for: id },
      name,
      isRequired ? h("span", { class: "required" }, " required") : null,
    ),
    input(field, { id, name, "aria-describedby": `about-${name} problem-${name}` }),
    h("p", { class: "problem", id: `problem-${name}` }),
    h("p", { class: "hint", id: `about-${name}` }, description),
  );
}

function input({ input: kind, choices, fallback, value }, attributes) {
  const default_ = fallback === undefined || fallback === null ? "" : String(fallback);
  if (kind === "choice" || kind === "flag") {
    const values = kind === "flag" ? ["true", "false"] : choices;
    const first = h("option", { value: "" }, default_ ? `default: ${default_}` : "–");
    return h(
      "select",
      attributes,
      first,
      values.map((it) => h("option", { value: it }, it)),
    );
  }
  const typed = { ...attributes, autocomplete: "off", spellcheck: "false", autocapitalize: "none" };
  if (kind === "object") return h("textarea", { ...typed, rows: 4 });
  const list = kind === "stream" ? "streams" : null;
  return h("input", { ...typed, value: value ?? null, placeholder: default_ || null, list });
}

function derivedFacts(derived) {
  return facts(Object.entries(derived).map(([name, value]) => [words(name), shown(name, value)]));
}

function shown(name, value) {
  if (Array.isArray(value))
    return h(
      "ul",
      {},
      value.map((it) => h("li", {}, shown("", it))),
    );
  if (value !== null && typeof value === "object") {
    const items = Object.entries(value);
    return h(
      "ul",
      {},
      items.map(([key, it]) => h("li", {}, given(key), ": ", shown(name, it))),
    );
  }
  if (name === "can_be_satisfied")
    // The kind explains it in `warnings`.
    return value ? "yes" : state("no", "warn");
  if (typeof value !== "number") return String(value);
  return name.endsWith("_us") ? duration(value) : number(value);
}
