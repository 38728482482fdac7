/* A drawing that follows the width of its place: letters keep their size on a phone. */

import { h, s } from "../dom.js";

const MIN_WIDTH = 280;
const MAX_WIDTH = 960;

/**
 * Build a figure. `draw(width)` returns the height and the elements of the drawing; `label` names
 * it for readers who do not see it, `caption` is shown below.
 */
export function figure(draw, label, caption) {
  const place = h("div", { class: "drawing" });
  const built = h("figure", {}, place, caption && h("figcaption", {}, caption));
  let drawn = 0;
  const redraw = (available) => {
    const width = Math.max(MIN_WIDTH, Math.min(MAX_WIDTH, Math.floor(available)));
    if (width === drawn) return;
    drawn = width;
    const { height, elements } = draw(width);
    const size = { width, height, viewBox: `0 0 ${width} ${height}` };
    place.replaceChildren(s("svg", { ...size, role: "img", "aria-label": label }, elements));
  };
  // The observer is collected together with the figure.
  new ResizeObserver(([entry]) => redraw(entry.contentRect.width)).observe(place);
  return built;
}
