"""Load the kernels, and compile them if needed, by running a small part of a slot's work.

The warm-up runs before Spark's workers are forked, so that the kernels are loaded for the first
events, and while the image is built, so that a new container does not compile. As in the job,
events are converted to bytes and back, and the program is restored: arrays that are views of
received bytes are read-only, which is a different type to numba.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from correlation.buffers.columns import Column, DictionaryColumn, SetsColumn
from correlation.buffers.events import Events
from correlation.buffers.partitioner import Partitioner
from correlation.engine.program import Block, Control, Program
from correlation.engine.progress import Progress
from correlation.kinds import KINDS
from correlation.record_columns import columns_of
from correlation.resources.attributes import Attribute, encode_value
from correlation.resources.histogram import Histogram
from correlation.resources.partitioning import Partitioning
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from correlation.resources.tokens import TOKENS_COLUMN, Tokens
from spark_jobs.worker.envelope import pack_result, unpack_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from correlation.operators import Result

_SECOND_US = 1_000_000
# Streams of uncertain times in the chosen form, and streams of exact instants with attributes.
_UNCERTAIN, _EXACT = ("a", "b"), ("c", "d")
_NAMES = (*_UNCERTAIN, *_EXACT)
_ATTRIBUTES = (Attribute("area", ("area",)), Attribute("level", ("level",), "integer"))
_TOKENS = Tokens(("words",))
_PARTITIONS = dict.fromkeys(_NAMES, 1)
# Events of a block; enough to produce pairs of every outcome.
_EVENTS = {"intervals": 24, "templates": 80, "histograms": 40}
_BLOCKS = 3
_HALF_US = _SECOND_US // 2
_TEMPLATE = Histogram.from_buckets([[-_SECOND_US, -_HALF_US, "0.2"], [-_HALF_US, 0, "0.8"]])


def main() -> None:
    """Run every kind of condition with every algorithm and report form, and print the result.

    The events are intervals, events of one template, and events with a histogram each.
    """
    found = {shapes: warm_up(shapes=shapes) for shapes in _EVENTS}
    if not all(found.values()):
        sys.exit(f"the warm-up found no pair, so some kernels have not run: {found}")
    sys.stdout.write(f"kernels compiled: {sum(found.values())} results found\n")


def warm_up(algorithm: str | None = None, shapes: str = "intervals") -> int:
    """Advance, store and restore a program with every kind of condition.

    Parameters
    ----------
    algorithm : str or None
        Algorithm of the conditions; every algorithm by default.
    shapes : {"intervals", "templates", "histograms"}
        Form of the events' timestamps.

    Returns
    -------
    int
        Number of result records.
    """
    controls = list(list_controls(algorithm, shapes))
    streams = list_streams(shapes)
    program = Program(streams, _PARTITIONS)
    blobs: dict[int, bytes] = {}
    alarms = 0
    for number in range(_BLOCKS):
        block = _block(number, controls if number == 0 else [], shapes)
        outcome = program.advance(block, lambda: 0)
        alarms += sum(map(_count_records, outcome.results))
        snapshot = program.snapshot()
        blobs |= snapshot.added
        program = Program.restore(snapshot.manifest, blobs.__getitem__, streams, _PARTITIONS)
    return alarms


def _count_records(result: Result) -> int:
    """Pack and unpack the records of a result, and count them."""
    packed = pack_result("", result.heading(0), columns_of(result, 0, orjson.dumps))
    return sum(1 for blob in packed for _ in unpack_records(blob))


def list_streams(shapes: str) -> dict[str, Stream]:
    """Return the streams of the warm-up by name.

    Parameters
    ----------
    shapes
        See `warm_up`: form of the times of streams a and b. The times of c and d are exact, and
        their events have the attributes area (a string) and level (an integer), and tokens.
    """
    templates = (Template("t", _TEMPLATE),) if shapes == "templates" else ()
    histograms = shapes == "histograms"
    uncertain = [
        Stream(it, it, _SECOND_US, _SECOND_US, templates=templates, histograms=histograms)
        for it in _UNCERTAIN
    ]
    exact = [Stream(it, it, 0, _SECOND_US, attributes=_ATTRIBUTES, tokens=_TOKENS) for it in _EXACT]
    return {stream.name: stream for stream in (*uncertain, *exact)}


def list_controls(algorithm: str | None, shapes: str) -> Iterator[Control]:
    """Yield the warm-up conditions of every kind.

    Parameters
    ----------
    algorithm, shapes
        See `warm_up`.

    Yields
    ------
    Control
        Registration of a condition on the streams of `list_streams`.
    """
    documents = [it for kind in KINDS.values() for it in kind.warm_up(algorithm, shapes)]
    for offset, document in enumerate(documents):
        resource = Resource("condition", f"warm-up-{offset}", 1, 0, dict(document))
        yield Control(offset, resource.key, resource.to_record())


def _shape(position: int, shapes: str) -> Histogram | None:
    if shapes == "templates":
        return _TEMPLATE
    if shapes in {"intervals", "instants"}:
        return None
    cut_us = -(position * 7_919 % _HALF_US) - 1
    return Histogram.from_buckets([[-_SECOND_US, cut_us, "0.2"], [cut_us, 0, "0.8"]])


def _block(number: int, controls: list[Control], shapes: str) -> Block:
    """Build a block of events of both streams, with many lengths, shapes and distances."""
    count = _EVENTS[shapes]
    offset = number * count
    parts, progress = [], []
    for stream in _NAMES:
        rows, found = [], []
        for position in range(offset, offset + count):
            shape = _shape(position, "instants" if stream in _EXACT else shapes)
            found.append(None if shape is None else shape.shape_bytes)
            length = position * 7_919 % _SECOND_US if shape is None else shape.length_us
            length = 0 if stream in _EXACT else length
            latest = position * _SECOND_US // 10
            rows.append((b"k", b"%d" % position, latest - length, latest, 0, position, latest))
        packed = Events.from_rows(stream, rows)
        if any(found):
            packed = replace(packed, shape=DictionaryColumn.from_list(found))
        if stream in _EXACT:
            packed = replace(packed, columns=_columns(offset, count, _EXACT.index(stream)))
        Partitioner(Partitioning(), 2).assign(packed)
        events = Events.from_bytes(packed.to_bytes())
        parts.append(events)
        progress.append(Progress(stream, 0, offset + count, int(events.latest.max())))
    return Block(controls, parts, progress)


def _columns(offset: int, count: int, place: int) -> dict[str, Column]:
    """Return the columns of attributes and tokens of a block.

    The streams share some of the areas and tokens; some sets are empty.
    """
    positions = range(offset, offset + count)
    values: tuple[list[bytes | None], ...] = (
        [encode_value(f"area {it % (3 + place)}") for it in positions],
        [encode_value(it % 5) for it in positions],
    )
    found: dict[str, Column] = {
        it.column_name: DictionaryColumn.from_list(column)
        for it, column in zip(_ATTRIBUTES, values, strict=True)
    }
    sets = [[b"%d" % (it * step % 7) for step in range(1, it % 5)] for it in positions]
    found[TOKENS_COLUMN] = SetsColumn.from_list([dict.fromkeys(it) for it in sets])
    return found


if __name__ == "__main__":
    main()
