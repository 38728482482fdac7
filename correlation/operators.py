"""What a kind of condition gives the program: the one seam between Program and the operators."""

from __future__ import annotations

import json
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.columns import Int64s
from correlation.buffers.segment import Segment

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Condition(Protocol):
    """A registered condition, whatever its kind."""

    @property
    def name(self) -> str:
        """Name of the condition."""

    @property
    def version(self) -> int:
        """Version of its document."""

    @property
    def kind(self) -> str:
        """Key of its kind in `correlation.kinds.KINDS`."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads, each once."""

    @property
    def output_topic(self) -> str | None:
        """Topic of its results; None for the installation's own."""


class OutputRecord(NamedTuple):
    """A result as a Kafka record.

    Parameters
    ----------
    key : bytes
        Of the record.
    value : bytes or None
        JSON; None is a tombstone, which removes the key from a compacted topic.
    ident : str
        Id of the record, for its CloudEvents header.
    """

    key: bytes
    value: bytes | None
    ident: str


class Heading(NamedTuple):
    """What the records of a result have in common.

    `topic` None means the installation's topic of `channel`.
    """

    channel: str
    topic: str | None
    headers: dict[str, str]


def make_heading(
    condition: Condition, detected_at_us: int, ce_type: str = "coincide.alarm.v1"
) -> Heading:
    """Build channel, topic and CloudEvents headers of a condition's results.

    Parameters
    ----------
    condition : Condition
        Whose results they are.
    detected_at_us : int
        When the correlation completed, in µs since 1970.
    ce_type : str
        CloudEvents type of the records.
    """
    moment = (_EPOCH + timedelta(microseconds=detected_at_us)).isoformat()
    headers = {
        "content-type": "application/json",
        "ce_specversion": "1.0",
        "ce_type": ce_type,
        "ce_source": f"/coincide/conditions/{condition.name}",
        "ce_time": moment,
    }
    return Heading("alarms", condition.output_topic, headers)


# Column of buffered events with Kafka's timestamps of their records, int64[n] in µs.
TIMESTAMP = "record_timestamp_us"
# Writes a JSON-able value; the packages above have a quicker one than the standard library's.
Encode = Callable[[object], bytes]


def encode_json(value: object) -> bytes:
    """Write a JSON-able value with the standard library."""
    return json.dumps(value, separators=(",", ":")).encode()


class Result(Protocol):
    """Some results of one condition."""

    def heading(self, detected_at_us: int) -> Heading:
        """Give what the records have in common.

        Parameters
        ----------
        detected_at_us : int
            When the correlation completed, in µs since 1970.
        """

    def records(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[OutputRecord]:
        """Give the results as records.

        Parameters
        ----------
        detected_at_us : int or int64[n]
            When the correlation completed, in µs since 1970: one time, or one for each record.
        encode : callable
            Writes JSON.
        """

    def ready_us(self) -> Int64s:
        """Give, for each record, from when on it could be known: max(max_A, max_B), in µs."""


class Cache(Protocol):
    """Keeps what was costly to compute, across restarts; what it lacks is computed anew."""

    def get(self, name: str) -> bytes | None:
        """Return what was put under a name, None if it is not there."""

    def put(self, name: str, blob: bytes) -> None:
        """Keep a blob, if that is possible."""


@dataclass(frozen=True, slots=True)
class View:
    """What a condition may look at when a block is evaluated.

    Parameters
    ----------
    fresh : mapping of stream to Segment
        The block's events; a stream without events in the block is missing.
    record_timestamp_us : mapping of stream to int64[n]
        Kafka's timestamps of the fresh events, in the segment's order, in µs.
    buffers : mapping of stream to StreamBuffer
        Events of earlier blocks.
    watermarks : mapping of stream to int
        Watermarks with the block's progress in them, in µs.
    numbers : mapping of stream to int
        Numbers that the fresh segments have in the buffers later, unless they are merged.
    now_us : int or None
        How late it is by the records of the block (`progress.time_of_records`), in µs.
    closed : collection of str
        Streams that are closed with the block, or a partition of them is.
    reset : collection of str
        Streams whose watermark was reset with the block: only then is it less than before.
    shared : mutable mapping
        What conditions find out about the block's segments and leave for others.
    cache : Cache or None
        Keeps what is costly to compute across restarts.
    """

    fresh: Mapping[str, Segment]
    record_timestamp_us: Mapping[str, Int64s]
    buffers: Mapping[str, StreamBuffer]
    watermarks: Mapping[str, int]
    numbers: Mapping[str, int] = field(default_factory=dict)
    now_us: int | None = None
    closed: Collection[str] = ()
    reset: Collection[str] = ()
    shared: MutableMapping[Hashable, object] = field(default_factory=dict)
    cache: Cache | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a condition found in a block.

    Parameters
    ----------
    results : sequence of Result
        To be published.
    alarms : int
        Number of results in them.
    counts : sequence of (metric, labels, increase)
        Beyond those that Program counts for every condition.
    ready_us : int64[alarms]
        max(max_A, max_B) of each result: response time counts from here, in µs. Fewer where one
        record tells many results: of the last of them.
    record_timestamp_us : int64[k]
        Kafka's timestamp of the later record of each result that a record of the block completed
        (time that passed completes others), in µs.
    """

    results: Sequence[Result] = ()
    alarms: int = 0
    counts: Sequence[tuple[str, Mapping[str, str], int]] = ()
    ready_us: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    record_timestamp_us: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


class Operator(Protocol):
    """Evaluates one condition over the shared buffers of a slot."""

    def begin(
        self, watermarks: Mapping[str, int], held_from: Mapping[str, int], before: bytes
    ) -> None:
        """Take up the work, before the first block.

        Parameters
        ----------
        watermarks : mapping of stream to int
            Watermarks, as in `keep_values`.
        held_from : mapping of stream to int
            Of the events so far the buffers hold all with this `latest` or a later one, in µs.
        before : bytes
            What `dump` gave of the operator that did it until now: of the same condition before a
            restart or of its last version; empty if none did, or it kept nothing.
        """

    def evaluate(self, view: View) -> Evaluation:
        """Find the results that the block completes."""

    def keep_values(self, watermarks: Mapping[str, int]) -> Mapping[str, int]:
        """Give, per stream, the least `latest` that can still matter.

        Parameters
        ----------
        watermarks : mapping of stream to int
            Watermarks: no event still to come has a smaller `latest`, in µs.
        """

    def held(self) -> Mapping[str, Collection[int]]:
        """Give, per stream, the numbers of segments that must be there as they are next time."""

    def needs_timestamps(self) -> bool:
        """Return whether Kafka's timestamps are to be buffered with the events of its streams."""

    def dump(self) -> bytes:
        """Return the state it keeps beside the shared buffers; empty when there is none.

        Only what the buffers do not determine, such as a bound or a position: it is written with
        every batch.
        """
