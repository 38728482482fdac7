"""A client of server-sent events, which splits the stream as the standard says."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

ACCEPT = {"Accept": "text/event-stream"}


class Event(NamedTuple):
    """An event; without data, it only moves the id. The name is empty if the event has none."""

    id: str
    name: str
    data: Any
    lines: tuple[str, ...]


class EventStream:
    """The events of a response, in order; `id` is that of the last block."""

    def __init__(self, response: httpx.Response) -> None:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        self._events = parse(response.iter_raw())
        self.opening = next(self._events)
        self.id = self.opening.id

    def take(self, number: int) -> list[Event]:
        """Wait for a number of events that have data, and return them."""
        found: list[Event] = []
        while len(found) < number:
            event = next(self._events)
            self.id = event.id
            if event.data is not None:
                found.append(event)
        return found

    def rest(self) -> list[Event]:
        """Return the events until the stream ends."""
        return [it for it in self._events if it.data is not None]


@contextmanager
def listening(
    client: httpx.Client, last_id: str | None = None, **parameters: str | int
) -> Iterator[EventStream]:
    """Open a live feed of alarms, after an id if there is one."""
    headers = ACCEPT if last_id is None else {**ACCEPT, "Last-Event-ID": last_id}
    with client.stream("GET", "/v1/alarms", headers=headers, params=parameters) as response:
        assert response.status_code == 200, response.read()
        # Kept: a stream without references is closed.
        stream = EventStream(response)
        yield stream


def parse(parts: Iterator[bytes]) -> Iterator[Event]:
    """Yield the blocks of a stream."""
    buffer = b""
    for part in parts:
        *blocks, buffer = (buffer + part).split(b"\n\n")
        yield from map(_parse_block, blocks)
    assert buffer == b""


def _parse_block(block: bytes) -> Event:
    lines = tuple(block.decode().split("\n"))
    fields: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(":")
        fields.setdefault(name, []).append(value.removeprefix(" "))
    data = json.loads("\n".join(fields["data"])) if "data" in fields else None
    return Event(fields.get("id", [""])[0], fields.get("event", [""])[0], data, lines)
