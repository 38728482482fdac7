"""Text drawing of a pair of events on one time axis, true to scale (``explain``).

Rows: the intervals of A and B; the times at which B certainly or possibly satisfies the predicate;
the regions of A as base event, which classify the *end* of B; and the axis, whose zero is the end
of A. The min width of a bar is one column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from correlation.resources.durations import UNITS_US, describe_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WIDTH = 80
LABEL = 11
_TICK_COLUMNS = 12
_POSSIBLE, _CERTAIN = "─", "━"
_PROBED, _SATISFIED = "░", "▓"
_NICE = (1, 2, 5, 10, 20, 50, 100, 200, 500)
# Steps of the axis, ascending: 1, 2, 5 of each power of ten up to seconds, then those of clocks.
_STEPS_US = (
    *(number * UNITS_US[unit] for unit in ("us", "ms") for number in _NICE),
    *(number * UNITS_US["s"] for number in (1, 2, 5, 10, 15, 30)),
    *(number * UNITS_US["min"] for number in (1, 2, 5, 10, 15, 30)),
    *(number * UNITS_US["h"] for number in (1, 2, 3, 6, 12)),
    *(number * 10**power * UNITS_US["d"] for power in range(9) for number in (1, 2, 5)),
)


class Scale(NamedTuple):
    """Mapping of a time range, in µs, to columns."""

    low: int
    high: int
    columns: int

    def column(self, time: int) -> int:
        """Return the column of a time; a time out of range has the column of the nearer end."""
        span = max(1, self.high - self.low)
        place = (min(max(time, self.low), self.high) - self.low) * (self.columns - 1)
        return (2 * place + span) // (2 * span)

    def bar(self, *parts: tuple[int, int, str]) -> str:
        """Draw parts (begin, end, sign); later parts overwrite earlier ones."""
        cells = [" "] * self.columns
        for begin, end, sign in parts:
            if begin <= end and end >= self.low and begin <= self.high:
                first, last = self.column(begin), self.column(end)
                cells[first : last + 1] = [sign] * (last + 1 - first)
        return "".join(cells).rstrip()


def draw_pair(answer: Mapping[str, Any]) -> list[str]:
    """Draw the explanation of two events.

    Parameters
    ----------
    answer
        Response of the service.

    Returns
    -------
    list of str
        Lines of at most 80 columns; empty if the response has no window or regions.
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


LEGEND = (
    f"{_CERTAIN} B is in the window for every time of A, {_POSSIBLE} for some times of A",
    f"{_SATISFIED} B that ends here is satisfied, {_PROBED} depends on its length, else violated",
    "axis: from the end of A",
)


def label_line(name: str, line: str) -> Iterator[str]:
    """Yield a row with its label."""
    yield f"{name:<{LABEL}}{line}".rstrip()


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


def draw_axis(scale: Scale, zero: int) -> list[str]:
    """Draw the axis and its labels, with ticks at round distances from zero."""
    cells = ["─"] * scale.columns
    labels = [" "] * (scale.columns + LABEL)
    free = 0
    for tick in _ticks(scale, zero):
        column = scale.column(zero + tick)
        cells[column] = "┼"
        text = describe_duration(tick) if tick else "0"
        begin = min(max(column + LABEL - len(text) // 2, 0), len(labels) - len(text))
        if begin >= free:
            labels[begin : begin + len(text)] = text
            free = begin + len(text) + 1
    return [" " * LABEL + "".join(cells), "".join(labels).rstrip()]


def _ticks(scale: Scale, zero: int) -> range:
    """Return the offsets of the ticks from zero, with a step that leaves room for labels."""
    span = scale.high - scale.low
    room = max(1, scale.columns // _TICK_COLUMNS)
    step = next((step for step in _STEPS_US if span <= step * room), _STEPS_US[-1])
    first = -((zero - scale.low) // step) * step
    return range(first, scale.high - zero + 1, step)
