/* The regions of a pair: where B may end, relative to the end of A, and where it ended. */

import { s } from "../dom.js";
import { duration, number, words } from "../format.js";
import { axis, Scale } from "./axis.js";
import { figure } from "./figure.js";

const BAR = 26;
const TOP = 34;
const AXIS = 44;

/** Draw the regions with A as base, as `explain` describes them in `regions.base_a`. */
export function regions(found) {
  const { lh_us: lh, ll_us: ll, rl_us: rl, rh_us: rh, offset_us: offset, region } = found;
  const hasInner = ll <= rl;
  const parts = hasInner
    ? [
        ["probe", lh, ll],
        ["certain", ll, rl],
        ["probe", rl, rh],
      ]
    : [["probe", lh, rh]];
  const draw = (width) => {
    const scale = new Scale(Math.min(lh, offset), Math.max(rh, offset), 8, width - 8);
    const bars = parts.map(([kind, from, to]) => {
      const width = Math.max(scale.at(to) - scale.at(from), from < to ? 1 : 0);
      return s("rect", { class: `region ${kind}`, x: scale.at(from), y: TOP, width, height: BAR });
    });
    const x = scale.at(offset);
    const mark = [
      s("path", { class: "mark", d: `M${x} ${TOP} l-7 -11 h14 z` }),
      s("line", { class: "mark", x1: x, x2: x, y1: TOP, y2: TOP + BAR + 6 }),
      s(
        "text",
        { class: "label", ...anchored(x, width), y: 16 },
        `B ends here: ${duration(offset)}`,
      ),
    ];
    const bottom = TOP + BAR + 10;
    return {
      height: bottom + AXIS,
      elements: [axis(scale, TOP, bottom, "0 = A ends"), bars, mark],
    };
  };
  const sides = hasInner
    ? `certain from ${range(ll, rl)}, to be probed from ${range(lh, rh)}`
    : `to be probed from ${range(lh, rh)}; no position is certain`;
  const label = `Regions of A: ${sides}. B ends at ${duration(offset)}: ${words(region)}.`;
  return figure(draw, label, label);
}

const range = (from, to) => `${duration(from)} to ${duration(to)}`;

/* A label near an end of the drawing stays inside. */
function anchored(x, width) {
  if (x < 110) return { x: Math.max(x - 6, 4) };
  if (x > width - 110) return { x: Math.min(x + 6, width - 4), "text-anchor": "end" };
  return { x, "text-anchor": "middle" };
}

/** Draw a probability beside its threshold. */
export function probability(value, threshold) {
  const draw = (width) => {
    const [left, right, y] = [8, width - 8, 22];
    const at = (share) => left + share * (right - left);
    const anchor = threshold < 0.5 ? "start" : "end";
    const kind = value >= threshold ? "region certain" : "region probe";
    return {
      height: 62,
      elements: [
        s("rect", { class: "scale", x: left, y, width: right - left, height: 16, rx: 3 }),
        s("rect", { class: kind, x: left, y, width: at(value) - left, height: 16, rx: 3 }),
        s("line", { class: "mark", x1: at(threshold), x2: at(threshold), y1: y - 6, y2: y + 22 }),
        s(
          "text",
          { class: "small", x: at(threshold), y: y + 36, "text-anchor": anchor },
          `threshold ${threshold}`,
        ),
        s("text", { class: "label", x: left, y: 14 }, `probability ${number(value)}`),
      ],
    };
  };
  return figure(draw, `Probability ${number(value)}, threshold ${threshold}`, null);
}
