"""Drawing of an explained pair of events on one time axis, and the table of its regions.

Rows: the intervals of A and B; the times at which B certainly or possibly satisfies the predicate;
the regions of A as base event, which classify the *end* of B; and the axis, whose zero is the end
of A.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from correlation.drawing import LABEL, WIDTH, Line, Scale, draw_axis, label_line
from correlation.resources.durations import describe_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_POSSIBLE, _CERTAIN = "─", "━"
_PROBED, _SATISFIED = "░", "▓"
_REGIONS = {
    "satisfaction": "satisfaction region",
    "left_probe": "left probe region",
    "right_probe": "right probe region",
    "violated": "outside: violated",
}
_TITLES = ("base event", "LH", "LL", "RL", "RH", "the other ends", "that is in the")
_RIGHT_ALIGNED = {"LH", "LL", "RL", "RH"}


def draw_explanation(answer: Mapping[str, Any]) -> list[Line]:
    """Draw the explanation of two events, if it has regions, and how the pair is decided.

    Parameters
    ----------
    answer : mapping
        Explanation of a pair (`correlation.timing.explain`).
    """
    lines = []
    picture = draw_pair(answer)
    if picture:
        lines += [Line(it) for it in picture]
        lines += [Line(it, "legend") for it in _LEGEND]
        titles, *rows = _draw_table(answer)
        lines += [Line(""), Line(titles, "legend"), *map(Line, rows)]
    if answer.get("decided_by"):
        lines.append(Line(f"decided by {_describe_ways(answer)}", "sentence"))
    if answer.get("swapped"):
        swapped = "A and B were swapped: in a stream with itself, A is the earlier event"
        lines.append(Line(swapped, "sentence"))
    return lines


def draw_pair(answer: Mapping[str, Any]) -> list[str]:
    """Draw two events, the window and the regions.

    Parameters
    ----------
    answer : mapping
        Explanation of a pair.

    Returns
    -------
    list of str
        Lines of at most 80 columns; empty if the explanation has no window or regions.
    """
    if not answer.get("window") or not answer.get("regions"):
        return []
    a, b, window = answer["a"], answer["b"], answer["window"]
    zero = a["latest"]
    regions = answer["regions"]["base_a"]
    ends = tuple(zero + regions[f"{name}_us"] for name in ("lh", "ll", "rl", "rh"))
    lower, upper = window["lower_us"], window["upper_us"]
    shown = [a["earliest"], a["latest"], b["earliest"], b["latest"]]
    # Empty regions are not drawn.
    shown += (ends[0], ends[3]) if ends[0] <= ends[3] else ()
    shown += [a["earliest"] + lower] if lower is not None else []
    shown += [a["latest"] + upper] if upper is not None else []
    scale = Scale(min(shown), max(shown), WIDTH - LABEL)
    return [
        *label_line("A", scale.bar((a["earliest"], a["latest"], "█"))),
        *label_line("B", scale.bar((b["earliest"], b["latest"], "█"))),
        *label_line("in window", _draw_window(scale, a, lower, upper)),
        *label_line("B may end", _draw_regions(scale, ends)),
        *label_line("B ends", scale.bar((b["latest"], b["latest"], "▲"))),
        *draw_axis(scale, zero),
    ]


_LEGEND = (
    f"{_CERTAIN} B is in the window for every time of A, {_POSSIBLE} for some times of A",
    f"{_SATISFIED} B that ends here is satisfied, {_PROBED} depends on its length, else violated",
    "axis: from the end of A",
)


def _draw_window(scale: Scale, a: Mapping[str, Any], lower: int | None, upper: int | None) -> str:
    """Draw the times of B that satisfy the predicate for some, and for every, time of A."""
    begin = (None, None) if lower is None else (a["earliest"] + lower, a["latest"] + lower)
    end = (None, None) if upper is None else (a["latest"] + upper, a["earliest"] + upper)
    possible, certain = (
        (
            scale.low if first is None else first,
            scale.high if last is None else last,
        )
        for first, last in zip(begin, end, strict=True)
    )
    return scale.bar((*possible, _POSSIBLE), (*certain, _CERTAIN))


def _draw_regions(scale: Scale, ends: tuple[int, ...]) -> str:
    lh, ll, rl, rh = ends
    return scale.bar((lh, rh, _PROBED), (ll, rl, _SATISFIED))


def _draw_table(answer: Mapping[str, Any]) -> list[str]:
    """Draw the table of regions with each event as base event, and the target's region."""
    rows: list[Sequence[str]] = [_TITLES]
    for base in ("a", "b"):
        found = answer["regions"][f"base_{base}"]
        ends = [describe_duration(found[f"{end}_us"]) for end in ("lh", "ll", "rl", "rh")]
        if found["ll_us"] > found["rl_us"]:
            ends[1:3] = ["none", "none"]
        offset = describe_duration(found["offset_us"])
        rows.append((base.upper(), *ends, offset, _REGIONS[found["region"]]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_align(row, widths)).rstrip() for row in rows]


def _align(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for title, cell, width in zip(_TITLES, row, widths, strict=True):
        yield cell.rjust(width) if title in _RIGHT_ALIGNED else cell.ljust(width)


def _describe_ways(answer: Mapping[str, Any]) -> str:
    ways = [str(way).replace("_", " ") for way in answer["decided_by"]]
    if len(ways) == 1:
        return f"{ways[0]} ({answer['algorithm']})"
    return (
        f"{', '.join(ways[:-1])} or {ways[-1]}, depending on other events ({answer['algorithm']})"
    )
