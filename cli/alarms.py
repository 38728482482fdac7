"""Follow the alarms, and what was set aside: committed records only (``tail``)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from cli.errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cli.settings import Settings

_METADATA_SECONDS = 10
_POLL_SECONDS = 0.2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Alarm = dict[str, Any]
# What the headers of a record that was set aside say, without their common prefix, and its value.
SetAside = dict[str, str | None]
_TOLD = "coincide.error."
_SHOWN_CHARACTERS = 200


def follow_alarms(
    settings: Settings, topic: str | None = None, *, from_beginning: bool = False
) -> Iterator[Alarm | None]:
    """Give the alarms as they come, and None each time there is none for a moment.

    Parameters
    ----------
    settings
        Where the broker is, and the topics' prefix.
    topic
        A condition's own output topic; the common alarms topic by default.
    from_beginning
        Begin with the oldest alarm kept, not with the next one.

    Raises
    ------
    BrokerError
        The broker does not answer, or has no such topic.
    """
    topics = [topic or settings.topics.alarms]
    for message in _follow(settings, topics, from_beginning=from_beginning):
        value = message.value() if message is not None else None
        yield orjson.loads(value) if value else None


def follow_set_aside(
    settings: Settings, *, from_beginning: bool = False
) -> Iterator[SetAside | None]:
    """Give dead letters and late events as they come; otherwise as ``follow_alarms``."""
    topics = [settings.topics.dead_letter, settings.topics.late]
    for message in _follow(settings, topics, from_beginning=from_beginning):
        if message is None:
            yield None
            continue
        headers = dict(message.headers() or ())
        told: SetAside = {
            name.removeprefix(_TOLD): _as_text(value)
            for name, value in headers.items()
            if name.startswith(_TOLD)
        }
        yield {**told, "value": _as_text(message.value())}


def _as_text(value: str | bytes | None) -> str | None:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


def describe_set_aside(letter: Mapping[str, Any]) -> str:
    """Return a dead letter or a late event as one line for a person."""
    # An alarm that its own topic did not take was read from nowhere.
    place = str(letter.get("topic"))
    if letter.get("partition") is not None:
        place += f"-{letter['partition']}@{letter.get('offset')}"
    value = letter["value"]
    shown = "no value" if value is None else value[:_SHOWN_CHARACTERS]
    told = [letter.get("reason"), place, letter.get("stream"), letter.get("detail")]
    return "  ".join([*(str(part) for part in told if part), shown])


def _follow(
    settings: Settings, topics: list[str], *, from_beginning: bool
) -> Iterator[Message | None]:
    """Give committed records as they come; where to begin is asked when the first one is."""
    consumer = Consumer(
        {
            "group.id": "coincide-cli",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            **settings.client,
        }
    )
    try:
        begins = []
        for topic in topics:
            found = consumer.list_topics(topic, timeout=_METADATA_SECONDS).topics[topic]
            if found.error is not None:
                raise BrokerError(f"there is no topic {topic} at {settings.bootstrap}")
            begins += [
                _begin(consumer, topic, number, from_beginning=from_beginning)
                for number in found.partitions
            ]
        consumer.assign(begins)
        while True:
            message = consumer.poll(_POLL_SECONDS)
            error = message.error() if message is not None else None
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's public name
                raise BrokerError(f"reading {', '.join(topics)}: {error.str()}")
            yield message if error is None else None
    except KafkaException as error:
        raise BrokerError(f"no broker answers at {settings.bootstrap}: {error}") from error
    finally:
        consumer.close()


def describe_alarm(alarm: Mapping[str, Any]) -> str:
    """Return an alarm as one line for a person.

    Parameters
    ----------
    alarm
        The record's value.
    """
    probability = alarm.get("probability")
    parts = [
        _moment(alarm["detected_at"]),
        str(alarm["condition"]),
        _describe_event(alarm["a"]),
        "↔",
        _describe_event(alarm["b"]),
        f"p={probability:.3f}" if probability is not None else f"p≥{alarm['threshold']}",
        f"({str(alarm['decided_by']).replace('_', ' ')})",
    ]
    if alarm.get("late"):
        parts.append("late")
    return "  ".join(parts)


def _describe_event(event: Mapping[str, Any]) -> str:
    key = f" @{event['key']}" if event.get("key") else ""
    return (
        f"{event['stream']}:{event['id']}{key} "
        f"[{_moment(event['earliest'])} … {_moment(event['latest'])}]"
    )


def _moment(time_us: int) -> str:
    """Return a time in µs as ISO 8601; the bare number where no calendar reaches."""
    try:
        moment = _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return f"{time_us} µs"
    text = moment.isoformat(timespec="microseconds" if time_us % 1_000_000 else "seconds")
    return text.replace("+00:00", "Z")


def _begin(consumer: Consumer, topic: str, number: int, *, from_beginning: bool) -> TopicPartition:
    """Return where to begin in a partition, as of now."""
    partition = TopicPartition(topic, number)
    first, end = consumer.get_watermark_offsets(partition, timeout=_METADATA_SECONDS)
    return TopicPartition(topic, number, first if from_beginning else end)
