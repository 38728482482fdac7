"""State of a slot as published in Kafka, from which its program is rebuilt.

The state of a program consists of the buffered events and a few values beside them. The events are
records of the log, so these values and the sources of the events are all that must be stored to
continue without the checkpoint (docs/proofs.md, P-REBUILD). They are written in two parts: the
position with every block, and the conditions and totals, which may be large, less often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from correlation.buffers.buffer import FULL_SEGMENT_EVENTS, StreamBuffer
from correlation.buffers.events import Events
from correlation.buffers.segment import Segment
from correlation.buffers.sources import (
    Source,
    Sources,
    join_sources,
    narrow_sources,
    select_events,
    unite_sources,
)
from correlation.engine.registered import Registered
from correlation.engine.totals import Totals
from correlation.limits import UNKNOWN_WATERMARK
from correlation.operators import TIMESTAMP, Operator


class Published(NamedTuple):
    """State of a slot beside the buffered events.

    Parameters
    ----------
    position : dict
        Watermarks, bounds of the buffers and states of the operators. `sources` has the sources of
        the buffered events by stream, or None if they are not known. `held` has, by stream, the
        segments to which the state of an operator refers: their numbers and their sources. Their
        events are not in `sources`. `held_by` names the conditions of these operators.
    totals : dict
        Conditions with their documents, and the totals. They may be older than the position,
        except for the set of conditions and their versions.
    """

    position: dict[str, Any]
    totals: dict[str, Any]


def describe_buffered(
    buffers: Mapping[str, StreamBuffer], operators: Iterable[tuple[Registered, Operator]]
) -> dict[str, Any]:
    """Return the fields of a position that describe which events the buffers hold.

    Parameters
    ----------
    buffers : mapping of stream to StreamBuffer
        Buffers of the slot.
    operators : iterable of (Registered, Operator)
        Operators of the slot.
    """
    numbers: dict[str, set[int]] = {}
    held_by = []
    for entry, operator in operators:
        found = {name: set(it) for name, it in operator.held().items() if it}
        if found:
            held_by.append(entry.resource.name)
        for name, it in found.items():
            numbers.setdefault(name, set()).update(it)
    held = {
        name: [it for it in buffers[name].segments if it[0] in found]
        for name, found in numbers.items()
    }
    return {
        "sources": {
            name: _as_lists(
                join_sources(
                    segment.sources
                    for number, segment in buffer.segments
                    if number not in numbers.get(name, ())
                )
            )
            for name, buffer in buffers.items()
        },
        "held": {
            name: [[number, _as_lists(segment.sources)] for number, segment in found]
            for name, found in held.items()
        },
        "held_by": sorted(held_by),
    }


def read_sources(position: Mapping[str, Any]) -> dict[str, Sources | None]:
    """Return the sources of all events that the buffers of a position held, by stream.

    None: they are not known, because an earlier version of this software stored the events.
    """
    return {
        name: join_sources(
            [_as_sources(found), *(_as_sources(it) for _, it in position["held"].get(name, ()))]
        )
        for name, found in position["sources"].items()
    }


def _as_lists(sources: Sources | None) -> list[list[int]] | None:
    return None if sources is None else [list(it) for it in sources]


def _as_sources(found: Sequence[Sequence[int]] | None) -> Sources | None:
    return None if found is None else tuple(Source(*it) for it in found)


def build_segments(
    events: Mapping[str, Sequence[Events]], position: Mapping[str, Any]
) -> dict[str, list[tuple[int, Segment]]]:
    """Build the numbered segments of buffers from their events.

    Segments to which the state of an operator refers have the same events and the same number as
    before.

    Parameters
    ----------
    events : mapping of stream to sequence of Events
        Events in any order; those that the buffers did not hold are left out.
    position : mapping
        Published position of the slot, whose sources are known.
    """
    held: dict[str, list[Any]] = position["held"]
    number = max((it for found in held.values() for it, _ in found), default=-1) + 1
    segments: dict[str, list[tuple[int, Segment]]] = {}
    for name in sorted(events.keys() & position["sources"].keys()):
        parts = sorted(
            (it for it in events[name] if len(it)),
            key=lambda part: (int(part.partition[0]), int(part.offset[0])),
        )
        if not parts:
            continue
        joined = Events.concat(parts)
        # As if an operator needed the timestamps: the conditions are not built yet.
        stamps = {TIMESTAMP: joined.record_timestamp_us}
        joined = replace(joined, columns={**joined.columns, **stamps})
        segments[name] = []
        sources = _as_sources(position["sources"][name]) or ()
        rows = np.flatnonzero(select_events(joined, sources))
        for begin in range(0, len(rows), FULL_SEGMENT_EVENTS):
            mine = rows[begin : begin + FULL_SEGMENT_EVENTS]
            segments[name].append((number, _segment(joined.take(mine), sources)))
            number += 1
        for held_number, found in held.get(name, ()):
            sources = _as_sources(found) or ()
            rows = np.flatnonzero(select_events(joined, sources))
            # None, if the stream now has another filter.
            if len(rows):
                segments[name].append((held_number, _segment(joined.take(rows), sources)))
    return segments


def _segment(events: Events, sources: Sources) -> Segment:
    late = np.zeros(len(events), np.bool_)
    return Segment.from_events(events, late, narrow_sources(sources, events))[0]


def redistribute(found: Sequence[Published], slots: int) -> list[Published]:
    """Return the states of another number of slots.

    Watermarks, bounds and the states of operators follow from the progress of the streams, which is
    the same in all slots after the same batch. The sources of a slot need not name the events of
    others, so each new slot has the sources of all of them. Totals are sums over the slots: the
    first new slot continues with all of them.

    Parameters
    ----------
    found : sequence of Published
        States of all slots after the same batch, without held segments.
    slots : int
        New number of slots.
    """
    position = dict(found[0].position)
    position["forgotten"] = {
        name: [
            max(bounds[place] for bounds in _of_all(found, "forgotten", name)) for place in (0, 1)
        ]
        for name in position["forgotten"]
    }
    position["sources"] = {
        name: _as_lists(unite_sources(_as_sources(it.position["sources"][name]) for it in found))
        for name in position["sources"]
    }
    whole, none = Totals(), Totals()
    for it in found:
        whole.add(it.totals["totals"])
    shared = {**found[0].totals, "conditions": _newest_conditions(found)}
    return [
        Published(position, {**shared, "totals": (whole if slot == 0 else none).dump()})
        for slot in range(slots)
    ]


def _of_all(found: Sequence[Published], field: str, name: str) -> list[Any]:
    return [it.position[field].get(name, [UNKNOWN_WATERMARK] * 2) for it in found]


def _newest_conditions(found: Sequence[Published]) -> list[Any]:
    """Return the conditions with the time of their last alarm in any slot."""
    alarmed: dict[tuple[int, str], int | None] = {}
    for it in found:
        for config_offset, at_us, record in it.totals["conditions"]:
            place = config_offset, record["name"]
            before = alarmed.get(place)
            alarmed[place] = at_us if before is None else max(before, at_us or before)
    return [
        [config_offset, alarmed[config_offset, record["name"]], record]
        for config_offset, _, record in found[0].totals["conditions"]
    ]
