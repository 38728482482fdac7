/* Declared limits beside observed durations, on one axis. */

import { s } from "../dom.js";
import { duration, percent } from "../format.js";
import { axis, Scale } from "./axis.js";
import { figure } from "./figure.js";

const BAR = 22;
const AXIS = 44;
const MIN_BAR = 6;
const MIN_MARKED = 24;

/**
 * Draw the declared range above the seen one. `declared`: limits in µs by name; `seen`: min_us,
 * max_us and quantiles of a stream's status.
 */
export function spread(title, declared, seen) {
  const limits = Object.values(declared);
  const low = limits.length > 1 ? Math.min(...limits) : 0;
  const high = Math.max(...limits, 0);
  const draw = (width) => {
    const scale = new Scale(
      Math.min(low, seen.min_us, 0),
      Math.max(high, seen.max_us),
      8,
      width - 8,
    );
    const bar = (from, to, y, kind) => {
      const width = Math.max(scale.at(to) - scale.at(from), MIN_BAR);
      return s("rect", { class: `event ${kind}`, x: scale.at(from), y, width, height: BAR });
    };
    // In a narrow bar they would hide it.
    const isWide = scale.at(seen.max_us) - scale.at(seen.min_us) >= MIN_MARKED;
    const marks = seen.quantiles.map(({ estimate_us: us }) => {
      const x = scale.at(us);
      return s("line", { class: "quantile", x1: x, x2: x, y1: 72, y2: 72 + BAR });
    });
    const isOutside = seen.max_us > high || seen.min_us < low;
    const elements = [
      axis(
        scale,
        24,
        106,
        title === "Delay" ? "delay from the latest time" : "length of the interval",
      ),
      s(
        "text",
        { class: "label", x: scale.left, y: 18 },
        `declared: ${duration(low)} to ${duration(high)}`,
      ),
      bar(low, high, 24, "declared"),
      s(
        "text",
        { class: "label", x: scale.left, y: 66 },
        `seen: ${duration(seen.min_us)} to ${duration(seen.max_us)}`,
      ),
      bar(seen.min_us, seen.max_us, 72, isOutside ? "outside" : "seen"),
      isWide ? marks : null,
    ];
    return { height: 106 + AXIS, elements };
  };
  const quantiles = seen.quantiles
    .map((it) => `${percent(it.share)} up to about ${duration(it.estimate_us)}`)
    .join(", ");
  const range = (from, to) => `${duration(from)} to ${duration(to)}`;
  const ranges = `declared ${range(low, high)}, seen ${range(seen.min_us, seen.max_us)}`;
  const label = `${title}: ${ranges}; ${quantiles}.`;
  return figure(draw, label, `Quantiles, the lines in the lower bar: ${quantiles}.`);
}
