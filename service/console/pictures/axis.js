/* Scales and ticks of axes of durations. */

import { s } from "../dom.js";
import { duration } from "../format.js";

const STEPS_US = [1, 2, 5, 10, 20, 50, 100, 200, 500]
  .flatMap((it) => [it, it * 1e3])
  .concat([1, 2, 5, 10, 15, 30].map((it) => it * 1e6))
  .concat([1, 2, 5, 10, 15, 30].map((it) => it * 60e6))
  .concat([1, 2, 6, 12].map((it) => it * 3600e6))
  .concat([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000].map((it) => it * 86_400e6))
  .sort((one, other) => one - other);
const LABEL_WIDTH = 78;

/** A linear scale from µs to px. */
export class Scale {
  /** `from` and `to` in µs, `left` and `right` in px; the ends get a margin of a twentieth. */
  constructor(from, to, left, right) {
    const margin = Math.max((to - from) / 20, 1);
    [this.from, this.to, this.left, this.right] = [from - margin, to + margin, left, right];
  }

  /** Return the place of a time, at most at the ends of the scale. */
  at(us) {
    const inside = Math.min(Math.max(us, this.from), this.to);
    return this.left + ((inside - this.from) / (this.to - this.from)) * (this.right - this.left);
  }

  /** Return the times of ticks, so far apart that their labels do not meet. */
  ticks() {
    const fit = Math.max(1, Math.floor((this.right - this.left) / LABEL_WIDTH));
    let step = STEPS_US.find((it) => (this.to - this.from) / it <= fit) ?? STEPS_US.at(-1);
    // Spans of more than some ten thousand days.
    while ((this.to - this.from) / step > fit) step *= 2;
    const first = Math.ceil(this.from / step) * step;
    const found = [];
    for (let us = first; us <= this.to; us += step) found.push(us);
    return found;
  }
}

/** Draw an axis at a height, with lines up to `top`; `name` tells what zero is. */
export function axis(scale, top, y, name) {
  const ticks = scale
    .ticks()
    .map((us) => [
      s("line", { class: "grid", x1: scale.at(us), x2: scale.at(us), y1: top, y2: y }),
      s(
        "text",
        { class: "small", x: scale.at(us), y: y + 16, "text-anchor": "middle" },
        duration(us),
      ),
    ]);
  return [
    ticks,
    s("line", { class: "axis", x1: scale.left, x2: scale.right, y1: y, y2: y }),
    s("text", { class: "small", x: scale.left, y: y + 34 }, name),
  ];
}
