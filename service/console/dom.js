/* Elements are built here and nowhere else. Strings become text nodes, never HTML. */

import { inOrder, time, written } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * Build an HTML element.
 *
 * `attributes`: values by name. `on` has listeners by event; null, undefined and false leave an
 * attribute out, true writes it empty. `children`: nodes, strings, numbers, arrays; null is left
 * out. Characters of strings that reorder the text around them are replaced.
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Build an SVG element; parameters as in `h`. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) {
        element.addEventListener(event, listener);
      }
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children
    .flat(Infinity)
    .filter((it) => it !== null && it !== undefined && it !== false)
    .map((it) => (it instanceof Node ? it : document.createTextNode(inOrder(String(it)))));
}

/**
 * Change a container's children to new ones, keeping elements that stay the same.
 *
 * The focus, the selected text and the scroll positions of tables survive a refresh. Listeners of
 * kept elements are the old ones: refreshed parts have links, not buttons. Elements are the same if
 * they have the same attribute `data-key`, or are at the same place without one: items of a list
 * whose items move have keys.
 */
export function refresh(container, ...children) {
  morphChildren(container, nodes(children));
}

function morphChildren(parent, wanted) {
  const keys = new Set(wanted.map(keyOf));
  for (const it of [...parent.childNodes]) if (!keys.has(keyOf(it))) it.remove();
  const keyed = new Map([...parent.childNodes].map((it) => [keyOf(it), it]));
  let place = parent.firstChild;
  for (const node of wanted) {
    const key = keyOf(node);
    const old = key === null ? place : keyed.get(key);
    if (!old || keyOf(old) !== key) {
      parent.insertBefore(node, place);
      continue;
    }
    // An element that is moved loses the focus.
    if (old === place) place = place.nextSibling;
    else parent.insertBefore(old, place);
    if (isSame(old, node)) morph(old, node);
    else old.replaceWith(node);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

const keyOf = (node) => node.dataset?.key ?? null;

function isSame(old, node) {
  // A drawing follows its own size: it is replaced as a whole.
  if (old.nodeType !== node.nodeType || old.nodeName !== node.nodeName) return false;
  return old.nodeType === Node.TEXT_NODE || !(old.matches("figure") || node.matches("figure"));
}

function morph(old, node) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== node.data) old.data = node.data;
    return;
  }
  // The reader opens and closes details.
  const isReaders = (name) => name === "open" && old.nodeName === "DETAILS";
  for (const { name } of [...old.attributes]) {
    if (!node.hasAttribute(name) && !isReaders(name)) old.removeAttribute(name);
  }
  for (const { name, value } of [...node.attributes]) {
    if (old.getAttribute(name) !== value && !isReaders(name)) old.setAttribute(name, value);
  }
  morphChildren(old, [...node.childNodes]);
}

/** Number of characters of an id that are shown; the rest is in its title. */
const SHOWN = 120;

/** Show a string from Kafka: an id, a key, a name. It cannot reorder the text around it. */
export function given(value, most = SHOWN) {
  const text = inOrder(written(value));
  const shown = text.length > most ? `${text.slice(0, most)}…` : text;
  return h("bdi", { class: "given", title: text === shown ? null : text.slice(0, 2000) }, shown);
}

/** Build a link to a view: the parts of its path, and its parameters. */
export function link(parts, parameters, ...children) {
  return h("a", { href: address(parts, parameters) }, ...children);
}

/** Return the address of a view. */
export function address(parts, parameters = {}) {
  const query = new URLSearchParams(
    Object.entries(parameters).filter(([, value]) => value !== null && value !== ""),
  ).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

/** Build the element of a time in µs since 1970. */
export function moment(us) {
  return h("time", {}, time(us));
}

/**
 * Build a table that scrolls sideways on its own; rows are arrays of cells, the first a header.
 * `isTitled`: the heading above says the same as the caption.
 */
export function table(caption, columns, rows, { isTitled = false } = {}) {
  const heads = columns.map((it) => h("th", { scope: "col", class: kind(it) }, plain(it)));
  const body = rows.map(([first, ...rest]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, first),
      rest.map((cell, place) => h("td", { class: kind(columns[place + 1]) }, cell ?? "–")),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: isTitled ? "unseen" : null }, caption),
      h("thead", {}, h("tr", {}, heads)),
      h("tbody", {}, body),
    ),
  );
}

/* A column whose name begins with # has numbers. */
const kind = (column) => (column.startsWith("#") ? "number" : null);
const plain = (column) => column.replace(/^#/, "");

/** Build a list of names and values; null values are left out. `isLong`: they are sentences. */
export function facts(pairs, { isLong = false } = {}) {
  return h(
    "dl",
    { class: isLong ? "facts long" : "facts" },
    pairs
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** Build a notice: `kind` is "bad", "warn", "good" or "". */
export function notice(kind, ...children) {
  return h("div", { class: `notice ${kind}` }, ...children);
}

/** Build the notice of a part that could not be loaded, with a button that calls `again`. */
export function broken(error, again) {
  const button = h("button", { type: "button", on: { click: again } }, "Try again");
  return notice("bad", h("p", { class: "sentence" }, `${error.message}.`), button);
}

/** Build a state in words, with a mark that does not depend on colour. */
export function state(word, kind) {
  const marks = { good: "●", warn: "▲", bad: "■", "": "○" };
  const mark = h("span", { "aria-hidden": "true" }, marks[kind]);
  return h("span", { class: `state ${kind}` }, mark, ` ${word}`);
}
