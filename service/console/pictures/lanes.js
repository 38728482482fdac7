/* Events on a time axis: intervals as bars, histograms as columns, exact times as marks. */

import { s } from "../dom.js";
import { duration } from "../format.js";
import { axis, Scale } from "./axis.js";
import { figure } from "./figure.js";

const LANE = 64;
const BAR = 26;
const AXIS = 44;
const NARROW = 5;
/* Characters of a label on the narrowest drawing. */
const LABEL = 40;

/**
 * Draw lanes from top to bottom.
 *
 * A lane has a `label`, `from` and `to` in µs since `zero`, and a class `kind`; optionally
 * `buckets` ({lo, hi, p}), `inner`, a part of it that is drawn more strongly, and `note`, shown
 * instead of its length. `name` is the name of the axis.
 */
export function lanes(rows, name, label, caption) {
  return figure((width) => draw(rows, name, width), label, caption);
}

function draw(rows, name, width) {
  const ends = rows.flatMap((it) => [it.from, it.to]);
  const scale = new Scale(Math.min(...ends), Math.max(...ends), 8, width - 8);
  const bottom = rows.length * LANE + 6;
  const elements = [
    axis(scale, 4, bottom, name),
    rows.map((row, place) => lane(row, scale, place * LANE)),
  ];
  return { height: bottom + AXIS, elements };
}

function lane(row, scale, top) {
  const y = top + 24;
  return [
    s("text", { class: "label", x: scale.left, y: top + 16 }, short(row.label)),
    body(row, scale, y),
    note(row, scale, y),
  ];
}

function short(text) {
  return text.length > LABEL ? `${text.slice(0, LABEL)}…` : text;
}

function body(row, scale, y) {
  if (row.buckets) return columns(row, scale, y);
  const parts = [bar(row.from, row.to, row.kind, scale, y)];
  if (row.inner) parts.push(bar(...row.inner, `${row.kind} inner`, scale, y));
  return parts;
}

function bar(from, to, kind, scale, y) {
  const [left, right] = [scale.at(from), scale.at(to)];
  if (right - left < NARROW) {
    // An exact time, or one that is exact at this scale: a mark of fixed size.
    const middle = (left + right) / 2;
    return s("path", {
      class: `event ${kind}`,
      d: `M${middle} ${y} l6 ${BAR / 2} l-6 ${BAR / 2} l-6 ${-BAR / 2} z`,
    });
  }
  return s("rect", { class: `event ${kind}`, x: left, y, width: right - left, height: BAR, rx: 3 });
}

/* The area of a column is its probability. */
function columns({ buckets, kind, from, to }, scale, y) {
  const densities = buckets.map(({ lo, hi, p }) => Number(p) / Math.max(hi - lo, 1));
  const highest = Math.max(...densities) || 1;
  const drawn = buckets.map(({ lo, hi }, place) => {
    const height = (densities[place] / highest) * BAR;
    const [left, right] = [scale.at(lo), scale.at(hi)];
    return s("rect", {
      class: `event ${kind}`,
      x: left,
      y: y + BAR - height,
      width: Math.max(right - left, 1),
      height,
    });
  });
  return [
    drawn,
    s("line", { class: "axis", x1: scale.at(from), x2: scale.at(to), y1: y + BAR, y2: y + BAR }),
  ];
}

/* The length, inside the bar if it fits. */
function note({ from, to, note: text }, scale, y) {
  const shown = text ?? duration(to - from);
  const [left, right] = [scale.at(from), scale.at(to)];
  const wide = shown.length * 7 + 10;
  if (right + wide < scale.right)
    return s("text", { class: "small", x: right + 10, y: y + 18 }, shown);
  if (left - wide > scale.left)
    return s("text", { class: "small", x: left - 10, y: y + 18, "text-anchor": "end" }, shown);
  return s("text", { class: "small", x: scale.right, y: y - 8, "text-anchor": "end" }, shown);
}
