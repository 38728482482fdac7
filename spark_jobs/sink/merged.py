"""Merge the shares of all slots, and write the merged results of a batch with their totals.

The transaction contains the results, the totals after the batch, and the mark of the batch. A batch
that Spark repeats is therefore either written with its totals or not at all, and is counted once
wherever the job was killed. The totals are in the state topic, with the mark to which they belong;
their metrics are in the metrics topic, like those of the slots. A process keeps the totals that it
has written, and reads those that another process has written.

If the job is killed before the driver merges, and its checkpoint is lost, the next job finds the
shares that the slots have kept in the state topic. If all slots have written the batch, it merges
them under the mark of the former query, which says whether they were merged. Otherwise the other
slots evaluate this batch as the first batch of the new query, and its merge has all shares.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import orjson

from correlation.engine.merged import MergedTotals
from correlation.errors import UnknownRecordVersionError
from correlation.shares import MissingShareError, join_shares, merge_shares
from spark_jobs.sink.batches import drop_producer, mark_group, merge_target, producer_of
from spark_jobs.sink.kept_shares import KeptShares
from spark_jobs.sink.marker import METRICS_KEY, TOTALS_VERSION, read_marks, totals_key
from spark_jobs.sink.ownership import MERGED
from spark_jobs.sink.state_topic import read_state
from spark_jobs.worker.envelope import PackedRecords, Record
from spark_jobs.worker.results import pack_results
from spark_jobs.worker.shares import SlotShares

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from correlation.operators import Share
    from correlation.shares import Merged
    from spark_jobs.settings import Properties
    from spark_jobs.sink.options import SinkOptions
    from spark_jobs.sink.transactions import PartitionProducer, Target

_log = logging.getLogger(__name__)

_READ_SECONDS = 60.0
# Max time for which a record is awaited that an open transaction of a slot may hide.
_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.1

# By target, the first batch that is not in the totals, and the totals as they were written.
_known: dict[Target, tuple[int, bytes]] = {}


def write_merged(batch: int, query: str, blobs: Sequence[bytes], options: SinkOptions) -> None:
    """Merge the shares of all slots, and write the merged results in one transaction.

    Parameters
    ----------
    batch : int
        Number of the batch.
    query : str
        Id of the query.
    blobs : sequence of bytes
        Shares of all slots (`SlotShares`).
    options : SinkOptions
        Options of the sink.

    Raises
    ------
    MissingShareError
        A slot has no share of a condition. In the first batch of a query whose slots do not begin
        together, the condition is left out instead.
    """
    target = merge_target(options.prefix, query, options.owner, options.marks)
    shares = [SlotShares.from_bytes(blob) for blob in blobs]
    if batch == 0 and options.ahead is not None:
        if producer_of(target, options.properties).next_batch():
            return
        shares = [*_former(target, options), *shares]
        merged = merge_shares(join_shares(_by_slot(shares)))
    else:
        merged = merge_shares(_by_slot(shares))
    later = [blob for it in shares for blob in it.later]
    detected_at_us = max(it.detected_at_us for it in shares)
    results = [it for one in merged if one.evaluation for it in one.evaluation.results]
    removed = [it.condition for it in merged if it.evaluation is None]
    if not (results or later or removed):
        return
    producer = producer_of(target, options.properties)
    if not (results or later):
        # Most conditions are of kinds without shares.
        known = _decode(_totals_before(producer.next_batch(), target, options.properties))
        if not any(it in known for it in removed):
            return
    # Before the transaction, which an error would leave open.
    _decode(_totals_before(producer.next_batch(), target, options.properties))
    packed = [*pack_results(results, detected_at_us, target.topics), *later]
    totals = _TotalsAfter(batch, merged, detected_at_us, target, options.properties)
    if producer.write(batch, _Output(producer, packed, totals)):
        _remember(target, batch + 1, totals.value)


def write_kept(
    values: Mapping[bytes, bytes],
    options: SinkOptions,
    checkpoints: Collection[str],
    present: str | None,
) -> str:
    """Write the merged results of the newest kept shares, if a former query has not written them.

    The producer of merged results of this process is dropped afterwards.

    Parameters
    ----------
    values, checkpoints, present
        See `KeptShares.newest`.
    options : SinkOptions
        Options of the sink.

    Returns
    -------
    str
        Id of the former query if some slots have not written its last batch, and all others have
        kept their shares; otherwise empty. See `SinkOptions.ahead`.
    """
    marks = read_marks(values)
    if present is not None and mark_group(options.prefix, present, MERGED) in marks:
        # It has replaced the mark of the former query.
        return ""
    kept = KeptShares.newest(values, checkpoints, present)
    if kept is None:
        return ""
    target = merge_target(options.prefix, kept.query, options.owner, options.marks)
    if marks.get(target.group, 0) > kept.batch:
        return ""
    chain = kept.chain(values)
    if not all(it.is_whole for it in chain):
        _log.warning(
            "changes of merged results in the last batch are not written: the shares of a task "
            "exceeded max.message.bytes of %s, or are of another version of this software",
            target.topics.state,
        )
        return ""
    found = [SlotShares.from_bytes(blob) for it in chain for blob in it.blobs]
    if len({it.slot for it in found}) < found[0].slots:
        return kept.query
    if not kept.batch:
        options = options._replace(ahead=kept.ahead)
    try:
        if producer_of(target, options.properties).next_batch() <= kept.batch:
            write_merged(kept.batch, kept.query, kept.blobs, options)
    except MissingShareError as error:
        _log.warning("changes of merged results in the last batch are not written: %s", error)
    finally:
        drop_producer(target)
    return ""


def _former(target: Target, options: SinkOptions) -> list[SlotShares]:
    """Return the shares of former queries that belong to the first merge."""
    if not options.ahead:
        return []
    values = read_state(options.properties, target.topics.state, _READ_SECONDS)
    kept = KeptShares.of_query(values, options.ahead)
    chain = [] if kept is None else kept.chain(values)
    return [SlotShares.from_bytes(blob) for it in chain for blob in it.blobs]


def _by_slot(shares: Sequence[SlotShares]) -> list[list[Share]]:
    """Return the shares of every slot, in order."""
    found: list[list[Share]] = [[] for _ in range(shares[0].slots)]
    for it in shares:
        found[it.slot] += it.shares
    return found


class _TotalsAfter:
    """The totals after a batch.

    Parameters
    ----------
    batch : int
        Number of the batch.
    merged : sequence of Merged
        Merged shares of the batch.
    now_us : int
        Time at which the correlation completed, in µs since 1970.
    target : Target
        Place in the installation.
    properties : mapping
        librdkafka properties.

    Attributes
    ----------
    value : bytes
        The totals as they were returned last.
    """

    def __init__(
        self,
        batch: int,
        merged: Sequence[Merged],
        now_us: int,
        target: Target,
        properties: Properties,
    ) -> None:
        self._batch, self._merged, self._now_us = batch, merged, now_us
        self._target, self._properties = target, properties
        self.value = b""

    def records(self, next_batch: int) -> Iterator[Record]:
        """Yield the record of the metrics topic, and the totals.

        Parameters
        ----------
        next_batch : int
            First batch that is not written yet.
        """
        totals = _decode(_totals_before(next_batch, self._target, self._properties))
        totals.count(self._merged, self._now_us)
        topics = self._target.topics
        yield Record(topics.metrics, METRICS_KEY, orjson.dumps(totals.to_record(self._now_us)))
        mark = {"group": self._target.group, "next_batch": self._batch + 1}
        self.value = orjson.dumps({"v": TOTALS_VERSION, **mark, "merged": totals.dump()})
        yield Record(topics.state, totals_key(self._target.transactional_id), self.value)


class _Output:
    """The records of a batch.

    The totals are computed in each attempt: another process may have written in between.

    Parameters
    ----------
    producer : PartitionProducer
        Producer of the records, whose mark says which batches are in the totals already.
    packed : sequence of bytes
        Packed records of the results.
    totals : _TotalsAfter
        The totals after the batch.
    """

    def __init__(
        self, producer: PartitionProducer, packed: Sequence[bytes], totals: _TotalsAfter
    ) -> None:
        self._producer, self._packed, self._totals = producer, packed, totals

    def __iter__(self) -> Iterator[Record]:
        """Yield the results and the totals."""
        yield from PackedRecords(self._packed)
        yield from self._totals.records(self._producer.next_batch())


def _remember(target: Target, next_batch: int, value: bytes) -> None:
    """Keep the totals of the batches before one; those of former queries are forgotten."""
    _known.clear()
    _known[target] = next_batch, value


def _totals_before(next_batch: int, target: Target, properties: Properties) -> bytes:
    """Return the totals of the batches before one as they were written; empty if they do not exist.

    Raises
    ------
    KafkaException
        When the state topic cannot be read.
    """
    known, value = _known.get(target, (-1, b""))
    if known != next_batch:
        value = _await_totals(target, next_batch, properties)
        _remember(target, next_batch, value)
    return value


def _await_totals(target: Target, next_batch: int, properties: Properties) -> bytes:
    """Read the totals of the batches before one; see `_totals_before`.

    Raises
    ------
    KafkaException
        When the state topic cannot be read.
    """
    deadline, pause_seconds = time.monotonic() + _PATIENCE_SECONDS, _PAUSE_SECONDS
    while True:
        value = _read_totals(target, properties)
        # A new query goes on with the totals of the query before.
        if not next_batch:
            return value
        found = orjson.loads(value or b"{}")
        if found.get("group") == target.group and found["next_batch"] >= next_batch:
            return value
        if time.monotonic() > deadline:
            _log.warning("merged results are counted from 0: their totals are not in Kafka")
            return b""
        time.sleep(pause_seconds)
        pause_seconds *= 2


def _read_totals(target: Target, properties: Properties) -> bytes:
    """Return the newest totals in the state topic; empty if they do not exist."""
    values = read_state(properties, target.topics.state, _READ_SECONDS)
    return values.get(totals_key(target.transactional_id), b"")


def _decode(value: bytes) -> MergedTotals:
    """Read totals as they were written.

    Raises
    ------
    UnknownRecordVersionError
        When another version of this software wrote them.
    """
    if not value:
        return MergedTotals()
    found = orjson.loads(value)
    if found["v"] != TOTALS_VERSION:
        raise UnknownRecordVersionError(
            f"the totals of merged results have version {found['v']!r}; this software reads "
            f"{TOTALS_VERSION}; use the software that wrote them"
        )
    if "error" in found:
        _log.error("merged results are counted from 0: their totals exceeded max.message.bytes")
        return MergedTotals()
    return MergedTotals.from_dump(found["merged"])
