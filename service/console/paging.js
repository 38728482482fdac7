/* Lists of many resources, a page at a time. */

import { address, h } from "./dom.js";

/** Number of resources on a page: each costs one more request, for its status. */
export const PAGE = 25;

/** Build the links to the first and to the next page. */
export function pages(section, after, next) {
  if (!after && next === null) return null;
  return h(
    "nav",
    { class: "pages", "aria-label": "Pages" },
    after ? h("a", { href: address([section]) }, "First page") : null,
    next === null ? null : h("a", { href: address([section], { after: next }) }, "Next page"),
  );
}
