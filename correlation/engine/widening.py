"""Events that were buffered before their stream changed: limits, shapes and attributes."""

from __future__ import annotations

from dataclasses import replace

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
    return Segment(
        segment.group_keys,
        segment.group_starts,
        segment.earliest,
        segment.latest,
        segment.id,
        segment.late,
        segment.shape,
        kept,
    )


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
