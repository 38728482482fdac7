"""Events that were buffered before their stream changed: limits, shapes, attributes and tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.columns import DictionaryColumn
from correlation.buffers.segment import Segment
from correlation.resources.attributes import (
    Attribute,
    decode_value,
    encode_value,
    fit_value,
    is_attribute_column,
)
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream
from correlation.resources.tokens import TOKENS_COLUMN, fingerprint


def widen(stream: Stream, buffer: StreamBuffer) -> Stream:
    """Return a stream whose limits include the lengths and shapes of its buffered events.

    The result has the default mapping, as buffered events have already been read, unless the
    events last: they have no uncertainty, and their lengths may exceed the declared limits.

    Parameters
    ----------
    stream : Stream
        The stream as now declared.
    buffer : StreamBuffer
        Buffered events of the stream.
    """
    segments = [segment for _, segment in buffer.segments]
    if stream.lasts:
        return replace(
            stream,
            min_length_us=min(
                [stream.min_length_us or 0, *(it.min_uncertainty for it in segments)]
            ),
            max_length_us=None
            if stream.max_length_us is None
            else max([stream.max_length_us, *(it.max_uncertainty for it in segments)]),
        )
    known = {template.histogram.shape_bytes for template in stream.templates}
    unknown = any(
        segment.shape is not None and not known.issuperset(segment.shape.values.to_list())
        for segment in segments
    )
    return replace(
        stream,
        min_uncertainty_us=min(
            [stream.min_uncertainty_us, *(segment.min_uncertainty for segment in segments)]
        ),
        max_uncertainty_us=max(
            [stream.max_uncertainty_us, *(segment.max_uncertainty for segment in segments)]
        ),
        histograms=stream.histograms or unknown,
        mapping=EventMapping(),
    )


class Refitting:
    """Fits the columns of restored segments to the streams in force.

    Sets of tokens that were read under another declaration are not comparable with those read now:
    segments with such sets lose them. Numbers of segments ascend, so the first segment of the
    present declaration separates the two.

    Parameters
    ----------
    streams : mapping of name to Stream
        The streams in force.
    stored : mapping of name to list
        Output of `to_record` when the segments were stored.
    next_number : int
        First number that no stored segment has.
    """

    __slots__ = ("_declared", "_since", "_streams")

    def __init__(
        self,
        streams: Mapping[str, Stream],
        stored: Mapping[str, Sequence[Any]],
        next_number: int,
    ) -> None:
        self._streams = streams
        self._declared = {
            name: fingerprint(it.tokens) for name, it in streams.items() if it.tokens is not None
        }
        # Number of the first segment whose tokens were read as the stream declares now.
        self._since: dict[str, int] = {}
        for name, declared in self._declared.items():
            before, since = stored.get(name, (None, 0))
            self._since[name] = since if before == declared else next_number

    def to_record(self) -> dict[str, list[Any]]:
        """Return what `stored` needs: each declaration of tokens and its first segment's number."""
        return {name: [it, self._since[name]] for name, it in self._declared.items()}

    def fit(self, name: str, number: int, segment: Segment) -> Segment:
        """Return a stored segment of a stream with the columns that the stream now declares."""
        if TOKENS_COLUMN in segment.columns and number < self._since.get(name, number + 1):
            kept = {it: column for it, column in segment.columns.items() if it != TOKENS_COLUMN}
            segment = segment.replace_columns(kept)
        return fit_attributes(self._streams[name], segment)


def fit_attributes(stream: Stream, segment: Segment) -> Segment:
    """Return a segment whose attribute columns have the types that its stream now declares.

    Values that do not fit, and attributes that are no longer declared, are missing.

    Parameters
    ----------
    stream : Stream
        The stream as now declared.
    segment : Segment
        Buffered events of the stream.
    """
    if not any(map(is_attribute_column, segment.columns)):
        return segment
    kept = {name: it for name, it in segment.columns.items() if not is_attribute_column(name)}
    for attribute in stream.attributes:
        column = segment.columns.get(attribute.column_name)
        if isinstance(column, DictionaryColumn):
            kept[attribute.column_name] = _fit_column(column, attribute)
    return segment.replace_columns(kept)


def _fit_column(column: DictionaryColumn, attribute: Attribute) -> DictionaryColumn:
    values = column.values.to_list()
    fitting = [_fit_encoded(value, attribute) for value in values]
    if fitting == values:
        return column
    return DictionaryColumn.from_list([None if it < 0 else fitting[it] for it in column.codes])


def _fit_encoded(encoded: bytes, attribute: Attribute) -> bytes | None:
    try:
        return encode_value(fit_value(decode_value(encoded), attribute.type))
    except ValueError:
        return None
