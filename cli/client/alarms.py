"""Follow alarms, dead letters and late events; only committed records are read (``tail``)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from confluent_kafka import TopicPartition

from cli.client.set_aside import as_text, headers_of
from cli.client.topics import METADATA_SECONDS, connected, partitions_of
from correlation.errors import CorrelationError
from correlation.kinds import open_readers
from kafka_client.consumers import is_record, open_consumer
from kafka_client.partition_offsets import list_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from confluent_kafka import Message

    from cli.settings import Settings

_POLL_SECONDS = 0.2
# The first result may take longer than this without a report.
_SILENCE_SECONDS = 10

# Headers of a dead letter or late event, without their common prefix, and its value.
SetAside = dict[str, str | None]


class Found(NamedTuple):
    """A result: its JSON object, and its description in one line by its kind of condition."""

    result: dict[str, Any]
    description: str


class ResultReaders:
    """Reads output records of every kind of condition."""

    def __init__(self) -> None:
        self._readers = open_readers()

    def read(self, value: str | bytes | None) -> Iterator[Found]:
        """Yield the results in a record.

        Parameters
        ----------
        value
            Value of the record.

        Raises
        ------
        ValueError
            The record is not a result.
        CorrelationError
            The record cannot be read, such as a factored record without its table.
        """
        record = orjson.loads(value or b"")
        if not isinstance(record, dict):
            raise ValueError("the record is not a JSON object")  # noqa: TRY004 - callers catch one class
        reader = next((it for it in self._readers if it.claims(record)), None)
        if reader is None:
            raise ValueError("the kind of the record is unknown")
        for result in reader.read(record):
            if not _has_origin(result):
                raise ValueError("condition or time is missing")
            yield Found(result, reader.describe(result))


def follow_alarms(
    settings: Settings,
    topic: str | None = None,
    *,
    from_beginning: bool = False,
    report: Callable[[str], object],
) -> Iterator[Found | None]:
    """Yield the results of conditions as they arrive, and None while no record arrives.

    Parameters
    ----------
    settings
        Broker address and prefix of the topics.
    topic
        Output topic of a condition; by default the common alarm topic, and the topics of the
        channels of the kinds, except compacted ones.
    from_beginning
        Start at the oldest record, not at the end of the topic.
    report
        Called with a line about each record that is not a result.

    Raises
    ------
    BrokerError
        The broker does not answer, or the topic does not exist.
    """
    own = settings.topics
    channels = [] if topic else [own.of(it) for it in own.channels if not it.compacted]
    readers = ResultReaders()
    for message in _follow(
        settings, [topic or own.alarms], channels, from_beginning=from_beginning
    ):
        if message is None:
            yield None
            continue
        try:
            yield from readers.read(message.value())
        except CorrelationError as error:
            report(f"{_place(message)}: {error}")
        except ValueError:
            report(f"{_place(message)}: is not an alarm; it is skipped")


def hint_at_silence(
    results: Iterator[Found | None],
    report: Callable[[str], object],
    now: Callable[[], float] = time.monotonic,
) -> Iterator[Found | None]:
    """Pass results on, and report once if the first one takes long.

    Parameters
    ----------
    results
        Results, and None while none arrives.
    report
        Called with the hint.
    now
        Clock, in seconds.
    """
    begin, is_silent = now(), True
    for found in results:
        is_silent = is_silent and found is None
        if is_silent and now() - begin > _SILENCE_SECONDS:
            report("no result yet; 'coincide health job' says whether the job runs")
            is_silent = False
        yield found


def follow_set_aside(
    settings: Settings, *, from_beginning: bool = False, report: Callable[[str], object]
) -> Iterator[SetAside | None]:
    """Yield dead letters and late events as they arrive; otherwise like ``follow_alarms``."""
    topics = [settings.topics.dead_letter, settings.topics.late]
    for message in _follow(settings, topics, (), from_beginning=from_beginning):
        if message is None:
            yield None
            continue
        headers: SetAside = headers_of(message)
        if "reason" in headers:
            yield {**headers, "value": as_text(message.value())}
        else:
            report(f"{_place(message)}: is not a rejected or late record; it is skipped")


def _has_origin(result: Mapping[str, Any]) -> bool:
    return isinstance(result.get("condition"), str) and isinstance(result.get("detected_at"), int)


def _place(message: Message) -> str:
    return f"{message.topic()}-{message.partition()}@{message.offset()}"


def _follow(
    settings: Settings, topics: list[str], optional: Collection[str], *, from_beginning: bool
) -> Iterator[Message | None]:
    """Yield committed records as they arrive; the start offsets are read at the first call.

    `optional` are topics that are left out while they do not exist: an earlier version of the
    service does not create the channels of new kinds.
    """
    with connected(settings, open_consumer) as consumer:
        existing = consumer.list_topics(timeout=METADATA_SECONDS).topics if optional else {}
        followed = [*topics, *(it for it in optional if it in existing)]
        places = [it for topic in followed for it in partitions_of(consumer, settings, topic)]
        ranges = list_ranges(consumer, places, METADATA_SECONDS)
        consumer.assign(
            [
                TopicPartition(*place, there.begin if from_beginning else there.end)
                for place, there in ranges.items()
            ]
        )
        while True:
            message = consumer.poll(_POLL_SECONDS)
            yield message if message is not None and is_record(message, consumer.user) else None
