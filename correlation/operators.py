"""Protocols between `Program` and the operators of the kinds of conditions."""

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
from correlation.resources.schemas import STRING, Schema, constant, described, headers_of
from correlation.resources.topics import ALARMS, Channel
from correlation.result_format import TYPE_HEADER
from correlation.room import Room

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Condition(Protocol):
    """A registered condition of any kind."""

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
        """Names of its input streams, without duplicates."""

    @property
    def output_topic(self) -> str | None:
        """Topic of its results; None: the installation's topic."""


class OutputRecord(NamedTuple):
    """A result as a Kafka record.

    Parameters
    ----------
    key : bytes
        Key of the record.
    value : bytes or None
        JSON; None is a tombstone, which removes the key from a compacted topic.
    ident : str
        Id for the record's CloudEvents header.
    """

    key: bytes
    value: bytes | None
    ident: str


class Heading(NamedTuple):
    """Channel, topic and headers that all records of a result share.

    `channel` is the name of a channel. If `topic` is None, the records go to the installation's
    topic of the channel.
    """

    channel: str
    topic: str | None
    headers: dict[str, str]


def make_heading(
    condition: Condition,
    detected_at_us: int,
    ce_type: str,
    channel: Channel = ALARMS,
) -> Heading:
    """Build channel, topic and CloudEvents headers of a condition's results.

    The condition's output topic replaces the topic of the channel, unless the channel is compacted.

    Parameters
    ----------
    condition : Condition
        Condition that has the results.
    detected_at_us : int
        Time at which the correlation completed, in µs since 1970.
    ce_type : str
        CloudEvents type of the records.
    channel : Channel
        A channel that the condition's kind declares, or that of alarms.
    """
    moment = (_EPOCH + timedelta(microseconds=detected_at_us)).isoformat()
    headers = {
        "content-type": "application/json",
        "ce_specversion": "1.0",
        TYPE_HEADER: ce_type,
        "ce_source": f"/coincide/conditions/{condition.name}",
        "ce_time": moment,
    }
    topic = None if channel.compacted else condition.output_topic
    return Heading(channel.name, topic, headers)


def result_headers(ce_type: str | None = None) -> Schema:
    """Return the schema of the headers of results, those of `make_heading` and `ce_id`.

    Parameters
    ----------
    ce_type : str or None
        CloudEvents type of the records; None: any.
    """
    return headers_of(
        {
            "content-type": constant("application/json"),
            "ce_specversion": constant("1.0"),
            "ce_type": STRING if ce_type is None else constant(ce_type),
            "ce_source": {"type": "string", "pattern": "^/coincide/conditions/"},
            "ce_time": {"type": "string", "format": "date-time"},
            "ce_id": described(STRING, "Id of the result; a repeated result has the same id."),
        }
    )


# Column of buffered events that holds Kafka's record timestamps, int64[n] in µs.
TIMESTAMP = "record_timestamp_us"
# Writes a value as JSON; callers may pass a faster encoder than the standard library's.
Encode = Callable[[object], bytes]


def encode_json(value: object) -> bytes:
    """Write a value as JSON with the standard library."""
    return json.dumps(value, separators=(",", ":")).encode()


class Result(Protocol):
    """Results of one condition."""

    def heading(self, detected_at_us: int) -> Heading:
        """Return channel, topic and headers of the records.

        Parameters
        ----------
        detected_at_us : int
            Time at which the correlation completed, in µs since 1970.
        """

    def records(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[OutputRecord]:
        """Return the results as records.

        Parameters
        ----------
        detected_at_us : int or int64[n]
            Time at which the correlation completed, in µs since 1970: for all records or for each.
        encode : callable
            JSON encoder.
        """

    def ready_us(self) -> Int64s:
        """Return the earliest possible detection time of each record: max(max_A, max_B), in µs."""


class Share(NamedTuple):
    """Share of a slot in results that need all slots, such as one list of all cells of a grid.

    While a condition is evaluated, either every slot returns a share in a block, or none does. The
    shares of a block are merged after it (`correlation.shares`).

    Parameters
    ----------
    kind : str
        Kind of the condition.
    condition : str
        Name of the condition.
    version : int
        Version of its document.
    blob : bytes
        The share, as the kind writes it (`ConditionKind.merge_shares`). Empty: the condition was
        removed, and the totals of its merged results end.
    has_changes : bool
        Whether the share may lead to results. Shares of a block are merged if one of them does.
    is_live : bool
        Whether all streams of the condition follow the wall clock; `Program` sets it.
    """

    kind: str
    condition: str
    version: int
    blob: bytes
    has_changes: bool = True
    is_live: bool = False


class Cache(Protocol):
    """Cache of expensive computations that survives restarts; missing entries are recomputed."""

    def get(self, name: str) -> bytes | None:
        """Return the blob stored under a name, or None if it is missing."""

    def put(self, name: str, blob: bytes) -> None:
        """Store a blob, if possible."""


@dataclass(frozen=True, slots=True)
class View:
    """Input of an operator when a block is evaluated.

    Parameters
    ----------
    fresh : mapping of stream to Segment
        The block's events; streams without events in the block are missing.
    record_timestamp_us : mapping of stream to int64[n]
        Kafka's timestamps of the fresh events, in the segment's order, in µs.
    buffers : mapping of stream to StreamBuffer
        Events of earlier blocks.
    watermarks : mapping of stream to int
        Watermarks after the block's progress, in µs.
    numbers : mapping of stream to int
        Segment numbers of the fresh segments in the buffers, unless they are merged.
    now_us : int or None
        Current time according to the block's records (`progress.time_of_records`), in µs.
    closed : collection of str
        Streams that the block closes, wholly or in one partition.
    reset : collection of str
        Streams whose watermark the block resets; only a reset lowers a watermark.
    max_latest : mapping of stream to int
        Maximum `latest` of all events so far, of all slots, in µs.
    shared : mutable mapping
        Results about the block's segments that conditions share with each other.
    operators : sequence of Operator
        Operators of all conditions, in the order in which they evaluate the block.
    cache : Cache or None
        Cache of expensive computations that survives restarts.
    read : collection of str
        Streams of which the block has records, in any slot.
    room : Room
        Room for pairs that are kept until they are written.
    flush : bool
        Whether events that wait for a block are evaluated now, with those of this block.
    """

    fresh: Mapping[str, Segment]
    record_timestamp_us: Mapping[str, Int64s]
    buffers: Mapping[str, StreamBuffer]
    watermarks: Mapping[str, int]
    numbers: Mapping[str, int] = field(default_factory=dict)
    now_us: int | None = None
    closed: Collection[str] = ()
    reset: Collection[str] = ()
    max_latest: Mapping[str, int] = field(default_factory=dict)
    shared: MutableMapping[Hashable, object] = field(default_factory=dict)
    operators: Sequence[Operator] = ()
    cache: Cache | None = None
    read: Collection[str] = ()
    room: Room = field(default_factory=Room)
    flush: bool = False


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Results of a condition in a block: of a slot, or merged from the shares of all slots.

    Parameters
    ----------
    results : sequence of Result
        Results to publish.
    alarms : int
        Number of alarms in `results`. Those of shares are counted when the shares are merged.
    counts : sequence of (metric, labels, increase)
        Metrics in addition to those that Program counts for every condition.
    ready_us : int64[k]
        max(max_A, max_B) of each alarm, the start of its response time, in µs; if a record holds
        many alarms, of the last alarm of each record.
    record_timestamp_us : int64[l]
        Kafka's timestamp of the later record of each result that a record of the block completed,
        in µs. Results that the passing of time completed are left out.
    gauges : mapping of str to number
        Present values of gauges that the kind declares, by name; a gauge that is missing has no
        value after this block.
    shares : sequence of Share
        Shares of results that need all slots.
    ready_counts, record_counts : int64[k] and int64[l], or None
        Number of alarms, and of results, with each of the times above; None: one.
    """

    results: Sequence[Result] = ()
    alarms: int = 0
    counts: Sequence[tuple[str, Mapping[str, str], int]] = ()
    ready_us: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    record_timestamp_us: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    gauges: Mapping[str, float] = field(default_factory=dict)
    shares: Sequence[Share] = ()
    ready_counts: NDArray[np.int64] | None = None
    record_counts: NDArray[np.int64] | None = None


def join_evaluations(parts: Sequence[Evaluation]) -> Evaluation:
    """Join the evaluations of parts of a block, without gauges and shares."""
    none = np.zeros(0, np.int64)
    return Evaluation(
        results=[result for it in parts for result in it.results],
        alarms=sum(it.alarms for it in parts),
        counts=[count for it in parts for count in it.counts],
        ready_us=np.concatenate([none, *(it.ready_us for it in parts)]),
        record_timestamp_us=np.concatenate([none, *(it.record_timestamp_us for it in parts)]),
        ready_counts=_join_counts([(it.ready_us, it.ready_counts) for it in parts]),
        record_counts=_join_counts([(it.record_timestamp_us, it.record_counts) for it in parts]),
    )


def _join_counts(
    counted: Sequence[tuple[NDArray[np.int64], NDArray[np.int64] | None]],
) -> NDArray[np.int64] | None:
    if all(counts is None for _, counts in counted):
        return None
    return np.concatenate(
        [np.ones(len(times), np.int64) if counts is None else counts for times, counts in counted]
    )


class Operator(Protocol):
    """Evaluation of one condition over the shared buffers of a slot."""

    def begin(
        self, watermarks: Mapping[str, int], held_from: Mapping[str, int], before: bytes
    ) -> None:
        """Prepare the operator before the first block.

        Parameters
        ----------
        watermarks : mapping of stream to int
            Watermarks, as in `keep_values`.
        held_from : mapping of stream to int
            The buffers hold all events read so far whose `latest` is at least this, in µs.
        before : bytes
            State returned by `dump` of the previous operator, which evaluated the condition before
            a restart or its previous version. Empty without a previous operator or state, after a
            version of a kind with other states (`ConditionKind.state`), and after the lists of the
            previous version were withdrawn.
        """

    def evaluate(self, view: View) -> Evaluation:
        """Find the results that the block completes."""

    def keep_values(self, watermarks: Mapping[str, int]) -> Mapping[str, int]:
        """Return the keep value of each stream: the minimum `latest` that is still needed.

        Parameters
        ----------
        watermarks : mapping of stream to int
            Watermarks: future events have at least this `latest`, in µs.
        """

    def held(self) -> Mapping[str, Collection[int]]:
        """Return, per stream, the numbers of segments that must not change before the next call."""

    def needs_timestamps(self) -> bool:
        """Return whether the events of its streams are buffered with Kafka's timestamps."""

    def dump(self) -> bytes:
        """Return the operator's own state outside the shared buffers; may be empty.

        The state is written with every batch. It contains only values that the buffers do not
        determine, such as a bound or a position. An operator that maintains lists returns a state
        that is not empty while a list is published (`ConditionKind.withdraw`).
        """
