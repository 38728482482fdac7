"""Late events between the operator and the sink, as columns.

Events move through the shuffle without their records, because few of them are late. The sink reads
the records of late events again (`spark_jobs.sink.late_records`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from correlation.buffers.packing import pack_columns, unpack_columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.buffers.columns import Int64s
    from correlation.buffers.events import Events


class LateEvents(NamedTuple):
    """Late events of one stream in a batch.

    Parameters
    ----------
    stream, topic : str
        Name of the stream, and its topic.
    partition : int32[n]
        Kafka partition of each record.
    offset : int64[n]
        Kafka offset.
    record_timestamp_us : int64[n]
        Kafka's timestamp, in µs.
    """

    stream: str
    topic: str
    partition: NDArray[np.int32]
    offset: Int64s
    record_timestamp_us: Int64s

    @classmethod
    def of(cls, events: Events, topic: str) -> Self:
        """Return the places of events in a topic."""
        return cls(
            events.stream, topic, events.partition, events.offset, events.record_timestamp_us
        )

    def to_bytes(self) -> bytes:
        """Write the events as one byte string."""
        names = ("partition", "offset", "record_timestamp_us")
        columns = {name: getattr(self, name) for name in names}
        return pack_columns(columns, {"stream": self.stream, "topic": self.topic})

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """Read the output of `to_bytes`."""
        columns, meta = unpack_columns(blob)
        return cls(meta["stream"], meta["topic"], **cast("dict[str, Any]", columns))
