"""Widening of a changed stream to the events that were buffered before the change."""

from __future__ import annotations

from dataclasses import replace

from correlation.buffers.buffer import StreamBuffer
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream


def widen(stream: Stream, buffer: StreamBuffer) -> Stream:
    """Return a stream whose limits include the lengths and shapes of its buffered events.

    The result has the default mapping, as buffered events have already been read.

    Parameters
    ----------
    stream : Stream
        The stream as now declared.
    buffer : StreamBuffer
        Buffered events of the stream.
    """
    segments = [segment for _, segment in buffer.segments]
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
