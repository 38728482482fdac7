"""The Kafka source as Spark data sources: of topics without end, and of ranges of offsets.

Spark's own Kafka source reads in the JVM, copies each record to a Python worker, and needs archives
that pyspark does not contain. Here the Python workers read with librdkafka, as all other clients of
Coincide do, and pack the records where they read them: Spark moves packed rows only. A process of
the driver plans the offsets of a batch; Spark stores them before the batch runs, so that a repeated
batch reads the same records.

Spark imports this module in several processes that describe the query and read nothing. Its
imports are therefore few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from spark_jobs.source.reading import RangeReading, StreamReading
from spark_jobs.worker.positions import from_json, to_json
from spark_jobs.worker.row_schemas import PACKED_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyarrow import RecordBatch
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from spark_jobs.source.offset_planner import OffsetPlanner
    from spark_jobs.source.reading import Reading
    from spark_jobs.worker.positions import Positions

STREAM_FORMAT, RANGE_FORMAT = "coincide-kafka-stream", "coincide-kafka-ranges"
_Offsets = dict[str, dict[str, int]]


class Ranges(InputPartition):
    """Ranges of offsets that one task reads.

    Parameters
    ----------
    ranges : sequence of (str, int, int, int)
        Topic, partition, first offset, and end offset.
    """

    def __init__(self, ranges: Sequence[tuple[str, int, int, int]]) -> None:
        super().__init__(tuple(ranges))


class KafkaStream(DataSource):
    """Topics without end. Spark makes the object from a class: `stream_of` returns it."""

    given: ClassVar[StreamReading]

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return STREAM_FORMAT

    def schema(self) -> StructType:
        """Return the schema: packed rows."""
        return PACKED_SCHEMA

    # Spark defines the name of the method.
    def streamReader(self, schema: StructType) -> KafkaStreamReader:  # noqa: ARG002, N802
        """Build the reader."""
        return KafkaStreamReader(self.given)


class KafkaRanges(DataSource):
    """Ranges of offsets. Spark makes the object from a class: `ranges_of` returns it."""

    given: ClassVar[RangeReading]

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return RANGE_FORMAT

    def schema(self) -> StructType:
        """Return the schema: packed rows."""
        return PACKED_SCHEMA

    def reader(self, schema: StructType) -> KafkaRangeReader:  # noqa: ARG002 - as Spark defines it
        """Build the reader."""
        return KafkaRangeReader(self.given)


def stream_of(reading: StreamReading) -> type[KafkaStream]:
    """Return the data source of a reading.

    Options of a data source are strings that Spark may log; a class is not.
    """

    class Given(KafkaStream):
        given = reading

    return Given


def ranges_of(reading: RangeReading) -> type[KafkaRanges]:
    """Return the data source of a reading; see `stream_of`."""

    class Given(KafkaRanges):
        given = reading

    return Given


# Spark defines the names of the methods.
class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in a process of the driver, and reads them in the tasks.

    Parameters
    ----------
    reading : StreamReading
        Parameters.
    """

    def __init__(self, reading: StreamReading) -> None:
        self._reading = reading
        self._planner: OffsetPlanner | None = None

    def initialOffset(self) -> _Offsets:  # noqa: N802
        """Return the offsets at which a new query begins."""
        return _to_json(self._plan().starts())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of a batch."""
        return ReadMaxRows(self._reading.max_records)

    def latestOffset(self, start: _Offsets, limit: ReadLimit) -> _Offsets:  # noqa: N802
        """Return the end offsets of a batch."""
        is_limited = not isinstance(limit, ReadAllAvailable)
        most = self._reading.max_records if is_limited else None
        return _to_json(self._plan().ends(from_json(start), most))

    def reportLatestOffset(self) -> _Offsets:  # noqa: N802
        """Return the end offsets of the topics, as of the last look."""
        return _to_json(self._plan().newest)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Let the query end with the records that exist now."""
        self._plan().stop_at_present()

    def partitions(self, start: _Offsets, end: _Offsets) -> Sequence[InputPartition]:
        """Distribute the records of a batch over tasks."""
        return [Ranges(it) for it in self._plan().distribute(from_json(start), from_json(end))]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Read and pack the records of a task."""
        return _read(self._reading, partition, skips_missing=True)

    def _plan(self) -> OffsetPlanner:
        if self._planner is None:
            from spark_jobs.source.offset_planner import (  # noqa: PLC0415 - see the module
                OffsetPlanner,
            )

            self._planner = OffsetPlanner(self._reading)
        return self._planner


class KafkaRangeReader(DataSourceReader):
    """Reads ranges of offsets.

    Parameters
    ----------
    reading : RangeReading
        Parameters.
    """

    def __init__(self, reading: RangeReading) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        """Distribute the ranges over tasks."""
        from spark_jobs.source.offset_planner import distribute  # noqa: PLC0415 - see the module

        ranges = [
            (topic, number, *found)
            for topic, partitions in self._reading.ranges.items()
            for number, found in partitions.items()
        ]
        return [Ranges(it) for it in distribute(ranges, self._reading.tasks)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Read and pack the records of a task."""
        return _read(self._reading, partition, skips_missing=False)


def _read(
    reading: Reading, partition: InputPartition, *, skips_missing: bool
) -> Iterator[RecordBatch]:
    from spark_jobs.source.range_reader import reader_of  # noqa: PLC0415 - see the module
    from spark_jobs.worker.pack import pack_records  # noqa: PLC0415 - see the module

    blocks = reader_of(reading).read(partition.value, skips_missing=skips_missing)
    return pack_records(reading.packing, blocks)


def _to_json(positions: Positions) -> _Offsets:
    """Write positions in one order: Spark compares offsets as strings."""
    return {
        topic: dict(sorted(partitions.items(), key=lambda it: int(it[0])))
        for topic, partitions in sorted(to_json(positions).items())
    }
