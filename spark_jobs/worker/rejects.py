"""Dead letters: unchanged records that could not be read, with the reason in added headers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from correlation.resources.topics import error_headers
from kafka_client.messages import Headers
from spark_jobs.worker.envelope import Record, RecordPacker, unpack_meta

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.reasons import Reason


class Records(Protocol):
    """Records of one Kafka partition, as columns."""

    topic: str
    partition: int
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    offsets: NDArray[np.int64]

    def headers_of(self, row: int) -> Headers:
        """Return the headers of a record."""


def _never_written(topic: str, partition: int, offset: int) -> bool:  # noqa: ARG001 - as declared
    return False


class Rejects:
    """Collects the dead letters of a task, by Kafka partition.

    Parameters
    ----------
    topic : str
        Dead-letter topic.
    is_written : callable
        Whether the dead letter of a record (topic, partition, offset) was written before.
    """

    def __init__(
        self, topic: str, is_written: Callable[[str, int, int], bool] = _never_written
    ) -> None:
        self._topic = topic
        self._is_written = is_written
        self._packers: dict[int, RecordPacker] = {}
        self._counts: dict[int, Counter[tuple[str, str]]] = {}

    def add(self, records: Records, row: int, stream: str, reason: Reason, detail: str) -> None:
        """Add a rejected record.

        Parameters
        ----------
        records, row
            Columns of records, and the row of the record.
        stream : str
            Stream for which the record was read; empty for a record without a stream.
        reason, detail
            Reason for the rejection: an enum value for programs, and a message for people.
        """
        place = (records.topic, records.partition, int(records.offsets[row]))
        if self._is_written(*place):
            return
        headers = error_headers(reason, detail, stream, *place)
        letter = Record(
            self._topic,
            records.keys[row],
            records.values[row],
            (*records.headers_of(row), *headers.items()),
        )
        self._packers.setdefault(records.partition, RecordPacker()).add(letter)
        counts = self._counts.setdefault(records.partition, Counter())
        counts[stream, reason.value] += 1

    def finish(self) -> Iterator[tuple[int, bytes]]:
        """Yield blobs of output records, each with the Kafka partition of the rejected records."""
        for partition, packer in self._packers.items():
            counts = self._counts[partition]
            packer.meta = {"rejected": [[*place, count] for place, count in counts.items()]}
            for blob in packer.finish():
                yield partition, blob


def rejected_counts(blob: bytes) -> Counter[tuple[str, str]]:
    """Read the number of dead letters per (stream, reason) from the facts of a task's last blob."""
    rejected = unpack_meta(blob).get("rejected", ())
    return Counter({(stream, reason): count for stream, reason, count in rejected})
