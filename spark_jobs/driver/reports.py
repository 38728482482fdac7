"""Records that the driver writes to Kafka: heartbeats, and the job's record for metrics."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Producer

from correlation.config_records import list_unreadable
from correlation.engine.heartbeats import heartbeat_to_record
from kafka_client.renewed import Renewed
from kafka_client.rights import with_right
from kafka_client.users import user_of
from spark_jobs.driver.checkpoint import parse_offsets
from spark_jobs.driver.heartbeat_clock import HeartbeatClock

if TYPE_CHECKING:
    from confluent_kafka import Message

    from correlation.config_records import Unreadable
    from correlation.engine.heartbeats import Heartbeat
    from correlation.resources.topics import Topics
    from kafka_client.partition_offsets import Place
    from spark_jobs.settings import Properties

_log = logging.getLogger(__name__)

VERSION = 1
_MIN_SECONDS = 1.0
_FLUSH_SECONDS = 5.0
_MAX_TEXT = 4_000


class Reporter:
    """Writes the driver's records to Kafka; they may repeat, and none of them is a result.

    Parameters
    ----------
    properties : mapping
        librdkafka properties.
    topics : Topics
        Topics of the installation.
    clock : callable
        Wall time in µs since 1970.
    hide : callable
        Replaces secrets in a string.
    """

    def __init__(
        self,
        properties: Properties,
        topics: Topics,
        clock: Callable[[], int],
        hide: Callable[[str], str],
    ) -> None:
        self._hide = hide
        self._topics = topics
        self._clock = clock
        self.heartbeat_clock = HeartbeatClock(clock)
        self._user = user_of(properties)
        self._producer = Renewed(
            lambda loss: Producer(
                {
                    "linger.ms": 0,
                    **properties,
                    "enable.idempotence": True,
                    "on_delivery": self._on_delivery,
                    **loss.properties(),
                }
            )
        )
        self._facts: dict[str, Any] = {
            "checkpoint": None,
            "claim": None,
            "query_id": None,
            "batch": None,
            "state": "starting",
            "input_rate": None,
            "batch_events": None,
            "lag": {},
            "last_batch_at": None,
            "durations": {},
            "memory": {},
            "exception": None,
            "slots": None,
            "wanted_slots": None,
            "slots_problem": None,
            "applied_config_offset": None,
            "streams": [],
            "waiting_streams": [],
            # Unknown until the checkpoint is read; 0 would look like a counter reset.
            "lost": None,
            "missing_topics": [],
            "unreadable_records": [],
            "unreadable_records_total": 0,
            "recreated_topics": {},
        }
        self._written_at = -_MIN_SECONDS

    def heartbeats(self, heartbeats: Sequence[Heartbeat]) -> None:
        """Write heartbeats; a later heartbeat replaces a lost one."""
        for heartbeat in heartbeats:
            value = orjson.dumps(heartbeat_to_record(heartbeat))
            self._produce(self._topics.heartbeats, heartbeat.stream.encode(), value)

    def state(self, state: str, **facts: object) -> None:
        """Write a new state of the job.

        Parameters
        ----------
        state : str
            starting, running, stalled, restarting, failing, stopping, stopped or failed.
        **facts
            Other fields of the record that change.
        """
        self._facts |= {"state": state, **facts}
        if self._facts["exception"] is not None:
            self._facts["exception"] = self._hide(self._facts["exception"])
        self._write()

    def slots(self, present: int, wanted: int, problem: str | None) -> None:
        """Set the present and the wanted number of slots, and why the job still has the present."""
        self._facts |= {"slots": present, "wanted_slots": wanted, "slots_problem": problem}

    def lost(self, totals: Mapping[Place, int]) -> None:
        """Set the number of records lost before they were read, by (topic, partition)."""
        self._facts["lost"] = _by_topic(totals)

    def lag(self, unread: Mapping[Place, int]) -> None:
        """Set the number of records not yet read, by (topic, partition)."""
        self._facts["lag"] = _by_topic(unread)

    def memory(self, nbytes: Mapping[str, int]) -> None:
        """Set the memory of the job's processes, in bytes; see `spark_jobs.driver.memory`."""
        self._facts["memory"] = dict(nbytes)

    def completed(self) -> None:
        """Set the time of the last completed batch to the present time."""
        self._facts["last_batch_at"] = self._clock()

    def recreated(self, topics: Mapping[str, tuple[str, str]]) -> None:
        """Add event topics that were deleted and created again.

        Parameters
        ----------
        topics : mapping of topic to (str, str)
            The former and the new id of each topic.
        """
        known = self._facts["recreated_topics"]
        for topic, (former, now) in topics.items():
            if known.get(topic, {}).get("id") == now:
                continue
            known[topic] = {"former_id": former, "id": now, "at": self._clock()}
            _log.error(
                "topic %s was deleted and created again: its id was %s and is now %s; it is read "
                "from its beginning, and unread records of the previous topic are lost",
                topic,
                former,
                now,
            )

    def missing_topics(self, topics: Collection[str]) -> None:
        """Set and log the output topics of conditions that do not exist."""
        missing = sorted(topics)
        if missing and missing != self._facts["missing_topics"]:
            _log.error(
                "output topics are missing: %s; their alarms go to %s",
                ", ".join(missing),
                self._topics.dead_letter,
            )
        self._facts["missing_topics"] = missing

    def unreadable_records(self, records: Sequence[Unreadable]) -> None:
        """Set the unreadable records of the config topic; only the first ones are listed."""
        self._facts["unreadable_records"] = list_unreadable(records)
        self._facts["unreadable_records_total"] = len(records)

    def progress(self, progress: Mapping[str, Any], config_topic: str, records: int) -> None:
        """Set the facts of a batch from Spark's progress; `refresh` writes them.

        Parameters
        ----------
        progress : mapping
            Value of `StreamingQuery.lastProgress`.
        config_topic : str
            Config topic; its end offset is the applied offset.
        records : int
            Number of records that the batch has read.
        """
        sources = progress["sources"]
        ends = parse_offsets(*(source["endOffset"] for source in sources))
        self._facts |= {
            "query_id": progress["id"],
            "batch": progress["batchId"],
            # Spark counts packed rows.
            "input_rate": 1_000 * records / max(progress["durationMs"]["triggerExecution"], 1),
            "batch_events": records,
            "durations": {
                phase: millis / 1_000 for phase, millis in progress["durationMs"].items()
            },
            "applied_config_offset": ends.get((config_topic, 0), 0) - 1,
        }

    def refresh(self) -> None:
        """Write the job's record, at most once per second."""
        self._producer.get().poll(0)
        if time.monotonic() - self._written_at >= _MIN_SECONDS:
            self._write()

    def _write(self) -> None:
        self._written_at = time.monotonic()
        value = orjson.dumps({"v": VERSION, **self._facts, "at": self._clock()})
        self._produce(self._topics.metrics, b"job", value)

    def _produce(self, topic: str, key: bytes, value: bytes) -> None:
        try:
            self._producer.get().produce(topic, value, key)
        except (BufferError, KafkaException) as error:
            # The broker does not answer, or the record is too large; a later record follows.
            _log.warning("a record of the job for %s was rejected: %s", topic, error)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            refused = with_right(error, "Write", message.topic(), self._user)
            _log.warning("a record of the job for %s was not written: %s", message.topic(), refused)
            return
        kind, timestamp_ms = message.timestamp()
        if message.topic() == self._topics.heartbeats and kind == TIMESTAMP_LOG_APPEND_TIME:
            self.heartbeat_clock.note_append(timestamp_ms * 1_000)

    def close(self) -> None:
        """Flush the producer."""
        self._producer.get().flush(_FLUSH_SECONDS)


def _by_topic(counts: Mapping[Place, int]) -> dict[str, dict[str, int]]:
    """Return counts as the record has them: topic → partition → number."""
    found: dict[str, dict[str, int]] = {}
    for (topic, number), count in sorted(counts.items()):
        found.setdefault(topic, {})[str(number)] = count
    return found


def describe(error: BaseException) -> str:
    """Return the message of an exception, shortened for a record."""
    text = str(error) or type(error).__name__
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
