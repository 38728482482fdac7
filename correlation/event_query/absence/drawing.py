"""Drawing of an explained positive event and the negated events that may stop it.

Rows: the instant of the positive event; for each negated event the times at which it certainly or
possibly stops the combination, and its instant; and the axis, whose zero is the end of the positive
event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from correlation.drawing import LABEL, WIDTH, Line, Scale, draw_axis, label_line
from correlation.event_query.absence.windows import INFINITE_US
from correlation.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_POSSIBLE, _CERTAIN, _EVENT = "─", "━", "█"
_PLACES = {
    "inside": "stops it with certainty",
    "outside": "does not stop it",
}
_LEGEND = (
    (
        f"{_CERTAIN} an event stops the combination for every time of the positive event, "
        f"{_POSSIBLE} for some"
    ),
    "axis: from the end of the positive event",
)


def draw_explanation(answer: Mapping[str, Any]) -> list[Line]:
    """Draw the explanation of a combination with uncertain instants.

    Parameters
    ----------
    answer : mapping
        Explanation of a combination (`correlation.event_query.explain`).

    Returns
    -------
    list of Line
        Empty if the explanation has no probability of absence.
    """
    found = answer.get("absence")
    if not found:
        return []
    return [*map(Line, _draw_absence(found)), *(Line(it, "legend") for it in _LEGEND)]


def _draw_absence(found: Mapping[str, Any]) -> list[str]:
    positive = found["positive"]
    scale = _scale(found)
    name = found["instant"] or "positive"
    lines = [*_line(name, scale.bar((positive["earliest_us"], positive["latest_us"], _EVENT)))]
    for alias, window in found["windows"].items():
        lines += _line(f"{alias} stops", _draw_window(scale, positive, window))
        for it in found["candidates"]:
            if it["alias"] == alias:
                bar = scale.bar((it["earliest_us"], it["latest_us"], _EVENT))
                lines += _line(alias, bar)
    lines += draw_axis(scale, positive["latest_us"])
    for it in found["candidates"]:
        place = _PLACES.get(it["place"], f"stops it with probability {_number(it, 'in_window')}")
        lines.append(printable(f"{it['alias']} {it['id']}: {place}"))
    if found["instant"]:
        lines.append(
            f"relations among the positive events: probability {_number(found, 'relations')}"
        )
    lines.append(
        f"probability of the result: {_number(found, 'probability')}, "
        f"threshold {found['threshold']}"
    )
    return lines


def _line(name: str, line: str) -> Iterator[str]:
    short = name if len(name) < LABEL else f"{name[: LABEL - 2]}…"
    return label_line(printable(short), line)


def _scale(found: Mapping[str, Any]) -> Scale:
    shown = []
    for it in (found["positive"], *found["candidates"]):
        shown += [it["earliest_us"], it["latest_us"]]
    for window in found["windows"].values():
        shown += [
            it[end] for it in window for end in ("first_us", "last_us") if it[end] is not None
        ]
    return Scale(min(shown), max(shown), WIDTH - LABEL)


def _draw_window(scale: Scale, positive: Mapping[str, Any], window: list[dict[str, Any]]) -> str:
    """Draw the times at which an event stops some, and every, time of the positive event."""
    possible, certain = [], []
    for it in window:
        first = scale.low if it["first_us"] is None else it["first_us"]
        last = scale.high if it["last_us"] is None else it["last_us"]
        possible.append((first, last, _POSSIBLE))
        begin, end = _end(it["positive"], "lo_us"), _end(it["positive"], "hi_us")
        if begin <= positive["earliest_us"] and positive["latest_us"] <= end:
            # first and last are between the fixed ends of the negated event.
            low = max(positive["latest_us"] + _end(it, "lo_us"), first)
            high = min(positive["earliest_us"] + _end(it, "hi_us"), last)
            certain.append((low, high, _CERTAIN))
    return scale.bar(*possible, *certain)


def _end(interval: Mapping[str, Any], name: str) -> int:
    """Return an end of an interval in columns."""
    found = interval[name]
    if found is None:
        return -INFINITE_US if name == "lo_us" else INFINITE_US
    return int(found)


def _number(numbers: Mapping[str, Any], name: str) -> str:
    exact = numbers[f"{name}_exact"]
    shown = f"{numbers[name]:.6g}"
    return shown if exact is None or exact in {"0", "1"} else f"{shown} = {exact}"
