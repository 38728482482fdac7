"""Lines of an explanation for a terminal: drawings on a time axis that are true to scale.

`ConditionKind.draw_explanation` returns such lines. The min width of a bar is one column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from correlation.resources.durations import UNITS_US, describe_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

# Columns of a drawing, and of the labels of its rows.
WIDTH = 80
LABEL = 11
_TICK_COLUMNS = 12
_NICE = (1, 2, 5, 10, 20, 50, 100, 200, 500)
# Steps of the axis, ascending: 1, 2, 5 of each power of ten up to seconds, then those of clocks.
_STEPS_US = (
    *(number * UNITS_US[unit] for unit in ("us", "ms") for number in _NICE),
    *(number * UNITS_US["s"] for number in (1, 2, 5, 10, 15, 30)),
    *(number * UNITS_US["min"] for number in (1, 2, 5, 10, 15, 30)),
    *(number * UNITS_US["h"] for number in (1, 2, 3, 6, 12)),
    *(number * 10**power * UNITS_US["d"] for power in range(9) for number in (1, 2, 5)),
)


class Line(NamedTuple):
    """A line of an explanation.

    Attributes
    ----------
    text : str
        The line, without codes of a terminal.
    style : {"drawing", "legend", "sentence"}
        Terminals do not wrap a drawing and a legend, show a legend less prominently, and leave an
        empty line before a drawing that comes first.
    """

    text: str
    style: Literal["drawing", "legend", "sentence"] = "drawing"


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


def label_line(name: str, line: str) -> Iterator[str]:
    """Yield a row with its label."""
    yield f"{name:<{LABEL}}{line}".rstrip()


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
