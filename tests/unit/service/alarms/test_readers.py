"""Readers of live feeds, driven step by step."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from service.alarms.memory import RecentRecords
from service.alarms.readers import Reader, Readers
from service.alarms.records import Selection
from service.errors import NotReadyError, TooManyReadersError
from tests.support.event_stream import Event, parse
from tests.support.messages import naming
from tests.support.recent_results import add, memory_of, record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEY = b"k" * 32


def reader_of(memory: RecentRecords, selection: Selection | None = None) -> Reader:
    shown = selection or Selection()
    return Reader(memory, shown.show, KEY, memory.last_number())


async def take(events: AsyncIterator[bytes]) -> list[Event]:
    """Return the events of the next part of a stream."""
    return list(parse(iter([await anext(events)])))


def offsets(events: list[Event]) -> list[int]:
    return [it.data["offset"] for it in events]


def test_slow_reader_is_dropped_while_a_fast_one_gets_all() -> None:
    memory = memory_of(most=10)

    async def run() -> None:
        fast, slow = reader_of(memory), reader_of(memory)
        events, slow_events = fast.events(), slow.events()
        await take(events)
        await take(slow_events)
        found: list[int] = []
        for first in range(0, 30, 5):
            add(memory, *(record(offset) for offset in range(first, first + 5)))
            found += offsets(await take(events))
        assert found == list(range(30))
        (dropped,) = await take(slow_events)
        assert (dropped.name, dropped.data["topics"]) == ("dropped", ["t"])
        assert [it async for it in slow_events] == []
        assert (fast.is_dropped, slow.is_dropped) == (False, True)

    asyncio.run(run())


def test_reader_whose_connection_takes_no_bytes_is_cancelled() -> None:
    memory = memory_of(most=10)
    cancelled: list[str] = []

    async def run() -> None:
        blocked = reader_of(memory)
        blocked.cancel = lambda: cancelled.append("blocked")
        events = blocked.events()
        await take(events)
        add(memory, record(0))
        await take(events)
        add(memory, *(record(offset) for offset in range(1, 11)))
        blocked.wake()
        blocked.wake()
        # It has not taken records that are still in memory: it has missed nothing.
        assert cancelled == []
        add(memory, record(11))
        blocked.wake()
        assert cancelled == []
        blocked.wake()
        assert cancelled == ["blocked"]
        assert blocked.is_dropped

    asyncio.run(run())


def test_idle_stream_is_kept_alive_and_its_id_moves_on() -> None:
    memory = memory_of()

    async def run() -> None:
        events = reader_of(memory, Selection(condition="other")).events(keep_alive_seconds=0.001)
        (opening,) = await take(events)
        assert opening.lines[0].startswith("id: ")
        assert opening.lines[1] == "retry: 3000"
        (first,) = await take(events)
        assert (first.lines[0], first.id) == (": keep-alive", opening.id)
        add(memory, record(0))
        (second,) = await take(events)
        assert second.data is None
        assert second.id != opening.id

    asyncio.run(run())


def test_waiting_reader_is_woken_and_stopped() -> None:
    memory, readers = memory_of(), Readers(1)

    async def run() -> None:
        reader = reader_of(memory)
        readers.add(reader, asyncio.get_running_loop())
        events = reader.events()
        await take(events)
        waiting = asyncio.ensure_future(take(events))
        await asyncio.sleep(0)
        add(memory, record(0), record(1))
        await asyncio.to_thread(readers.wake)
        assert offsets(await waiting) == [0, 1]
        ending = asyncio.ensure_future(anext(events, None))
        await asyncio.sleep(0)
        readers.close()
        assert await ending is None
        with pytest.raises(NotReadyError):
            readers.add(reader_of(memory), asyncio.get_running_loop())

    asyncio.run(run())


def test_number_of_readers_is_limited() -> None:
    memory, readers = memory_of(), Readers(2)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        first, second, third = (reader_of(memory) for _ in range(3))
        readers.add(first, loop)
        readers.add(second, loop)
        with pytest.raises(TooManyReadersError, match="2 live feeds are open"):
            readers.add(third, loop)
        readers.remove(first)
        readers.add(third, loop)
        assert len(readers) == 2
        second.is_dropped = True
        readers.remove(second)
        assert readers.dropped_total == 1

    asyncio.run(run())


def test_caller_has_at_most_half_of_the_readers() -> None:
    memory, readers = memory_of(), Readers(4)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        opened = [reader_of(memory) for _ in range(2)]
        for it in opened:
            readers.add(it, loop, "key a")
        with pytest.raises(TooManyReadersError, match=naming("2 live feeds", "key a")):
            readers.add(reader_of(memory), loop, "key a")
        readers.add(reader_of(memory), loop, "key b")
        readers.remove(opened[0])
        readers.add(reader_of(memory), loop, "key a")
        # Callers that are not known share all readers.
        readers.add(reader_of(memory), loop)
        with pytest.raises(TooManyReadersError, match="4 live feeds are open"):
            readers.add(reader_of(memory), loop)

    asyncio.run(run())


def test_types_of_records_are_not_taken_for_those_of_the_service() -> None:
    memory = memory_of()

    async def run() -> None:
        events = reader_of(memory).events()
        await take(events)
        types = ["gap", "dropped", None, "coincide.list.v1"]
        add(memory, *(record(offset, ce_type=it) for offset, it in enumerate(types)))
        assert [it.name for it in await take(events)] == ["", "", "", "coincide.list.v1"]

    asyncio.run(run())
