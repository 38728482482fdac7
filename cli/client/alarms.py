"""Follow the alarms, and what was set aside: committed records only (``tail``)."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, TypeGuard

import orjson
from confluent_kafka import TopicPartition

from cli.client.set_aside import as_text, headers_of
from cli.client.topics import METADATA_SECONDS, connected, partitions_of
from correlation.errors import CorrelationError
from correlation.timing.factored.expanding import Expander
from kafka_client.consumers import is_record, open_consumer
from kafka_client.partition_offsets import list_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka import Message

    from cli.settings import Settings

_POLL_SECONDS = 0.2

Alarm = dict[str, Any]
# What the headers of a record that was set aside say, without their common prefix, and its value.
SetAside = dict[str, str | None]
# What is shown of an alarm, and of each of its two events.
_ALARM_FIELDS: dict[str, type | tuple[type, ...]] = {
    "condition": str,
    "detected_at": int,
    "decided_by": str,
    "threshold": (int, float),
    "a": dict,
    # None of an event of A that has no B.
    "b": (dict, NoneType),
}
_EVENT_FIELDS: dict[str, type | tuple[type, ...]] = {
    "stream": str,
    "id": str,
    "earliest": int,
    "latest": int,
}


def follow_alarms(
    settings: Settings,
    topic: str | None = None,
    *,
    from_beginning: bool = False,
    tell: Callable[[str], object],
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
    tell
        Takes a line about each record that is no alarm.

    Raises
    ------
    BrokerError
        The broker does not answer, or has no such topic.
    """
    topics = [topic or settings.topics.alarms]
    expander = Expander()
    for message in _follow(settings, topics, from_beginning=from_beginning):
        if message is None:
            yield None
            continue
        try:
            yield from alarms_of(message.value(), expander)
        except CorrelationError as error:
            tell(f"{_place(message)}: {error}")
        except ValueError:
            tell(f"{_place(message)} is no alarm")


def follow_set_aside(
    settings: Settings, *, from_beginning: bool = False, tell: Callable[[str], object]
) -> Iterator[SetAside | None]:
    """Give dead letters and late events as they come; otherwise as ``follow_alarms``."""
    topics = [settings.topics.dead_letter, settings.topics.late]
    for message in _follow(settings, topics, from_beginning=from_beginning):
        if message is None:
            yield None
            continue
        told: SetAside = headers_of(message)
        if "reason" in told:
            yield {**told, "value": as_text(message.value())}
        else:
            tell(f"{_place(message)} is no record that was set aside")


def alarms_of(value: str | bytes | None, expander: Expander) -> Iterator[Alarm]:
    """Give the alarm that a record's value is, or those that it stands for.

    Parameters
    ----------
    value
        Of the record.
    expander
        Holds the tables of factored records.

    Raises
    ------
    ValueError
        It is no alarm.
    CorrelationError
        It is a factored record that cannot be read.
    """
    record = orjson.loads(value or b"")
    for alarm in expander.take(record) if isinstance(record, dict) else [record]:
        if not _is_alarm(alarm):
            raise ValueError("no alarm")
        yield alarm


def _is_alarm(found: object) -> TypeGuard[Alarm]:
    """Tell whether something is an alarm, as far as it is shown."""
    if not _has(found, _ALARM_FIELDS) or not isinstance(
        found.get("probability"), int | float | None
    ):
        return False
    events = [found["a"]] if found["b"] is None else [found["a"], found["b"]]
    return all(_has(event, _EVENT_FIELDS) for event in events)


def _has(found: object, fields: dict[str, type | tuple[type, ...]]) -> TypeGuard[Alarm]:
    """Tell whether something is an object with these fields of these types."""
    return isinstance(found, dict) and all(
        name in found and isinstance(found[name], kind) for name, kind in fields.items()
    )


def _place(message: Message) -> str:
    return f"{message.topic()}-{message.partition()}@{message.offset()}"


def _follow(
    settings: Settings, topics: list[str], *, from_beginning: bool
) -> Iterator[Message | None]:
    """Give committed records as they come; where to begin is asked when the first one is."""
    with connected(settings, open_consumer) as consumer:
        places = [it for topic in topics for it in partitions_of(consumer, settings, topic)]
        ranges = list_ranges(consumer, places, METADATA_SECONDS)
        consumer.assign(
            [
                TopicPartition(*place, there.begin if from_beginning else there.end)
                for place, there in ranges.items()
            ]
        )
        while True:
            message = consumer.poll(_POLL_SECONDS)
            yield message if message is not None and is_record(message) else None
