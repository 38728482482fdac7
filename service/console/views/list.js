/* The list that a condition maintains, as it changes. */

import { get, orNull, resource } from "../api.js";
import { address, given, h, link, moment, notice, table } from "../dom.js";
import { age } from "../format.js";
import { live } from "../live.js";

const REFRESH_SECONDS = 2;
const CHANGES = "Changes are those since the list before.";

/**
 * Show the list of a condition in a container; conditions without a list show nothing. `chosen`:
 * the `key` of the list, and the key `after` which a page of keys begins; both may be null.
 */
export function showList(container, name, chosen, signal) {
  const before = { ranks: null };
  const ended = new AbortController();
  const load = async (it) => {
    const path = resource("conditions", name, "topk");
    const list = await orNull(get(path, { ...chosen, limit: 100 }, it));
    // 404: the kind of the condition has no list, or the condition does not exist.
    if (list === null) {
      ended.abort();
      container.replaceChildren();
    }
    return list;
  };
  const both = AbortSignal.any([signal, ended.signal]);
  live(container, load, (it) => render(name, it, before), both, REFRESH_SECONDS);
}

function render(name, list, before) {
  const ranks = new Map(list.rows.map((it, place) => [it.name, place + 1]));
  const moves = before.ranks ?? ranks;
  if (list.detected_at !== before.detectedAt) {
    [before.moves, before.ranks, before.detectedAt] = [moves, ranks, list.detected_at];
  }
  return h(
    "section",
    { "aria-labelledby": "list" },
    h("h2", { id: "list" }, "Present list", list.key === null ? null : [" of ", given(list.key)]),
    list.error === null ? null : notice("bad", `The list cannot be shown: ${list.error}`),
    keys(name, list),
    list.rows.length
      ? items(list, before.moves)
      : h("p", { class: "empty" }, list.keys.length ? "Choose a key." : "The list is empty."),
    list.as_of === null
      ? null
      : h(
          "p",
          { class: "hint" },
          "As of ",
          moment(list.as_of),
          `, written ${age(list.detected_at)}. `,
          CHANGES,
        ),
  );
}

function keys(name, list) {
  if (!list.keys.length) return null;
  const links = list.keys.map((it) =>
    h("li", {}, h("a", { href: address(["conditions", name], { key: it }) }, given(it))),
  );
  return [
    h("ul", { class: "keys", "aria-label": "Keys" }, links),
    list.next === null
      ? null
      : h("p", {}, link(["conditions", name], { after: list.next }, "More keys")),
  ];
}

function items({ columns, rows }, moves) {
  const [rank, ...others] = columns.map(titled);
  return table(
    "Items",
    [rank, "Change", ...others],
    rows.map(({ name, cells: [place, ...more] }, index) => [
      place,
      moved(moves.get(name), index + 1),
      ...more.map((it) => given(it)),
    ]),
  );
}

const titled = (column) => column.charAt(0).toUpperCase() + column.slice(1);

function moved(before, rank) {
  if (before === undefined) return h("span", { class: "tag" }, "new");
  if (before === rank) return "";
  return before > rank ? `▲ from ${before}` : `▼ from ${before}`;
}
