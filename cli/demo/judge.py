"""Plain judge of the demo's event query: cancellations against departures, in a few lines.

The judge computes the declarative meaning of the query from the records that were sent. It has no
buffers and no progress, and shares no code with the evaluation.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cli.demo.events import DemoEvent

_DAY = timedelta(days=1)


class Grounded(NamedTuple):
    """A result of the query: the id of the cancellation, and the attributes of the result."""

    cancellation: str
    flight: str
    tail: str
    to: str


def grounded_of(result: Mapping[str, Any]) -> Grounded:
    """Return the cancellation and the attributes of a result of the query."""
    return Grounded(result["events"]["c"]["id"], **result["attributes"])


def judge_grounded(events: Iterable[DemoEvent]) -> set[Grounded]:
    """Return the cancelled flights without a departure of their aircraft within a day.

    A departure at the scheduled time, or exactly a day later, counts.

    Parameters
    ----------
    events
        The events that were sent.
    """
    sent = list(events)
    departures: dict[str, list[datetime]] = {}
    for record in _records(sent, "departures"):
        moment = datetime.fromisoformat(record["departed"])
        departures.setdefault(record["tail"], []).append(moment)
    grounded = set()
    for record in _records(sent, "cancellations"):
        scheduled = datetime.fromisoformat(record["scheduled"])
        moments = departures.get(record["tail"], [])
        if not any(scheduled <= moment <= scheduled + _DAY for moment in moments):
            grounded.add(Grounded(record["record"], record["flight"], record["tail"], record["to"]))
    return grounded


def _records(events: Iterable[DemoEvent], topic: str) -> Iterable[dict[str, Any]]:
    return (orjson.loads(event.value) for event in events if event.topic == topic)
