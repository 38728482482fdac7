"""Events of the demo, and the order in which they are sent."""

from __future__ import annotations

from typing import NamedTuple


class DemoEvent(NamedTuple):
    """An event to send: its topic, id, record key, record value, and latest time in µs."""

    topic: str
    id: str
    key: bytes
    value: bytes
    latest_us: int


def interleave(*parts: list[DemoEvent]) -> list[DemoEvent]:
    """Return the events of all parts, each part spread evenly and in its order.

    Times of different parts are not compared: the data are of different years.
    """
    spread = [
        (number / len(part), place, event)
        for place, part in enumerate(parts)
        for number, event in enumerate(part)
    ]
    return [event for _, _, event in sorted(spread, key=lambda it: it[:2])]
