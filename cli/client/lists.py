"""Present lists of a condition, from the compacted topic of its kind (``tail --list``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from confluent_kafka import TopicPartition

from cli.client.committed import read_committed
from cli.client.near_names import did_you_mean
from cli.client.topics import METADATA_SECONDS, connected, partitions_of
from cli.errors import UsageError
from correlation.errors import CorrelationError
from correlation.kinds import KINDS
from correlation.newest_records import NewestRecords
from correlation.resources.records import Resource, resource_key
from correlation.resources.times import describe_moment
from correlation.result_format import LIST_VERSION, ListName, as_text
from kafka_client.consumers import is_record, open_consumer, read_ranges
from kafka_client.messages import as_bytes
from kafka_client.partition_offsets import list_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka import Message

    from cli.client.list_tables import Update
    from cli.settings import Settings
    from correlation.lists import Lists
    from kafka_client.clients import UserConsumer

_POLL_SECONDS = 0.2


def find_lists(settings: Settings, name: str) -> Lists:
    """Return the declaration of the lists of a condition, which the config topic names.

    Raises
    ------
    BrokerError
        The broker does not answer, or the config topic does not exist.
    UsageError
        The condition does not exist, or its kind has no lists.
    """
    conditions: dict[bytes, Resource] = {}
    newest = NewestRecords(orjson.loads)
    for message in read_committed(settings, settings.topics.config):
        key, value = as_bytes(message.key()) or b"", as_bytes(message.value())
        found = newest.take(message.offset() or 0, key, value)
        conditions.pop(key, None)
        if isinstance(found, Resource) and found.kind == "condition":
            conditions[key] = found
    resource = conditions.get(resource_key("condition", name))
    if resource is None:
        near = did_you_mean(name, sorted(it.name for it in conditions.values()))
        raise UsageError(f"--list: condition {name} does not exist{near}")
    kind = KINDS.get(str(resource.document.get("kind")))
    if kind is None or kind.lists is None:
        raise UsageError(
            f"--list: condition {name} is of the kind {resource.document.get('kind')}, which has "
            f"no list; show its alarms: coincide tail --condition {name}"
        )
    return kind.lists


def follow_lists(
    settings: Settings, name: str, lists: Lists, report: Callable[[str], object]
) -> Iterator[Update]:
    """Yield the present lists of a condition, in order of their keys, and then each new state.

    Parameters
    ----------
    settings
        Broker address and prefix of the topics.
    name
        Name of the condition.
    lists
        The lists of its kind.
    report
        Called with a line about each record that is not a list.

    Raises
    ------
    BrokerError
        The broker does not answer, or the topic of the lists does not exist.
    """
    topic = settings.topics.of(lists.channel)
    with connected(settings, open_consumer) as consumer:
        ranges = list_ranges(consumer, partitions_of(consumer, settings, topic), METADATA_SECONDS)
        present: dict[bytes, Message] = {}
        for message in read_ranges(consumer, ranges):
            key = as_bytes(message.key()) or b""
            present.pop(key, None)
            if message.value() is not None:
                present[key] = message
        for _, message in sorted(present.items()):
            yield from _updates(message, name, lists, report)
        consumer.assign([TopicPartition(*place, found.end) for place, found in ranges.items()])
        for message in _records(consumer):
            yield from _updates(message, name, lists, report)


def _records(consumer: UserConsumer) -> Iterator[Message]:
    while True:
        message = consumer.poll(_POLL_SECONDS)
        if message is not None and is_record(message, consumer.user):
            yield message


def _updates(
    message: Message, name: str, lists: Lists, report: Callable[[str], object]
) -> Iterator[Update]:
    """Yield the list in a record, if it belongs to the condition."""
    try:
        found = ListName.from_record_key(as_bytes(message.key()) or b"")
        if found.condition != name:
            return
        update = _read(found, as_bytes(message.value()), lists)
    except (ValueError, CorrelationError) as error:
        place = f"{message.topic()}-{message.partition()}@{message.offset()}"
        report(f"{place}: is not a list: {error}; it is skipped")
        return
    yield update


def _read(name: ListName, value: bytes | None, lists: Lists) -> Update:
    if value is None:
        key = {} if name.key is None else {"key": as_text(name.key)}
        return {"condition": name.condition, **key, "items": None}
    found = orjson.loads(value)
    if not isinstance(found, dict) or found.get("v") != LIST_VERSION:
        raise ValueError("another version of this software wrote it")
    update = {"items": [], **found}
    _check_shown(update, lists)
    return update


def _check_shown(update: Update, lists: Lists) -> None:
    """Raise ValueError if the list cannot be shown: other software may have written the record."""
    try:
        for item in update["items"]:
            lists.cells(item)
        if update.get("as_of") is not None:
            describe_moment(update["as_of"])
    # Kinds of other packages may raise anything.
    except Exception as error:
        raise ValueError("a field is missing, or has another type") from error
