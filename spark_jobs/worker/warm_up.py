"""Load the kernels, and compile them if needed, by running a small part of a slot's work.

The warm-up runs before Spark's workers are forked, so that the kernels are loaded for the first
events, and while the image is built, so that a new container does not compile. As in the job,
events are converted to bytes and back, and the program is restored: arrays that are views of
received bytes are read-only, which is a different type to numba.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import orjson

from correlation.buffers.columns import Column, DictionaryColumn, SetsColumn
from correlation.buffers.events import Events
from correlation.buffers.partitioner import Partitioner
from correlation.engine.program import Block, Control, Program
from correlation.engine.progress import Progress
from correlation.kinds import KINDS
from correlation.record_columns import columns_of
from correlation.resources.attributes import encode_value
from correlation.resources.histogram import Histogram
from correlation.resources.records import Resource
from correlation.resources.tokens import TOKENS_COLUMN
from correlation.room import Room
from spark_jobs.worker.envelope import pack_result, unpack_records

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from correlation.operators import Result
    from correlation.resources.attributes import Attribute, AttributeValue
    from correlation.resources.streams import Stream
    from correlation.warming import Algorithms

_SECOND_US = 1_000_000
# Events of a block; enough to produce pairs of every outcome.
_EVENTS = {"intervals": 24, "templates": 80, "histograms": 40}
_BLOCKS = 3
# Times that are multiples of it, modulo a length, have many different lengths.
_STEP = 7_919


class WarmUpGroup(NamedTuple):
    """Kinds that are evaluated together: their streams, and the registrations of their conditions.

    Attributes
    ----------
    streams : mapping of str to Stream
        Streams by name.
    controls : list of Control
        Registrations of conditions on these streams.
    """

    streams: Mapping[str, Stream]
    controls: list[Control]


def main() -> None:
    """Run every kind of condition with every algorithm and report form, and print the result.

    The events are intervals, events of one template, and events with a histogram each.
    """
    found = {shapes: warm_up(shapes=shapes) for shapes in _EVENTS}
    if not all(found.values()):
        sys.exit(f"the warm-up found no pair, so some kernels have not run: {found}")
    sys.stdout.write(f"kernels compiled: {sum(found.values())} results found\n")


def warm_up(
    algorithms: Algorithms = "all",
    shapes: str = "intervals",
    kinds: Collection[str] | None = None,
) -> int:
    """Advance, store and restore a program with every kind of condition.

    Parameters
    ----------
    algorithms : {"defaults", "all"}
        Algorithms of the conditions: those that their kinds use by default, or all.
    shapes : {"intervals", "templates", "histograms"}
        Form of the events' timestamps.
    kinds : collection of str or None
        Names of the kinds; None: all. Names that are not known are ignored.

    Returns
    -------
    int
        Number of result records.
    """
    return sum(_evaluate(it, shapes) for it in group_kinds(algorithms, shapes, kinds))


def group_kinds(
    algorithms: Algorithms, shapes: str, kinds: Collection[str] | None = None
) -> list[WarmUpGroup]:
    """Return the conditions of the warm-ups of kinds; kinds with equal streams are one group.

    Parameters
    ----------
    algorithms, shapes, kinds
        See `warm_up`.
    """
    groups: list[WarmUpGroup] = []
    for kind in (it for name, it in KINDS.items() if kinds is None or name in kinds):
        streams, documents = kind.warm_up(algorithms, shapes)
        group = next((it for it in groups if it.streams == streams), None)
        if group is None:
            group = WarmUpGroup(streams, [])
            groups.append(group)
        for offset, document in enumerate(documents, len(group.controls)):
            resource = Resource("condition", f"warm-up-{offset}", 1, 0, dict(document))
            group.controls.append(Control(offset, resource.key, resource.to_record()))
    return [it for it in groups if it.controls]


def _evaluate(group: WarmUpGroup, shapes: str) -> int:
    """Advance, store and restore the program of a group, and count the records of its results."""
    partitions = dict.fromkeys(group.streams, 1)
    program = Program(group.streams, partitions)
    blobs: dict[int, bytes] = {}
    alarms = 0
    for number in range(_BLOCKS):
        block = _block(number, group, _EVENTS[shapes])
        # The searches of the last block are divided, as those of a burst are.
        room = Room(0) if number == _BLOCKS - 1 else None
        outcome = program.advance(block, lambda: 0, room)
        alarms += sum(map(_count_records, outcome.results))
        snapshot = program.snapshot()
        blobs |= snapshot.added
        program = Program.restore(snapshot.manifest, blobs.__getitem__, group.streams, partitions)
    return alarms


def _count_records(result: Result) -> int:
    """Pack and unpack the records of a result, and count them."""
    packed = pack_result("", result.heading(0), columns_of(result, 0, orjson.dumps))
    return sum(1 for blob in packed for _ in unpack_records(blob))


def _block(number: int, group: WarmUpGroup, count: int) -> Block:
    """Build a block of events of all streams, with many lengths, shapes and distances."""
    offset = number * count
    positions = range(offset, offset + count)
    parts, progress = [], []
    for place, stream in enumerate(group.streams.values()):
        rows, found = [], []
        for position in positions:
            shape = _shape(stream, position)
            found.append(None if shape is None else shape.shape_bytes)
            length = _length(stream, position) if shape is None else shape.length_us
            latest = position * _SECOND_US // 10
            rows.append((b"k", b"%d" % position, latest - length, latest, 0, position, latest))
        packed = Events.from_rows(stream.name, rows)
        if any(found):
            packed = replace(packed, shape=DictionaryColumn.from_list(found))
        packed = replace(packed, columns=_columns(stream, positions, place))
        Partitioner(stream.partitioning, 2).assign(packed)
        events = Events.from_bytes(packed.to_bytes())
        parts.append(events)
        progress.append(Progress(stream.name, 0, offset + count, int(events.latest.max())))
    return Block(group.controls if number == 0 else [], parts, progress)


def _shape(stream: Stream, position: int) -> Histogram | None:
    if stream.templates:
        return stream.templates[position % len(stream.templates)].histogram
    if not stream.histograms:
        return None
    length_us = stream.max_uncertainty_us
    cut_us = -(position * _STEP % (length_us // 2)) - 1
    return Histogram.from_buckets([[-length_us, cut_us, "0.2"], [cut_us, 0, "0.8"]])


def _length(stream: Stream, position: int) -> int:
    """Return the length of an interval, or of an event that lasts, between its declared limits."""
    min_us, max_us = stream.min_uncertainty_us, stream.max_uncertainty_us
    if stream.lasts:
        min_us = stream.min_length_us or 0
        max_us = min_us + _SECOND_US if stream.max_length_us is None else stream.max_length_us
    return min_us + position * _STEP % max(1, max_us - min_us)


def _value(attribute: Attribute, position: int, strings: int) -> AttributeValue:
    match attribute.type:
        case "string":
            return f"{attribute.name} {position % strings}"
        case "boolean":
            return position % 2 == 0
        case "number":
            return position % 5 / 2
    return position % 5


def _columns(stream: Stream, positions: range, place: int) -> dict[str, Column]:
    """Return the columns of attributes and tokens of a block.

    Neighbouring streams share some of the strings and tokens; some sets are empty.
    """
    found: dict[str, Column] = {}
    for attribute in stream.attributes:
        values = [_value(attribute, it, 3 + place % 2) for it in positions]
        column: list[bytes | None] = [encode_value(it) for it in values]
        found[attribute.column_name] = DictionaryColumn.from_list(column)
    if stream.tokens is not None:
        sets = [[b"%d" % (it * step % 7) for step in range(1, it % 5)] for it in positions]
        found[TOKENS_COLUMN] = SetsColumn.from_list([dict.fromkeys(it) for it in sets])
    return found


if __name__ == "__main__":
    main()
