"""A stream as its buffered events need it, after its declaration has changed."""

from __future__ import annotations

from dataclasses import replace

from correlation.buffers.buffer import StreamBuffer
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream


def widen(stream: Stream, buffer: StreamBuffer) -> Stream:
    """Return a stream with the lengths and shapes of events that are buffered from before a change.

    It has the default mapping: buffered events were read already.

    Parameters
    ----------
    stream : Stream
        As it is declared now.
    buffer : StreamBuffer
        Its buffered events.
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
